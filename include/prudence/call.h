/* SPDX-License-Identifier: MIT */
/*
 * Callbacks: a function that runs after a grace period, for objects whose end is more than a free.
 * Where a free is all, prudence_free_deferred() is cheaper and lets the allocator plan; where
 * objects of one cache all end alike, so is a cache with a destructor (<prudence/prudence.h>).
 *
 * Callbacks run on a thread of the library, which the first prudence_call() starts, one after the
 * other and with no lock of ours held; never inside an allocation, a free, or any other call of
 * the program. Those that one CPU queued run in the order in which they were queued. They may do
 * whatever a thread may: read, allocate, free, defer, queue callbacks (themselves again as well),
 * synchronize, wait for a cache (prudence_cache_barrier); not wait for callbacks, which is refused.
 * docs/reference/rcu.md has a table of what may be called where. One that blocks holds up all others of its domain, and
 * those of other domains that the same thread serves.
 *
 * Conventions of <prudence/prudence.h>. Fork: the child has the parent's callbacks as well, except
 * one that was running on another thread; they run once the child calls prudence_call or a
 * barrier: no thread is started before. Exit: callbacks that still wait do not run; a program that
 * needs them to calls prudence_barrier() first.
 */
#ifndef PRUDENCE_CALL_H
#define PRUDENCE_CALL_H

#include <prudence/prudence.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Stands in the object, anywhere; needs no preparation. From prudence_call until the callback
 * starts it is the library's: readers must not look at it, nobody may write it. */
struct prudence_head {
    struct prudence_head *next;
    void (*func)(struct prudence_head *head);
};

/*
 * Calls func(head) once every read-side critical section of the default domain (or of `domain`)
 * that is running now has ended. Call it after the object is unlinked. May be called inside a
 * section, in callbacks, and with any locks held. Always succeeds; errno is kept. A head that is
 * queued already is misuse, which the option check=1 reports at the second call.
 *
 * Where callbacks of more than the option `call_limit` wait, the caller is held back until there
 * are less, but never longer than `wait_max`, and not inside a section or a callback. Where more than 256 KB wait
 * while the thread that runs them, or a reader in the way, has no CPU, it may sleep for 4 ms, also in a section. Cost: some
 * 20 ns, and a system call if the thread sleeps. A callback runs some 50 to 100 microseconds after
 * its grace period could end, not at the next tick of a clock.
 */
PRUDENCE_API void prudence_call(struct prudence_head *head,
                                void (*func)(struct prudence_head *head));
PRUDENCE_API void prudence_domain_call(struct prudence_domain *domain, struct prudence_head *head,
                                       void (*func)(struct prudence_head *head));

/*
 * Waits until every callback of the default domain (or of `domain`) that was queued before this
 * call by the functions above has returned. Returns 0, or at once EDEADLK in a callback, in a destructor, inside
 * a read-side critical section of any domain, and online in a qsbr domain other than `domain` (reported with the
 * caller's address and thread, once for each calling place): the callbacks are the program's code, and
 * may wait for any domain. EINVAL for a domain that is NULL. Where the system gives us no thread, the
 * callbacks run here.
 */
PRUDENCE_API int prudence_barrier(void);
PRUDENCE_API int prudence_domain_barrier(struct prudence_domain *domain);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_CALL_H */
