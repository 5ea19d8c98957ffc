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

/*
 * Called by a thread that has closed a batch, on CPU `cpu`: pushes grace periods on, up to that of
 * `cookie`, as far as no system call is needed. Takes some 50 ns, plus some 100 for each of a few
 * readers. Never waits and takes no lock, so the owner of a CPU's caches may call this.
 */
enum gp_tried {
    GP_REFUSED, /* not tried; do not try again for a while */
    GP_OTHERS,  /* no reader is awake, and another CPU ends grace periods at once */
    GP_LATER,   /* Another grace period is or just was under way; look again after some objects. */
    GP_ASKED,   /* the grace period of `cookie` is under way; look again likewise */
    GP_OVER,
};
enum gp_tried gp_try(struct prudence_domain *domain, gp_cookie cookie, unsigned cpu);

bool gp_sifts(const struct prudence_domain *domain);
unsigned gp_sift(struct prudence_domain *domain, gp_cookie cookie, void **objects, unsigned count,
                 size_t size);
bool gp_only_names_hold(const struct prudence_domain *domain, gp_cookie cookie);

bool gp_is_held_up(const struct prudence_domain *domain);
bool gp_is_requested(const struct prudence_domain *domain, gp_cookie cookie);
bool gp_outstays(struct prudence_domain *domain, uint64_t began, uint64_t nanoseconds);

enum gp_reader_state {
    GP_READER_NONE,
    GP_READER_LACKS_CPU,
    GP_READER_NEW,
    GP_READER_UNKNOWN,
    GP_READER_STAYS,
};
enum gp_reader_state gp_state_of_reader(struct prudence_domain *domain);
void gp_count_ended(void);
uint64_t gp_ended(void);

/* Reports that garbage has passed the limit of the given option because the deferring thread could
 * not be held back. Names the readers in the way. Reports at once the first time, then after
 * pauses from 10 s to 11 minutes. The caller holds no lock. */
void gp_overrun(const char *option, uint64_t bytes, uint64_t limit);

#endif /* GP_USER_POLL_H */
