/* SPDX-License-Identifier: MIT */
/*
 * A sleeping lock with a rank. Locks are taken in ascending rank; a thread that takes one out of
 * order, or waits for a grace period with one held, stops a debug build at once (lock order
 * inversions are found without having to meet the deadlock).
 */
#ifndef OS_POSIX_LOCK_H
#define OS_POSIX_LOCK_H

#include <pthread.h>

#include "base/base.h"

/* Every lock of the library, in the order in which they may be taken. Node locks of different
 * nodes are never held together, save by fork, which takes them in one fixed order. */
enum os_lock_rank {
    OS_RANK_HEAP = 1,
    OS_RANK_READERS,
    OS_RANK_CACHES,
    OS_RANK_NODE,
    OS_RANK_GIVE_BACK,
    OS_RANK_PAGES,
    OS_RANK_META,
    OS_RANK_COUNT,
};

struct os_lock {
    pthread_mutex_t mutex;
    enum os_lock_rank rank;
};

#define OS_LOCK_INIT(lock_rank)                                                                    \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .rank = (lock_rank)                                    \
    }

void os_lock_init(struct os_lock *lock, enum os_lock_rank rank);
void os_lock_destroy(struct os_lock *lock);

#ifdef PRUDENCE_DEBUG
void os_lock_note_taken(const struct os_lock *lock);
void os_lock_note_tried(const struct os_lock *lock); /* in any order: it cannot deadlock */
void os_lock_note_released(const struct os_lock *lock);
#else
static inline void os_lock_note_taken(const struct os_lock *lock)
{
    (void)lock;
}
static inline void os_lock_note_tried(const struct os_lock *lock)
{
    (void)lock;
}
static inline void os_lock_note_released(const struct os_lock *lock)
{
    (void)lock;
}
#endif

/* How many locks of the library this thread holds; always 0 without PRUDENCE_DEBUG. */
unsigned os_locks_held(void);

/* Spins a little before it sleeps: sections are a microsecond long, a sleep costs ten. */
void os_lock_take_contended(struct os_lock *lock);

static inline void os_lock_take(struct os_lock *lock)
{
    os_lock_note_taken(lock);
    if (unlikely(pthread_mutex_trylock(&lock->mutex)))
        os_lock_take_contended(lock);
}

static inline bool os_lock_try(struct os_lock *lock)
{
    if (pthread_mutex_trylock(&lock->mutex))
        return false;
    os_lock_note_tried(lock);
    return true;
}

static inline void os_lock_release(struct os_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
    os_lock_note_released(lock);
}

#endif /* OS_POSIX_LOCK_H */
