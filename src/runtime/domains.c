/* SPDX-License-Identifier: MIT */
/* The callbacks of a domain, for gp/, which stands below them. */
#include "gp/user/domain.h"
#include "rcu/callbacks.h"

static struct callback_queue *make(struct prudence_domain *domain)
{
    return callback_queue_make(domain, CALLBACK_LANES_MAX);
}

const struct domain_queue domain_queue = {.make = make,
                                          .waits = callback_waits,
                                          .release = callback_queue_release,
                                          .keep = callback_queue_keep};
