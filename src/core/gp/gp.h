/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The one interface through which grace periods drive the allocator, whatever scheme makes them.
 * Threads that wait use gp_wait.h as well.
 *
 * A cookie is a point in a domain's sequence of grace periods. A domain outlives every cache that
 * names it (gp_domain_get/put).
 */
#ifndef GP_GP_H
#define GP_GP_H

#include "base/atomic.h"
#include "base/base.h"

struct prudence_domain;

/* A distinct type, not to be mistaken for a time or a goal; one word, passed in a register. */
typedef struct {
    uint64_t value;
} gp_cookie;

static inline bool gp_is_same(gp_cookie a, gp_cookie b)
{
    return a.value == b.value;
}

/*
 * Returns the cookie of the next grace period to start. Contains the full fence that closing a
 * batch needs, so callers detach the batch first: every unlink that happened before the caller saw
 * the object in the batch is then before the grace period.
 */
gp_cookie gp_snapshot(struct prudence_domain *domain);

/*
 * Returns whether the grace period is over. Acquire: the readers' accesses are before the caller's
 * next ones.
 *
 *     static inline bool gp_poll(const struct prudence_domain *domain, gp_cookie cookie);
 *
 * Notes that `count` objects of `stride` bytes received a cookie and wait. Grace periods that start
 * by themselves may start sooner.
 *
 *     void gp_note_closed(unsigned count, size_t stride);
 *
 * Called by a thread that has closed a batch, on CPU `cpu`: pushes grace periods on, up to that of
 * `cookie`, as far as no system call is needed. Never waits and takes no lock, so the owner of a
 * CPU's caches may call this.
 *
 *     enum gp_tried gp_try(struct prudence_domain *domain, gp_cookie cookie, unsigned cpu);
 */
#include "gp_poll.h"

/* Starts the grace period of `cookie`, unless one that covers it was started. Never waits. */
void gp_request(struct prudence_domain *domain, gp_cookie cookie);

/* Returns whether a grace period that covers the cookie has been requested. False for grace periods
 * that gp_try only asked readers for; other threads need not push those. */
bool gp_is_requested(const struct prudence_domain *domain, gp_cookie cookie);

/* Pushes started grace periods on with one barrier (if this goal has had none) and one scan of the
 * readers. Lock-free, for any number of threads. Never waits, except some ms to report a stall with
 * the reader's trace. The caller holds no lock, because foreign functions may be called. */
void gp_drive(struct prudence_domain *domain);

/* For threads that have other work: requests the grace period of `cookie` and pushes on, unless
 * another thread began to push within some microseconds. If a reader holds up the grace period
 * under way, requests nothing and returns false: the caller need not check again. */
bool gp_advance(struct prudence_domain *domain, gp_cookie cookie);

/* Returns the cost of a grace period for the driver, without the scan, in ns. 0 if no system call
 * is needed, because readers are fenced now. */
uint64_t gp_cost(const struct prudence_domain *domain);

/* Requests and drives until the grace period is over, or until the clock passes `deadline` (0 is
 * forever); returns false if the deadline came first. The caller holds no lock of the library and
 * has asked gp_may_wait(). */
bool gp_wait(struct prudence_domain *domain, gp_cookie cookie, uint64_t deadline);

/* Returns whether the domain's readers name single objects, so that gp_poll_objects() may be
 * called. */
bool gp_polls_objects(const struct prudence_domain *domain);

/*
 * Marks which objects of a batch are safe although the grace period of their cookie is not over.
 * Puts those that a reader has named last, and returns the number of the others; each is `size`
 * bytes. Makes a barrier and checks all readers, so the caller owns nothing and holds no node's
 * lock. The objects were detached, and `cookie` covers them all.
 *
 * If `only_names` is not NULL, stores whether nothing but names can hold up the cookie's grace
 * period from before the poll on, so that it need not be repeated for anything else.
 */
unsigned gp_poll_objects(struct prudence_domain *domain, gp_cookie cookie, void **objects,
                         unsigned count, size_t size, bool *only_names);

struct prudence_domain *gp_default_domain(void);

void gp_domain_get(struct prudence_domain *domain); /* a cache or a set begins to name the domain */
void gp_domain_put(struct prudence_domain *domain);

/* Stores up to `count` domains that caches or sets name and returns their number. Continues after
 * earlier calls with the same *after (0 at first). Destruction of each domain waits until
 * gp_domain_leave(). */
unsigned gp_domains_visit(struct prudence_domain **domains, unsigned count, uint64_t *after);
void gp_domain_leave(struct prudence_domain *domain);

#endif /* GP_GP_H */
