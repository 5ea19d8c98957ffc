/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The one interface through which grace periods drive the allocator, whatever scheme makes them.
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
 */
#include "gp_poll.h"

/*
 * Notes that `count` objects of `stride` bytes received a cookie and wait. Grace periods that start
 * by themselves may start sooner.
 *
 *     void gp_note_closed(unsigned count, size_t stride);
 */

/* Starts the grace period of `cookie`, unless one that covers it was started. Never waits. */
void gp_request(struct prudence_domain *domain, gp_cookie cookie);

/* Pushes started grace periods on with one barrier (if this goal has had none) and one scan of the
 * readers. Lock-free, for any number of threads. Never waits, except some ms to report a stall with
 * the reader's trace. The caller holds no lock, because foreign functions may be called. */
void gp_drive(struct prudence_domain *domain);

/* For threads that have other work: requests the grace period of `cookie` and pushes on, unless
 * another thread began to push within some microseconds. If a reader holds up the grace period
 * under way, requests nothing and returns false: the caller need not look again. */
bool gp_advance(struct prudence_domain *domain, gp_cookie cookie);

/*
 * Returns whether a reader is known to hold up the grace period under way. While true, pushing
 * changes nothing. Costs some loads.
 *
 *     bool gp_is_held_up(const struct prudence_domain *domain);
 *
 * Returns whether a grace period that covers the cookie has been requested.
 *
 *     bool gp_is_requested(const struct prudence_domain *domain, gp_cookie cookie);
 *
 * Returns whether one section has held up a caller that waits since `began` for `nanoseconds` or
 * more, although the section's thread could have left: the thread was blocked, or had a CPU. A
 * thread without a CPU may stay 20 times as long. If readers cannot be seen, returns whether a
 * grace period is under way. For a thread that waits and has run out of patience; makes some system
 * calls at times.
 *
 *     bool gp_outstays(struct prudence_domain *domain, uint64_t began, uint64_t nanoseconds);
 */

/*
 * Domains whose readers name single objects (gp_sifts) tell which objects of a batch are safe
 * although the grace period of their cookie is not over. gp_sift() puts those that a reader has
 * named last, and returns the number of the others; each is `size` bytes. It makes a barrier and
 * looks at all readers, so the caller owns nothing and holds no node's lock. The objects were
 * detached, and `cookie` covers them all.
 *
 *     bool gp_sifts(const struct prudence_domain *domain);
 *     unsigned gp_sift(struct prudence_domain *domain, gp_cookie cookie, void **objects,
 *                      unsigned count, size_t size);
 *
 * gp_only_names_hold() returns whether nothing but names can hold up the cookie's grace period from
 * now on, so that gp_sift() need not be repeated for anything else.
 *
 *     bool gp_only_names_hold(const struct prudence_domain *domain, gp_cookie cookie);
 */

/*
 * The state of the reader in the way, for a thread that waits and may let more memory wait instead.
 * In rising order of what speaks against that.
 *
 *     enum gp_reader_state gp_state_of_reader(struct prudence_domain *domain);
 *
 *   GP_READER_NONE       no reader is known to be in the way
 *   GP_READER_LACKS_CPU  the thread wants a CPU, had none between two looks, and hardly any before
 *   GP_READER_NEW        not known yet, because the section has been looked at once or has a CPU
 *   GP_READER_UNKNOWN    the domain or the system does not tell
 *   GP_READER_STAYS      the thread is blocked, or had a CPU long enough to leave
 *
 * Makes some system calls at times. The number of grace periods that have ended in all domains
 * since the first call of gp_count_ended(), which a thread calls before it needs the number:
 *
 *     void gp_count_ended(void);
 *     uint64_t gp_ended(void);
 */

/* Requests and drives until the grace period is over, or until the clock passes `deadline` (0 is
 * forever); returns false if the deadline came first. The caller holds no lock of the library and
 * has asked gp_may_wait(). */
bool gp_wait(struct prudence_domain *domain, gp_cookie cookie, uint64_t deadline);

/* The same, but ends as soon as only names hold up the grace period; then a sift comes next. An
 * implicit wait does not drive domains whose callers advance. */
bool gp_wait_for_sections(struct prudence_domain *domain, gp_cookie cookie, uint64_t deadline,
                          bool is_implicit);

/* Returns whether this thread may wait at all: the thread is not inside a read-side critical
 * section of any domain, nor online in a qsbr domain. For implicit waits. */
bool gp_may_wait(void);

/*
 * For implicit waits: gp_worth_waiting() returns false while the reader that outlasted an earlier
 * wait (gp_note_expired) is still in the same section.
 */
bool gp_worth_waiting(struct prudence_domain *domain);
void gp_note_expired(struct prudence_domain *domain);

/* Returns the cost of a grace period for the driver, without the scan, in ns; 0 if no system call
 * is needed. */
uint64_t gp_cost(const struct prudence_domain *domain);

/* Returns whether the domain's readers are fenced now, so grace periods cost no system call. */
bool gp_is_cheap(const struct prudence_domain *domain);

struct prudence_domain *gp_default_domain(void);

void gp_domain_get(struct prudence_domain *domain); /* a cache or a set begins to name the domain */
void gp_domain_put(struct prudence_domain *domain);

/* Stores up to `count` domains that caches or sets name and returns their number. Continues after
 * earlier calls with the same *after (0 at first). Destruction of each domain waits until
 * gp_domain_leave(). */
unsigned gp_domains_visit(struct prudence_domain **domains, unsigned count, uint64_t *after);
void gp_domain_leave(struct prudence_domain *domain);

#endif /* GP_GP_H */
