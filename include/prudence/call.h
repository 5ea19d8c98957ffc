/* SPDX-License-Identifier: MIT */
/*
 * Callbacks: functions that run after a grace period, for objects whose end takes more than a free.
 * If a free is enough, prudence_free_deferred() is cheaper and lets the allocator plan. If all
 * objects of one cache end in the same way, a cache with a destructor (<prudence/prudence.h>) does
 * the same.
 *
 * Callbacks run one after the other on a thread of the library, which the first prudence_call()
 * starts, with no lock of the library held, and never inside an allocation, a free, or any other
 * call of the program. Those that one CPU queued run in the order in which they were queued. They
 * may do whatever a thread may: read, allocate, free, defer, queue callbacks (also themselves
 * again), synchronize, wait for a cache (prudence_cache_barrier). Only waiting for callbacks is
 * refused. docs/reference/rcu.md has a table of the calls that are allowed where. A callback that
 * blocks holds up all others of its domain, and those of other domains that the same thread serves.
 *
 * The conventions of <prudence/prudence.h> apply. Fork: the child also has the parent's callbacks,
 * except one that was running on another thread. They run once the child calls prudence_call or a
 * barrier, or when a handler of pthread_atfork has done so in the child and the fork is over; no
 * thread is started before. Exit: callbacks that still wait do not run. A program that
 * needs them to run calls prudence_barrier() first. A module is unloaded only after
 * prudence_barrier_nested().
 */
#ifndef PRUDENCE_CALL_H
#define PRUDENCE_CALL_H

#include <stdint.h>

#include <prudence/prudence.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Member of the object, anywhere; no preparation is needed. From prudence_call until the callback
 * starts the head belongs to the library. Readers must not read the head, and no thread may write
 * it.
 */
struct prudence_head {
    struct prudence_head *next;
    void (*func)(struct prudence_head *head);
};

/*
 * Call func(head) once every read-side critical section of the default domain (or of `domain`) that
 * is running now has ended. Call these after the object is unlinked. They may be called inside a
 * section, in callbacks, and with any locks held. They always succeed; errno is kept. A head that
 * is queued already is misuse, which the option check=1 reports at the second call.
 *
 * When callbacks of more than the option `call_limit` wait, the caller is held back until fewer do,
 * but never longer than `wait_max`, and not inside a section or a callback. When more than 256 KB
 * wait while the thread that runs them, or a blocking reader, has no CPU, the caller may sleep
 * for 4 ms, also in a section (not with call_limit=0). Cost: some 20 ns, and a system call if the
 * thread sleeps. A callback runs some 50 to 100 microseconds after the grace period could end, not
 * at the next tick of a clock.
 */
PRUDENCE_API void prudence_call(struct prudence_head *head,
                                void (*func)(struct prudence_head *head));
PRUDENCE_API void prudence_domain_call(struct prudence_domain *domain, struct prudence_head *head,
                                       void (*func)(struct prudence_head *head));

/*
 * From now on the thread that runs callbacks of the domain calls `begin` before some of them and
 * `end` after them, with at most `most` between the two (0: a number that the library chooses). So
 * a lock that all callbacks need is taken once for many, and a thread is registered where its
 * callbacks need that. Either may be NULL. Both count as callbacks: they may do the same, and what
 * is refused there is refused here. Callbacks wait while `begin` waits. A child forked between the
 * two by another thread has what `begin` did, and no thread calls `end`. Returns EINVAL if the
 * domain is NULL, EBUSY in callbacks, while some of the domain wait or run, and in a handler of
 * pthread_atfork that runs between the library's own. Cost: two calls a turn.
 */
PRUDENCE_API int prudence_domain_call_around(struct prudence_domain *domain, unsigned most,
                                             void (*begin)(void *argument),
                                             void (*end)(void *argument), void *argument);

/*
 * Wait until every callback of the default domain (or of `domain`) that was queued before this call
 * by the functions above has returned. Return 0, or at once EDEADLK in a callback, in a destructor,
 * inside a read-side critical section of any domain, or online in a qsbr domain other than `domain`
 * (reported with the caller's address and thread, once for each calling place), because callbacks
 * are the program's code and may wait for any domain. EBUSY in a handler of pthread_atfork that
 * runs between the library's own, because no callback runs then. EINVAL if the domain is NULL. If
 * the system allows no further thread, the callbacks run here.
 */
PRUDENCE_API int prudence_barrier(void);
PRUDENCE_API int prudence_domain_barrier(struct prudence_domain *domain);

/*
 * Works like prudence_barrier, and goes on while callbacks of the default domain wait that those
 * have queued, but not more than 100 times. So when a module is about to be unloaded, and its other
 * threads have ended, none of its callbacks remains. Where prudence_barrier returns an error, this
 * does so without a report. For destructors of C++, which may run anywhere (<prudence/rcu.hpp>).
 */
PRUDENCE_API int prudence_barrier_nested(void);

/*
 * Works like prudence_domain_barrier, but returns ETIMEDOUT if callbacks still wait or run after
 * this number of nanoseconds. They run later, as without this call. The caller is late by one turn
 * of callbacks at most, if they run here.
 */
PRUDENCE_API int prudence_domain_barrier_timed(struct prudence_domain *domain,
                                               uint64_t nanoseconds);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_CALL_H */
