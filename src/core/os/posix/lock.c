/* SPDX-License-Identifier: MIT */
/* Lock construction, waiting for a lock, and in debug builds the check of lock ranks (see
 * os_lock.h). */
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/os.h"

void os_lock_init(struct os_lock *lock, enum os_lock_rank rank)
{
    /* Like pthread_mutex_init, whose write a race detector would call unordered. */
    lock->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    lock->rank = rank;
    lock->held_by_fork = false;
}

void os_lock_destroy(struct os_lock *lock)
{
    if (likely(!race_detector_on))
        pthread_mutex_destroy(&lock->mutex);
}

__thread bool os_lock_forking;
__thread unsigned os_busy, os_busy_of_fork, os_hands;

void os_lock_take_for_fork(struct os_lock *lock)
{
    os_lock_take(lock);
    store_relaxed(&lock->held_by_fork, true);
}

void os_lock_release_from_fork(struct os_lock *lock)
{
    if (!load_relaxed(&lock->held_by_fork))
        return;
    store_relaxed(&lock->held_by_fork, false);
    os_lock_release(lock);
}

/* Panics if the lock's holder does not exist. In a copy made without fork's handlers, the holder
 * may be a thread of the original. */
static void check_holder(const struct os_lock *lock)
{
#ifdef __GLIBC__
    int holder = load_relaxed(&lock->mutex.__data.__owner);

    if (holder && syscall(SYS_tgkill, getpid(), holder, 0) && errno == ESRCH)
        os_panic(
            "a lock of the library is held by thread %d, which process %d does not have: _Fork or "
            "clone made the process while that thread was in the library (use fork)",
            holder, (int)getpid());
#else
    (void)lock;
#endif
}

/* Names that tracers show for the lock a thread waits for. */
static const char *const rank_names[OS_RANK_COUNT] = {
    [OS_RANK_OPTIONS] = "options",
    [OS_RANK_STRUCTURES] = "writers of tables",
    [OS_RANK_URCU] = "workers of liburcu",
    [OS_RANK_SCM] = "short-term memory",
    [OS_RANK_HEAP] = "heap",
    [OS_RANK_READERS] = "readers",
    [OS_RANK_STALL] = "stall reports",
    [OS_RANK_LOOK] = "names of retired objects",
    [OS_RANK_RETIRED] = "retired objects",
    [OS_RANK_CALLBACKS] = "callbacks",
    [OS_RANK_CALL_SET] = "queued callbacks",
    [OS_RANK_CACHES] = "caches",
    [OS_RANK_NODE] = "node",
    [OS_RANK_HANDS] = "objects to destroy",
    [OS_RANK_DEBUG] = "debugging",
    [OS_RANK_PAGES] = "pages",
    [OS_RANK_META] = "metadata",
};

#define SPINS 100

/*
 * Sleeps until this thread gets the mutex, and now and then tries itself. With many more threads
 * than CPUs, a woken thread waits long for a CPU while the lock is free. If all others slept on,
 * only that thread could get the lock in that time. A thread that tries by itself waits for a CPU
 * at the same time as the others, not after them.
 */
#define LOOK_MIN_NS 4000000
#define LOOK_MAX_NS 64000000

static void lock_sleep(struct os_lock *lock)
{
    struct timespec until;
    long pause = LOOK_MIN_NS;

    do {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += pause;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pause = pause < LOOK_MAX_NS ? 2 * pause : pause;
    } while (pthread_mutex_timedlock(&lock->mutex, &until));
}

/* Spins while another thread holds the lock. Returns true if this thread got the lock without
 * sleeping. */
static bool lock_spin(struct os_lock *lock)
{
    for (int i = 0; i < SPINS; i++) {
        os_relax();
        if (pthread_mutex_trylock(&lock->mutex) == 0)
            return true;
    }
    return false;
}

void os_lock_take_contended(struct os_lock *lock)
{
    bool sleeps;

    if (os_lock_is_mine_by_fork(lock))
        return;
    os_copy_check();
    if (unlikely(load_relaxed(&os_copy_made)))
        check_holder(lock);
    os_probe3(lock_wait, lock, rank_names[lock->rank], SPINS);
    sleeps = !lock_spin(lock);
    if (sleeps)
        lock_sleep(lock);
    os_probe3(lock_taken, lock, rank_names[lock->rank], (unsigned)sleeps);
}

#ifdef PRUDENCE_DEBUG

static __thread unsigned held_of_rank[OS_RANK_COUNT];

/* Counts nothing for the forking thread, which holds everything. */
void os_lock_note_taken(const struct os_lock *lock)
{
    if (os_lock_forking)
        return;
    for (unsigned rank = lock->rank + 1; rank < OS_RANK_COUNT; rank++)
        debug_assert(held_of_rank[rank] == 0);
    os_lock_note_tried(lock);
}

void os_lock_note_tried(const struct os_lock *lock)
{
    held_of_rank[lock->rank] += !os_lock_forking;
}

void os_lock_note_released(const struct os_lock *lock)
{
    if (os_lock_forking)
        return;
    debug_assert(held_of_rank[lock->rank] > 0);
    held_of_rank[lock->rank]--;
}

void os_foreign_call(const char *what)
{
    if (os_busy && !os_lock_forking)
        os_panic("the library calls a foreign function (%s) with %u locks or CPU caches held", what,
                 os_busy);
}

void os_mapping_call(void)
{
    if (!os_holds_nothing())
        os_panic("the library changes a mapping with %u locks or CPU caches held",
                 os_busy - os_hands);
}

unsigned os_locks_held(void)
{
    unsigned held = 0;

    for (int rank = 0; rank < OS_RANK_COUNT && !os_lock_forking; rank++)
        held += held_of_rank[rank];
    return held;
}

#else

unsigned os_locks_held(void)
{
    return 0;
}

#endif
