/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A lock with a rank (the order is that of docs/explanation/design.md; lockdep checks it where it is on). Of the
 * ranks that src/slab has, a node's is a spinlock with interrupts off, since objects come and go in
 * interrupts, and a raw one, since they do on PREEMPT_RT, too; the list of caches is a mutex, which is
 * taken only where sleeping is allowed. No memory is allocated or given back under either, so a shrinker may
 * take them.
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

/* Not ready yet: os_lock_init completes it before anybody comes. */
#define OS_LOCK_INIT(lock_rank)                                                                    \
    {                                                                                              \
        .rank = (lock_rank)                                                                        \
    }

void os_lock_init(struct os_lock *lock, enum os_lock_rank rank);
void os_lock_destroy(struct os_lock *lock);
void os_lock_take(struct os_lock *lock);
bool os_lock_try(struct os_lock *lock);
void os_lock_release(struct os_lock *lock);

/* A process forks with its allocator, a kernel does not: nothing more than taking. */
static inline void os_lock_take_for_fork(struct os_lock *lock)
{
    os_lock_take(lock);
}

static inline void os_lock_release_from_fork(struct os_lock *lock)
{
    os_lock_release(lock);
}

/* While somebody owns a CPU's caches it is not preempted, so that others find them owned for no longer
 * than its few hundred instructions. */
static inline void os_busy_enter(void)
{
    preempt_disable();
}

static inline void os_busy_leave(void)
{
    preempt_enable();
}

/* Before a constructor is called; the kernel checks itself what may be done where (lockdep, might_sleep). */
static inline void os_foreign_call(const char *what)
{
    (void)what;
}

/* What fork wants to know: see os/posix/os_lock.h. */
static inline void os_hands_full(void)
{
}

static inline void os_hands_empty(void)
{
}

static inline void os_carry_begin(void)
{
}

static inline bool os_carry_try(void)
{
    return true;
}

static inline void os_carry_end(void)
{
}

#endif /* OS_KERNEL_LOCK_H */
