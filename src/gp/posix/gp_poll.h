/* SPDX-License-Identifier: MIT */
/* Polling a domain of a process; part of gp/gp.h. */
#ifndef GP_POSIX_POLL_H
#define GP_POSIX_POLL_H

/* The part of a domain that polling reads, on a line of its own; first member of the domain. */
struct gp_progress {
    uint64_t completed; /* only grows, by compare-and-swap */
};

/* One load and a compare. Acquire: pairs with the release with
 * which it was completed, so that what readers did is before what the caller does now. */
static inline bool gp_poll(const struct prudence_domain *domain, gp_cookie cookie)
{
    const struct gp_progress *progress = (const void *)domain;

    return (int64_t)(load_acquire(&progress->completed) - cookie) >= 0;
}

#endif /* GP_POSIX_POLL_H */
