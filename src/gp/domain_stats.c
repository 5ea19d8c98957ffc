/* SPDX-License-Identifier: MIT */
/* What a domain has counted. */
#include <errno.h>
#include <stdio.h>

#include <prudence/stats.h>

#include "gp/domain.h"

int prudence_domain_stats(struct prudence_domain *domain, struct prudence_domain_stats *stats)
{
    if (!domain || !stats)
        return EINVAL;
    DOMAIN_CHECK(domain);
    *stats = (struct prudence_domain_stats){
        .users = load_relaxed(&domain->users),
        .readers = readers_reap(domain, true),
        .grace_periods = load_relaxed(&domain->grace_periods),
        .scans = load_relaxed(&domain->scans),
        .membarriers = load_relaxed(&domain->membarriers),
        .mode_switches = load_relaxed(&domain->mode_switches),
        .stalls = load_relaxed(&domain->stalls),
    };
    snprintf(stats->name, sizeof stats->name, "%s", domain->name);
    snprintf(stats->kind, sizeof stats->kind, "%s",
             domain->kind == PRUDENCE_DOMAIN_QSBR ? "qsbr" : domain->scheme->name);
    return 0;
}
