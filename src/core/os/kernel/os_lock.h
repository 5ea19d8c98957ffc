/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Locks with ranks, which are taken in the order in docs/explanation/design.md; lockdep checks it
 * if enabled. Of the ranks used by slab, a node's lock is a spinlock taken with interrupts off,
 * because objects are freed in interrupts, and a raw one, because they are on PREEMPT_RT too. The
 * lock of the list of caches is a mutex, taken only where sleeping is allowed. No memory is
 * allocated under either, so a shrinker may take them. Pages are freed under the mutex, never
 * under a node's lock.
 */
#ifndef OS_KERNEL_LOCK_H
#define OS_KERNEL_LOCK_H

#include "base/atomic.h"
#include "base/base.h"

enum os_lock_rank {
    OS_RANK_CACHES = 1,
    OS_RANK_NODE,
};

struct os_lock {
    union {
        raw_spinlock_t spin;
        struct mutex mutex;
    };
    unsigned long flags; /* of the spinlock's holder */
    enum os_lock_rank rank;
};

/* os_lock_init() must complete the lock before any use. */
#define OS_LOCK_INIT(lock_rank)                                                                    \
    {                                                                                              \
        .rank = (lock_rank)                                                                        \
    }

void os_lock_init(struct os_lock *lock, enum os_lock_rank rank);
void os_lock_destroy(struct os_lock *lock);
void os_lock_take(struct os_lock *lock);
bool os_lock_try(struct os_lock *lock);
void os_lock_release(struct os_lock *lock);

/* A kernel does not fork with its allocator, so this just takes the lock. */
static inline void os_lock_take_for_fork(struct os_lock *lock)
{
    os_lock_take(lock);
}

static inline void os_lock_release_from_fork(struct os_lock *lock)
{
    os_lock_release(lock);
}

/* The owner of a CPU's caches is not preempted, so others find them owned for no longer than a few
 * hundred instructions. */
static inline void os_busy_enter(void)
{
    preempt_disable();
}

static inline void os_busy_leave(void)
{
    preempt_enable();
}

/* Called before a constructor. Empty, because the kernel checks the context (lockdep,
 * might_sleep). */
static inline void os_foreign_call(const char *what)
{
    (void)what;
}

/* Only a process that forks needs these (os/posix/os_lock.h). */
static inline void os_hands_full(void)
{
}

static inline void os_hands_empty(void)
{
}

static inline void os_visit_begin(void)
{
}

static inline void os_visit_end(void)
{
}

static inline void os_in_flight_begin(void)
{
}

static inline bool os_in_flight_try(void)
{
    return true;
}

static inline void os_in_flight_end(void)
{
}

#endif /* OS_KERNEL_LOCK_H */
