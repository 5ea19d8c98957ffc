/* SPDX-License-Identifier: MIT */
/* liburcu's default flavor: readers without fences, sys_membarrier in the grace period. */
#define RCU_MEMBARRIER
#include "urcu_family.h"

/* Uses one thread for each CPU's callbacks, bound to it, instead of one for all. */
static void start_per_cpu(struct run *run)
{
    start(run);
    create_all_cpu_call_rcu_data(0);
}

URCU_FAMILY(urcu_memb, "liburcu-memb", start)
URCU_FAMILY(urcu_memb_percpu, "liburcu-memb", start_per_cpu)
