/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * When is it safe? The one interface through which the allocator is driven by grace periods,
 * whatever scheme stands behind it.
 *
 * A cookie is a point in a domain's sequence of grace periods. Lifetimes: a domain outlives every
 * cache that names it (gp_domain_get/put).
 */
#ifndef GP_GP_H
#define GP_GP_H

#include "base/atomic.h"
#include "base/base.h"

struct prudence_domain;

typedef uint64_t gp_cookie;

/*
 * snapshot: the cookie of the next grace period to start. Contains the full fence that closing a
 * batch needs: call it after the batch is detached. Every unlink that happened before the caller
 * saw the object in its batch is then before the grace period.
 */
gp_cookie gp_snapshot(struct prudence_domain *domain);

/* Whether the grace period is over. Acquire: what readers did is before what the caller does now.
 *     static inline bool gp_poll(const struct prudence_domain *domain, gp_cookie cookie); */
#include "gp_poll.h"

/* Starts the grace period of `cookie`, if none that covers it was started. Never waits. */
void gp_request(struct prudence_domain *domain, gp_cookie cookie);

/* Pushes started grace periods on: one barrier (if none was made for this goal yet) and one scan
 * of the readers. Lock-free, any number of threads; never waits. */
void gp_drive(struct prudence_domain *domain);

/* As gp_drive, but leaves the work to another thread that began it within some microseconds. */
void gp_drive_shared(struct prudence_domain *domain);

/* request + drive until it is over, or until the clock passes `deadline` (0: for ever). The caller
 * holds no lock of ours and has asked gp_may_wait(). False when the deadline came first. */
bool gp_wait(struct prudence_domain *domain, gp_cookie cookie, uint64_t deadline);

/* Whether this thread may wait at all: not inside a read-side critical section of any domain, nor
 * online in a qsbr domain. */
bool gp_may_wait(void);

/*
 * For implicit waits: false while the reader that outlasted an earlier one (gp_note_expired) is
 * still in the same section.
 */
bool gp_worth_waiting(struct prudence_domain *domain);
void gp_note_expired(struct prudence_domain *domain);

/* Whether the domain's readers are fenced now: its grace periods then cost no system call. */
bool gp_is_cheap(const struct prudence_domain *domain);

struct prudence_domain *gp_default_domain(void);
void gp_domain_get(struct prudence_domain *domain); /* a cache begins to name it */
void gp_domain_put(struct prudence_domain *domain);

#endif /* GP_GP_H */
