/* SPDX-License-Identifier: MIT */
/* What a domain has counted. */
#include <errno.h>
#include <stdio.h>

#include <prudence/stats.h>

#include "gp/user/domain.h"

int prudence_domain_stats_sized(struct prudence_domain *domain, struct prudence_domain_stats *stats,
                                size_t size)
{
    struct prudence_domain_stats all;

    if (!domain || !stats)
        return EINVAL;
    gp_domain_check(domain, "prudence_domain_stats", __builtin_return_address(0));
    all = (struct prudence_domain_stats){
        .users = load_relaxed(&domain->users),
        .readers = readers_reap(domain, true, READERS_A_FEW),
        .grace_periods = load_relaxed(&domain->grace_periods),
        .scans = load_relaxed(&domain->scans),
        .membarriers = load_relaxed(&domain->membarriers),
        .mode_switches = load_relaxed(&domain->mode_switches),
        .stalls = load_relaxed(&domain->stalls),
    };
    snprintf(all.name, sizeof all.name, "%s", domain->name);
    snprintf(all.kind, sizeof all.kind, "%s",
             domain->kind == PRUDENCE_DOMAIN_QSBR ? "qsbr" : domain->scheme->name);
    give_sized(stats, size, &all, sizeof all);
    return 0;
}
