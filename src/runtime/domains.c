/* SPDX-License-Identifier: MIT */
/* Gives gp/ the callback queues of domains; gp/ is the lower layer and cannot include rcu/. */
#include "gp/user/domain.h"
#include "rcu/callback_life.h"
#include "rcu/callback_queue.h"

static struct callback_queue *domain_queue_make(struct prudence_domain *domain)
{
    return callback_queue_make(domain, CALLBACK_LANES_MAX);
}

const struct domain_queue domain_queue = {.make = domain_queue_make,
                                          .waits = callback_queue_waits,
                                          .release = callback_queue_release,
                                          .keep = callback_queue_keep};
