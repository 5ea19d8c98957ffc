/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Polling the kernel's RCU; part of gp/gp.h. */
#ifndef GP_KERNEL_POLL_H
#define GP_KERNEL_POLL_H

/* Nobody's miss ends a grace period sooner. */
#define GP_CALLERS_DRIVE false

/* A batch is not larger. Little beside what is deferred while a grace period lasts, milliseconds. */
#define GP_BATCH_BYTES ((size_t)256 << 10)

/* A full fence when it is true: more than is asked for. */
static inline bool gp_poll(const struct prudence_domain *domain, gp_cookie cookie)
{
    (void)domain;
    return poll_state_synchronize_rcu((unsigned long)cookie);
}

/* A kernel's deferrals never wait; who keeps its grace periods is told by its own stall detector. */
static inline void gp_overrun(const char *option, uint64_t bytes, uint64_t limit)
{
    (void)option;
    (void)bytes;
    (void)limit;
}

#endif /* GP_KERNEL_POLL_H */
