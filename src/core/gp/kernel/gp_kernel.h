/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The module's own interface to src/core/gp/kernel. */
#ifndef GP_KERNEL_H
#define GP_KERNEL_H

#include "gp/gp_wait.h"
#include "os/os.h"

void gp_kernel_start(void);
void gp_kernel_stop(void);

/* Has RCU check now, rather than at the next ticks, whether the normal grace period under way is
 * over. Idle CPUs are not disturbed; others are asked to hurry. Any context; never waits. */
void gp_push(void);

/* Requests a grace period that disturbs every CPU and is over soon, for all cookies taken before.
 * Any context; never waits. */
void gp_expedite(void);

/* The kernel's own functions (kernel/rcu/rcu.h), for modules that check closely: the numbers of the
 * newest grace period that has begun, normal or expedited, and an immediate check of the CPUs that
 * the normal one waits for. */
unsigned long rcu_get_gp_seq(void);
unsigned long rcu_exp_batches_completed(void);
void rcu_force_quiescent_state(void);

/* hasten.c; prudence.ko waits for ticks instead */
#ifdef CONFIG_PRUDENCE
void gp_hasten_start(void);
uint64_t gp_hastened(void);
#else
static inline void gp_hasten_start(void)
{
}

static inline uint64_t gp_hastened(void)
{
    return 0;
}
#endif

struct gp_kernel_stats {
    uint64_t cookies;   /* normal grace periods that cookies were handed out for */
    uint64_t requests;  /* grace periods requested */
    uint64_t expedited; /* requests for expedited grace periods */
    uint64_t waits;     /* waits for a grace period to end */
    uint64_t expiries;  /* waits that met their deadline */
    uint64_t hastened;  /* times that a CPU did its part before the next tick */
};
void gp_kernel_stats(struct gp_kernel_stats *stats);

#endif /* GP_KERNEL_H */
