/* SPDX-License-Identifier: MIT */
/* Lock construction, and in debug builds the check of lock ranks (see os_lock.h). */
#include "os/os.h"

void os_lock_init(struct os_lock *lock, enum os_lock_rank rank)
{
    pthread_mutex_init(&lock->mutex, NULL);
    lock->rank = rank;
}

void os_lock_destroy(struct os_lock *lock)
{
    pthread_mutex_destroy(&lock->mutex);
}

#define SPINS 100

void os_lock_take_contended(struct os_lock *lock)
{
    for (int spin = 0; spin < SPINS; spin++) {
        os_relax();
        if (pthread_mutex_trylock(&lock->mutex) == 0)
            return;
    }
    pthread_mutex_lock(&lock->mutex);
}

#ifdef PRUDENCE_DEBUG

static __thread unsigned held_of_rank[OS_RANK_COUNT];

void os_lock_note_taken(const struct os_lock *lock)
{
    for (int rank = lock->rank + 1; rank < OS_RANK_COUNT; rank++)
        debug_assert(held_of_rank[rank] == 0);
    os_lock_note_tried(lock);
}

void os_lock_note_tried(const struct os_lock *lock)
{
    held_of_rank[lock->rank]++;
}

void os_lock_note_released(const struct os_lock *lock)
{
    debug_assert(held_of_rank[lock->rank] > 0);
    held_of_rank[lock->rank]--;
}

unsigned os_locks_held(void)
{
    unsigned held = 0;

    for (int rank = 0; rank < OS_RANK_COUNT; rank++)
        held += held_of_rank[rank];
    return held;
}

#else

unsigned os_locks_held(void)
{
    return 0;
}

#endif
