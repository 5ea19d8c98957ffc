// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* A spinlock or a mutex, depending on the rank (os_lock.h). Sparse cannot check a lock that may be
 * either. */
#include "os/os.h"

static struct lock_class_key class_of_mutex, class_of_spinlock;

void os_lock_init(struct os_lock *lock, enum os_lock_rank rank)
{
    lock->rank = rank;
    if (rank == OS_RANK_NODE) {
        raw_spin_lock_init(&lock->spin);
        lockdep_set_class_and_name(&lock->spin, &class_of_spinlock, "prudence_node");
    } else {
        __mutex_init(&lock->mutex, "prudence_caches", &class_of_mutex);
    }
}

void os_lock_destroy(struct os_lock *lock)
{
    if (lock->rank != OS_RANK_NODE)
        mutex_destroy(&lock->mutex);
}

void os_lock_take(struct os_lock *lock)
{
    unsigned long flags;

    if (lock->rank != OS_RANK_NODE) {
        mutex_lock(&lock->mutex);
        return;
    }
    raw_spin_lock_irqsave(&lock->spin, flags);
    lock->flags = flags;
}

bool os_lock_try(struct os_lock *lock)
{
    unsigned long flags;

    if (lock->rank != OS_RANK_NODE)
        return mutex_trylock(&lock->mutex);
    if (!raw_spin_trylock_irqsave(&lock->spin, flags))
        return false;
    lock->flags = flags;
    return true;
}

void os_lock_release(struct os_lock *lock)
{
    if (lock->rank != OS_RANK_NODE)
        mutex_unlock(&lock->mutex);
    else
        raw_spin_unlock_irqrestore(&lock->spin, lock->flags);
}
