/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Polling the kernel's RCU; part of gp/gp.h.
 *
 * The kernel numbers two sequences of grace periods, normal and expedited, and an object is safe
 * when either has come far enough. A cookie has the low 32 bits of both numbers, so cookies stay
 * one word, which the layers above compare and copy.
 *
 * The upper bits come from `gp_near`, which gp_snapshot keeps within 2^30 of the numbers handed
 * out. A cookie that is not over yet is a few grace periods ahead of now, so it is always completed
 * correctly. A cookie that has been over for 2^31 grace periods may be completed to a number far
 * ahead of now, which counts as over, too.
 */
#ifndef GP_KERNEL_POLL_H
#define GP_KERNEL_POLL_H

#include "gp_numbers.h"
#include "os/os.h"

/* No miss of a caller ends a grace period sooner. */
#define GP_CALLERS_DRIVE false

/* The size limit of a batch, and how many batches a full ring has at least: both small against the
 * deferrals of a grace period (milliseconds), because objects of an open batch wait for nothing. */
#define GP_RING_BATCHES  8
#define GP_BATCH_OBJECTS 128
#define GP_BATCH_BYTES   ((size_t)256 << 10)

extern struct rcu_gp_seq gp_near; /* each number by itself; atomic */

/* gp.c: returns whether one of the two numbers has been reached. */
bool gp_kernel_is_over(const struct rcu_gp_seq *state);

static inline unsigned long gp_complete_number(const unsigned long *near, uint64_t low)
{
    unsigned long reference = load_relaxed(near);

    return reference + (unsigned long)(long)(int32_t)((uint32_t)low - (uint32_t)reference);
}

/* Contains a full fence when true, which is more than gp.h asks for. */
static inline bool gp_poll(const struct prudence_domain *domain, gp_cookie cookie)
{
    struct rcu_gp_seq state;

    (void)domain;
    state.GP_NORM = gp_complete_number(&gp_near.GP_NORM, cookie.value);
    state.GP_EXP = gp_complete_number(&gp_near.GP_EXP, cookie.value >> 32);
    return gp_kernel_is_over(&state);
}

enum gp_tried { GP_REFUSED, GP_OTHERS, GP_LATER, GP_ASKED, GP_OVER };

static inline enum gp_tried gp_try(struct prudence_domain *domain, gp_cookie cookie, unsigned cpu)
{
    (void)domain;
    (void)cookie;
    (void)cpu;
    return GP_REFUSED;
}

/* hasten.c, in kernels that have rcu_hasten(). Acts on this CPU; any context. */
#ifdef CONFIG_PRUDENCE
void gp_note_closed(unsigned count, size_t stride);
#else
static inline void gp_note_closed(unsigned count, size_t stride)
{
    (void)count;
    (void)stride;
}
#endif

#endif /* GP_KERNEL_POLL_H */
