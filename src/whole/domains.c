/* SPDX-License-Identifier: MIT */
/* Gives gp/ the schemes of all kinds of domains, and the callback queues of domains. gp/ is the
 * lower layer and cannot include rcu/. */
#include "gp/user/domain.h"
#include "toolkit/callbacks/callback_life.h"
#include "toolkit/callbacks/callback_queue.h"
#include "toolkit/domains/schemes.h"

static struct callback_queue *domain_queue_make(struct prudence_domain *domain)
{
    return callback_queue_make(domain, CALLBACK_LANES_MAX);
}

const struct domain_queue domain_queue = {.make = domain_queue_make,
                                          .waits = callback_queue_waits,
                                          .release = callback_queue_release,
                                          .keep = callback_queue_keep,
                                          .bytes = callback_queue_bytes};

const struct gp_scheme *const gp_schemes[] = {
    [PRUDENCE_DOMAIN_MEMB] = &gp_memb,     [PRUDENCE_DOMAIN_QSBR] = &gp_memb,
    [PRUDENCE_DOMAIN_MANUAL] = &gp_manual, [PRUDENCE_DOMAIN_SRCU] = &gp_srcu,
    [PRUDENCE_DOMAIN_SET] = &gp_set,       [PRUDENCE_DOMAIN_EXTERNAL] = &gp_external,
    [PRUDENCE_DOMAIN_HAZARD] = &gp_hazard,
};
const unsigned gp_schemes_count = sizeof gp_schemes / sizeof gp_schemes[0];

const struct gp_part *const gp_parts[] = {&gp_hazard_part, &gp_retired_part, &gp_external_part,
                                          NULL};
