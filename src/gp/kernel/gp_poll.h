/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Polling the kernel's RCU; part of gp/gp.h.
 *
 * The kernel numbers two sequences of grace periods, normal ones and expedited ones, and an object is safe when
 * either has come far enough. A cookie is both numbers, the low 32 bits of each, so it stays one word, which the
 * layers above compare and copy.
 *
 * The upper bits are taken from `gp_near`, which gp_snapshot keeps within 2^30 of what it hands out. A cookie that is
 * not over yet is a few grace periods ahead of now, so it is always completed rightly. One that has been over for
 * 2^31 may be completed wrongly, to a number far ahead of now: that is taken for over, too.
 */
#ifndef GP_KERNEL_POLL_H
#define GP_KERNEL_POLL_H

#include "os/os.h"

/* Nobody's miss ends a grace period sooner. */
#define GP_CALLERS_DRIVE false

/* The size limit of a batch: little compared with what is deferred while a grace period lasts, milliseconds. */
#define GP_BATCH_OBJECTS 128
#define GP_BATCH_BYTES   ((size_t)256 << 10)

extern struct rcu_gp_oldstate gp_near; /* each number by itself; atomic */

/* gp.c: whether one of the two numbers has been reached. */
bool gp_kernel_is_over(const struct rcu_gp_oldstate *state);

static inline unsigned long gp_complete_number(const unsigned long *near, uint64_t low)
{
    unsigned long reference = load_relaxed(near);

    return reference + (unsigned long)(long)(int32_t)((uint32_t)low - (uint32_t)reference);
}

/* A full fence when it is true: more than is asked for. */
static inline bool gp_poll(const struct prudence_domain *domain, gp_cookie cookie)
{
    struct rcu_gp_oldstate state;

    (void)domain;
    state.rgos_norm = gp_complete_number(&gp_near.rgos_norm, cookie.value);
    state.rgos_exp = gp_complete_number(&gp_near.rgos_exp, cookie.value >> 32);
    return gp_kernel_is_over(&state);
}

enum gp_tried { GP_REFUSED, GP_LATER, GP_ASKED, GP_OVER };

static inline enum gp_tried gp_try(struct prudence_domain *domain, gp_cookie cookie, unsigned cpu)
{
    (void)domain;
    (void)cookie;
    (void)cpu;
    return GP_REFUSED;
}

/* hasten.c, where the kernel has rcu_hasten(). On this CPU; any context. */
#ifdef CONFIG_PRUDENCE
void gp_note_closed(unsigned count, size_t stride);
#else
static inline void gp_note_closed(unsigned count, size_t stride)
{
    (void)count;
    (void)stride;
}
#endif

/* Nobody of ours pushes. */
static inline bool gp_is_held_up(const struct prudence_domain *domain)
{
    (void)domain;
    return false;
}

static inline bool gp_is_requested(const struct prudence_domain *domain, gp_cookie cookie)
{
    (void)domain;
    (void)cookie;
    return true;
}

static inline bool gp_outstays(struct prudence_domain *domain, uint64_t began, uint64_t nanoseconds)
{
    (void)domain;
    return os_clock_ns() - began >= nanoseconds;
}

/* A kernel's deferrals never wait; its own stall detector names what keeps its grace periods. */
static inline void gp_overrun(const char *option, uint64_t bytes, uint64_t limit)
{
    (void)option;
    (void)bytes;
    (void)limit;
}

#endif /* GP_KERNEL_POLL_H */
