/* SPDX-License-Identifier: MIT */
/* Polling a domain of a process; part of gp/gp.h. */
#ifndef GP_USER_POLL_H
#define GP_USER_POLL_H

/* The part of a domain that polling reads, on a line of its own; first member of the domain. */
struct gp_progress {
    uint64_t completed; /* only grows, by compare-and-swap */
};

/* A miss that needs memory drives the grace period that its own batches wait for (gp_advance). */
#define GP_CALLERS_DRIVE true

/* The size limit of a batch. It may end in a grace period each time, which should cost little for each of its
 * objects. */
#define GP_BATCH_OBJECTS 256
#define GP_BATCH_BYTES   ((size_t)256 << 10) /* 64 objects of 4 KiB */

/* One load and a compare. Acquire: pairs with the release with which it was completed, so that what readers did is
 * before what the caller does now. */
static inline bool gp_poll(const struct prudence_domain *domain, gp_cookie cookie)
{
    const struct gp_progress *progress = (const void *)domain;

    return (int64_t)(load_acquire(&progress->completed) - cookie.value) >= 0;
}

/* Much that waits makes no grace period come sooner: misses do. */
static inline void gp_note_closed(unsigned count, size_t stride)
{
    (void)count;
    (void)stride;
}

/*
 * For a thread that has closed a batch, on CPU `cpu`: pushes grace periods on as far as that takes no system call, up
 * to that of `cookie`. Some 50 ns, and some 100 for each of a few readers; it never waits and takes no lock, so the
 * owner of a CPU's caches may call it.
 */
enum gp_tried {
    GP_REFUSED, /* not tried: it should not be again for a while */
    GP_LATER, /* an earlier one is under way, or was a moment ago: look again after some objects */
    GP_ASKED, /* the grace period of `cookie` is under way: as GP_LATER */
    GP_OVER,  /* it is over */
};
enum gp_tried gp_try(struct prudence_domain *domain, gp_cookie cookie, unsigned cpu);

bool gp_is_held_up(const struct prudence_domain *domain);
bool gp_is_requested(const struct prudence_domain *domain, gp_cookie cookie);
bool gp_outstays(struct prudence_domain *domain, uint64_t began, uint64_t nanoseconds);

/* Garbage has passed a limit (an option of that name), because the deferring thread could not be held back. This is
 * reported at once the first time, then at most every 10 s, with the readers that are in the way. Nothing is held. */
void gp_overrun(const char *option, uint64_t bytes, uint64_t limit);

#endif /* GP_USER_POLL_H */
