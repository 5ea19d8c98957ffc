/* SPDX-License-Identifier: MIT */
/* A test-and-test-and-set spin lock. A thread that spins long yields its CPU, because there may
 * be more threads than CPUs. */
#ifndef BENCH_STRUCTURES_SPIN_LOCK_H
#define BENCH_STRUCTURES_SPIN_LOCK_H

#include <sched.h>
#include <stdbool.h>

#define SPINS 1000

struct spin_lock {
    bool held; /* atomic */
};

static inline void spin_lock(struct spin_lock *lock)
{
    /* Acquire, so that no part of the section runs before the lock is taken. */
    while (__atomic_exchange_n(&lock->held, true, __ATOMIC_ACQUIRE))
        for (unsigned spins = 1; __atomic_load_n(&lock->held, __ATOMIC_RELAXED); spins++)
            if (spins % SPINS == 0)
                sched_yield();
}

static inline void spin_unlock(struct spin_lock *lock)
{
    __atomic_store_n(&lock->held, false,
                     __ATOMIC_RELEASE); /* release, so that no part of it runs after */
}

#endif /* BENCH_STRUCTURES_SPIN_LOCK_H */
