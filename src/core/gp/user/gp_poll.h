/* SPDX-License-Identifier: MIT */
/* Polling a domain of a process; part of gp/gp.h. */
#ifndef GP_USER_POLL_H
#define GP_USER_POLL_H

/* The part of a domain that polling reads, on a cache line alone; first member of the domain. */
struct gp_progress {
    uint64_t completed; /* only grows, by compare-and-swap */
};

/* A miss that needs memory drives the grace period of the CPU's own batches (gp_advance). */
#define GP_CALLERS_DRIVE true

/* The size limit of a batch, and how many batches a full ring has at least. Each batch may end in a
 * grace period, whose cost is spread over the batch's objects. */
#define GP_RING_BATCHES  2
#define GP_BATCH_OBJECTS 256
#define GP_BATCH_BYTES   ((size_t)256 << 10) /* 64 objects of 4 KiB */

/* Returns whether the grace period is over, by one load and a compare. Acquire pairs with the
 * release that completed the grace period, so the readers' accesses are before the caller's next
 * ones. */
static inline bool gp_poll(const struct prudence_domain *domain, gp_cookie cookie)
{
    const struct gp_progress *progress = (const void *)domain;

    return (int64_t)(load_acquire(&progress->completed) - cookie.value) >= 0;
}

/* Does nothing: misses drive grace periods, the amount that waits does not. */
static inline void gp_note_closed(unsigned count, size_t stride)
{
    (void)count;
    (void)stride;
}

/* Takes some 50 ns, plus some 100 for each of a few readers. */
enum gp_tried {
    GP_REFUSED, /* not tried; do not try again for a while */
    GP_OTHERS,  /* no reader is awake, and another CPU ends grace periods at once */
    GP_LATER,   /* Another grace period is or just was under way; check again after some objects. */
    GP_ASKED,   /* the grace period of `cookie` is under way; check again likewise */
    GP_OVER,
};
enum gp_tried gp_try(struct prudence_domain *domain, gp_cookie cookie, unsigned cpu);

#endif /* GP_USER_POLL_H */
