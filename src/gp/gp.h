/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * When is it safe? The one interface through which grace periods drive the allocator, whatever scheme makes them.
 *
 * A cookie is a point in a domain's sequence of grace periods. Lifetimes: a domain outlives every cache that names it
 * (gp_domain_get/put).
 */
#ifndef GP_GP_H
#define GP_GP_H

#include "base/atomic.h"
#include "base/base.h"

struct prudence_domain;

/* A type of its own, so that it cannot be taken for a time or a goal; one word, passed in a register. */
typedef struct {
    uint64_t value;
} gp_cookie;

static inline bool gp_is_same(gp_cookie a, gp_cookie b)
{
    return a.value == b.value;
}

/*
 * snapshot: the cookie of the next grace period to start. Contains the full fence that closing a batch needs, so call
 * it after the batch is detached. Every unlink that happened before the caller saw the object in its batch is then
 * before the grace period.
 */
gp_cookie gp_snapshot(struct prudence_domain *domain);

/* Whether the grace period is over. Acquire: what readers did is before what the caller does now.
 *     static inline bool gp_poll(const struct prudence_domain *domain, gp_cookie cookie); */
#include "gp_poll.h"

/* So many objects of `stride` bytes have got a cookie and wait. Grace periods that come by themselves may come sooner for it.
 *     void gp_note_closed(unsigned count, size_t stride); */

/* After a poll or wait that found the grace period over: tells a race detector that what readers did in their
 * sections is before what the caller does now. Nothing else. */
void gp_tell_over(const struct prudence_domain *domain);

/* Starts the grace period of `cookie`, if none that covers it was started. Never waits. */
void gp_request(struct prudence_domain *domain, gp_cookie cookie);

/* Pushes started grace periods on: one barrier (if none was made for this goal yet) and one scan
 * of the readers. Lock-free, any number of threads; never waits, except some ms to report a stall with
 * the reader's trace. No lock is held: foreign functions may be called. */
void gp_drive(struct prudence_domain *domain);

/* For threads that have something else to do: requests the grace period of `cookie` and pushes it on, unless a reader
 * stays in the way of the one before, or another thread began to push within some microseconds. False: to look again
 * would find nothing. */
bool gp_advance(struct prudence_domain *domain, gp_cookie cookie);

/* Whether a reader is known to stay in the way of the grace period that is under way: as long as it is true, pushing
 * changes nothing. Some loads.
 *     bool gp_is_held_up(const struct prudence_domain *domain);
 * Whether a grace period that covers the cookie has been requested.
 *     bool gp_is_requested(const struct prudence_domain *domain, gp_cookie cookie);
 * Whether one and the same section has been in the way for at least so many nanoseconds, of a caller that has waited
 * since `began`, although its thread could have left it: it was blocked, or had a CPU. Without a CPU it may stay 20
 * times as long. For readers that cannot be seen: whether a grace period is under way. For a thread that waits and
 * has run out of patience: at times some system calls.
 *     bool gp_outstays(struct prudence_domain *domain, uint64_t began, uint64_t nanoseconds); */

/* request + drive until it is over, or until the clock passes `deadline` (0: forever). The caller
 * holds no lock of ours and has asked gp_may_wait(). False when the deadline came first. */
bool gp_wait(struct prudence_domain *domain, gp_cookie cookie, uint64_t deadline);

/* Whether this thread may wait at all: not inside a read-side critical section of any domain, nor
 * online in a qsbr domain. For implicit waits. */
bool gp_may_wait(void);

/* The same for an explicit wait for grace periods of `domain`. Readers of srcu and external domains may block, so
 * their sections are in the way of their own grace periods only, and of sets with them. */
bool gp_may_wait_for(const struct prudence_domain *domain);

/*
 * For implicit waits: false while the reader that outlasted an earlier one (gp_note_expired) is still in the same
 * section.
 */
bool gp_worth_waiting(struct prudence_domain *domain);
void gp_note_expired(struct prudence_domain *domain);

/* What a grace period costs its driver, without the scan: ns; 0: no system call. */
uint64_t gp_cost(const struct prudence_domain *domain);

/* Whether the domain's readers are fenced now: its grace periods then cost no system call. */
bool gp_is_cheap(const struct prudence_domain *domain);

/*
 * Phases: a clock that many threads advance together (phases.c). Every thread that has joined ticks; the last of them
 * to tick in a phase ends it, and the next one begins. Phases are named by increasing numbers, GP_STEP apart. No
 * thread waits for a phase, so one that has joined may wait.
 *   - gp_phases_make: NULL without memory.
 *   - join: this thread counts from now on, in *phase as one that has ticked (or, if it has not, in the next one).
 *     False: there is no memory, and only if it never joined before.
 *   - tick: it has ticked in the phase that is returned.
 *   - leave: it does not count any more.
 *   - reap: threads that have ended without leaving do not count any more.
 *   - advance, after a tick or a leave: ends the phase if all have ticked.
 *   - ended: how many phases have ended.
 */
struct prudence_domain *gp_phases_make(const char *name);
bool gp_phases_join(struct prudence_domain *domain, bool ticked, uint64_t *phase);
uint64_t gp_phases_tick(struct prudence_domain *domain);
void gp_phases_leave(struct prudence_domain *domain);
void gp_phases_reap(struct prudence_domain *domain);
bool gp_phases_advance(struct prudence_domain *domain);
uint64_t gp_phases_ended(const struct prudence_domain *domain);

/* A thread that reads, or has asked to be watched, ends: `ends` is called in each round of destructors of thread-specific data,
 * before the thread's readers end; `last`: in the last one. A thread that read for the first time in a destructor may end without
 * the last call. watch_slow: not in a signal handler; false: there is no memory for that. */
void reader_exit_tell_before(void (*ends)(bool last));
bool reader_exit_watch_slow(void);

struct prudence_domain *gp_default_domain(void);

/* Under check=1: stops the process, with the caller's place, if the domain is not one, or no longer. */
void gp_domain_check(const struct prudence_domain *domain, const char *what, const void *caller);
void gp_domain_get(struct prudence_domain *domain); /* a cache or a set begins to name it */
void gp_domain_put(struct prudence_domain *domain);

/* Up to `count` domains that caches or sets name, the next ones after those of earlier calls with the same *after (0
 * at first); returns how many. Each is held against destruction, which waits, until gp_domain_leave(). */
unsigned gp_domains_visit(struct prudence_domain **domains, unsigned count, uint64_t *after);
void gp_domain_leave(struct prudence_domain *domain);

#endif /* GP_GP_H */
