/* SPDX-License-Identifier: MIT */
/*
 * Lock construction, waiting for a lock, and in debug builds the check of lock ranks (see
 * os_lock.h).
 *
 * A thread that waits spins, then sleeps until the release, and if that is late lends its priority
 * to the holder: a holder without a CPU then runs as soon as the waiter would. The kernel knows how
 * to lend for its own kind of lock (FUTEX_LOCK_PI), but passes that lock on to the first waiter,
 * and a lock that many threads want would lie idle until that one has a CPU. So the kernel does not
 * see the lock, but a word beside it, the lent word. A waiter writes the holder's id there, as if
 * the holder had locked it, and then waits for that word. The holder passes the word on after it
 * has released the lock. A thread that gets the word passes it on at once, and tries to take the
 * lock.
 *
 * The holder must see each lent word. A waiter marks the lock's word, writes the lent word, and
 * then checks that the lock's word is still the same. A holder clears the lock's word, sees the
 * mark, and then checks the lent word. All these are sequentially consistent, so at least one of
 * the two sees the other. If only the waiter does, it takes the word back. A holder that is never
 * seen to pass a word on (a thread in a copy of the process) costs the waiter a timeout.
 */
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"
#include "posix.h"
#include "race_detector.h"

void os_lock_init(struct os_lock *lock, enum os_lock_rank rank)
{
    lock->word = 0;
    lock->rank = rank;
    lock->held_by_fork = false;
}

__thread bool os_lock_forking;
__thread unsigned os_busy, os_busy_of_fork, os_hands;
/* This thread's id, as locks name it; 0 until the first lock. */
static __thread uint32_t lock_id __attribute__((tls_model("initial-exec")));

enum { ID_UNKNOWN = (1 << 30) - 1 }; /* no thread's id, because these are smaller */

/* This thread's id if it was made in a copy of the process that nobody had noticed (copy.c). */
static __thread int made_in_copy_as;

uint32_t os_lock_id_find(void)
{
    bool is_first = lock_id == 0;
    int id;

    lock_id = ID_UNKNOWN; /* until then, for a program's pthread_mutex_lock() that allocates */
    id = posix_thread_id_known();
    if (id)
        lock_id = (uint32_t)id;
    if (is_first && os_copy_is_unnoticed())
        made_in_copy_as = id;
    return lock_id;
}

/* The C library changes the id of the thread that makes the copy. */
bool posix_thread_is_of_original(void)
{
    if (!lock_id)
        os_lock_id_find();
    return !made_in_copy_as || made_in_copy_as != posix_thread_id_known();
}

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

/* What the first thread of a copy had in the original. It may hold locks by this name. */
static uint32_t first_was;

/* Panics if the lock's holder does not exist. In a copy made without fork's handlers, the holder
 * may be a thread of the original. */
static void check_holder(const struct os_lock *lock)
{
    uint32_t holder = load_relaxed(&lock->word) & ~OS_LOCK_AWAITED;

    if (!load_relaxed(&os_copy_made) || os_copy_is_unnoticed())
        return;
    if (holder && holder != load_relaxed(&first_was) && holder != ID_UNKNOWN &&
        syscall(SYS_tgkill, getpid(), holder, 0) && errno == ESRCH)
        os_panic(
            "a lock of the library is held by thread %u, which process %d does not have: _Fork or "
            "clone made the process while that thread was in the library (use fork)",
            holder, (int)getpid());
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

/* Policy: how does a thread wait for a lock? */
#define SPINS       100                /* tries; before the first sleep */
#define LEND_NS     UINT64_C(100000)   /* ns; a holder that has a CPU is done long before */
#define LOOK_MIN_NS UINT64_C(4000000)  /* ns; the first of the later sleeps, which double */
#define LOOK_MAX_NS UINT64_C(64000000) /* ns; the longest sleep between two tries */

/* -------------------------------------------------------------------------------------- lending */

enum { LENT_WORDS = 64 }; /* a power of two; few locks have real-time waiters at a time */

/* Each the id of a thread to which threads lend their priority, or 0, and POSIX_WORD_AWAITED. Locks
 * share them by their addresses. Static, because a holder passes the word on after the release,
 * when the lock may no longer exist. */
static uint32_t lent_words[LENT_WORDS];
static bool cannot_lend; /* the system refuses; atomic */

static uint32_t *lent_word(const struct os_lock *lock)
{
    return &lent_words[(uintptr_t)lock * UINT64_C(0x9e3779b97f4a7c15) >> 58];
}

/* Removes a holder from a lent word if no thread may have seen it there. */
static void take_back(uint32_t *lent, uint32_t holder)
{
    compare_exchange(lent, &holder, 0u);
}

/*
 * Lends this thread's priority to the holder that the lock's word names, until the release, for at
 * most `pause` ns. Returns false if it cannot. If threads lend to another holder by the same word,
 * which is for a moment, sleeps for a moment.
 */
static bool lend(struct os_lock *lock, uint32_t word, uint64_t pause)
{
    uint32_t *lent = lent_word(lock), holder = word & ~OS_LOCK_AWAITED, before = 0;
    int error;

    if (load_relaxed(&cannot_lend) || load_relaxed(&os_calls) == OS_CALLS_FEW ||
        holder == ID_UNKNOWN)
        return false;
    if (!compare_exchange(lent, &before, holder) && (before & ~POSIX_WORD_AWAITED) != holder) {
        posix_word_wait(&lock->word, word, LEND_NS);
        return true;
    }
    if (load_ordered(&lock->word) != word) {
        if (!before)
            take_back(lent, holder);
        return true;
    }
    error = posix_word_lock(lent, pause);
    if (!error) {
        posix_word_pass_on(lent);
        return true;
    }
    take_back(lent, holder);
    take_back(lent, holder | POSIX_WORD_AWAITED);
    if (error == ENOSYS || error == EPERM) /* others end with this holder */
        store_relaxed(&cannot_lend, true);
    return error == ETIMEDOUT;
}

void os_lock_fork_child(void)
{
    store_relaxed(&first_was, lock_id);
    os_lock_id_find();
    for (unsigned i = 0; i < LENT_WORDS; i++)
        store_relaxed(&lent_words[i], 0u);
}

/* Called after the release of a lock that was awaited. Does not access the lock, which may no
 * longer exist. */
static void lock_wake(struct os_lock *lock)
{
    uint32_t *lent = lent_word(lock);
    int saved_errno = errno;

    posix_word_wake(&lock->word, 1);
    if (unlikely((load_ordered(lent) & ~POSIX_WORD_AWAITED) == lock_id))
        posix_word_pass_on(lent);
    errno = saved_errno;
}

/* ---------------------------------------------------------------------------------------- ranks */

#ifdef PRUDENCE_DEBUG

static __thread unsigned held_of_rank[OS_RANK_COUNT];

/* Notes a try-lock, which may be in any order because it cannot deadlock. */
static void note_tried(const struct os_lock *lock)
{
    held_of_rank[lock->rank] += !os_lock_forking;
}

/* Counts nothing for the forking thread, which holds everything. */
static void note_taken(const struct os_lock *lock)
{
    if (os_lock_forking)
        return;
    for (unsigned rank = lock->rank + 1; rank < OS_RANK_COUNT; rank++)
        debug_assert(held_of_rank[rank] == 0);
    note_tried(lock);
}

static void note_released(const struct os_lock *lock)
{
    if (os_lock_forking)
        return;
    debug_assert(held_of_rank[lock->rank] > 0);
    held_of_rank[lock->rank]--;
}

#else

static inline void note_taken(const struct os_lock *lock)
{
    (void)lock;
}

static inline void note_tried(const struct os_lock *lock)
{
    (void)lock;
}

static inline void note_released(const struct os_lock *lock)
{
    (void)lock;
}

#endif

static bool is_mine_by_fork(const struct os_lock *lock)
{
    return load_relaxed(&lock->held_by_fork) && os_lock_forking;
}

/* -------------------------------------------------------------------------------------- waiting */

/* Takes the lock if it is free, and returns 0. Otherwise returns its word. Marks it in both cases,
 * because other threads may sleep when this one has the lock. */
static uint32_t take_or_mark(struct os_lock *lock)
{
    uint32_t word = load_relaxed(&lock->word);

    for (;;) {
        uint32_t marked = (word ? word : lock_id) | OS_LOCK_AWAITED;

        if (word == marked || compare_exchange(&lock->word, &word, marked))
            return word ? marked : 0;
    }
}

/*
 * Sleeps until this thread gets the lock, and now and then tries itself. With many more threads
 * than CPUs, a woken thread waits long for a CPU while the lock is free. If all others slept on,
 * only that thread could get the lock in that time. A thread that tries by itself waits for a CPU
 * at the same time as the others, not after them.
 */
static void lock_sleep(struct os_lock *lock)
{
    int saved_errno = errno;
    uint64_t pause = 0;
    uint32_t word;

    while ((word = take_or_mark(lock))) {
        if (!pause)
            posix_word_wait(&lock->word, word, LEND_NS);
        else if (!lend(lock, word, pause))
            posix_word_wait(&lock->word, word, pause);
        pause = pause ? min_u64(2 * pause, LOOK_MAX_NS) : LOOK_MIN_NS;
        check_holder(lock); /* another thread may have noticed a copy by now */
    }
    tell_acquire(lock);
    errno = saved_errno;
}

/* Takes the lock if it is free. */
static inline bool take_free(struct os_lock *lock)
{
    uint32_t nobody = 0, id = lock_id;

    if (unlikely(!id))
        id = os_lock_id_find();
    if (!compare_exchange(&lock->word, &nobody, id))
        return false;
    tell_acquire(lock);
    return true;
}

/* Spins while another thread holds the lock. Returns true if this thread got the lock without
 * sleeping. */
static bool lock_spin(struct os_lock *lock)
{
    for (int i = 0; i < SPINS; i++) {
        os_relax();
        if (take_free(lock))
            return true;
    }
    return false;
}

/* Spins a little before it sleeps, because sections last a microsecond and a sleep costs ten. */
static void __attribute__((noinline)) lock_take_contended(struct os_lock *lock)
{
    bool sleeps;

    if (is_mine_by_fork(lock))
        return;
    os_copy_check();
    check_holder(lock);
    os_probe3(lock_wait, lock, rank_names[lock->rank], SPINS);
    sleeps = !lock_spin(lock);
    if (sleeps)
        lock_sleep(lock);
    os_probe3(lock_taken, lock, rank_names[lock->rank], (unsigned)sleeps);
}

void os_lock_take(struct os_lock *lock)
{
    os_busy_enter();
    note_taken(lock);
    if (unlikely(!take_free(lock)))
        lock_take_contended(lock);
}

bool os_lock_try(struct os_lock *lock)
{
    os_busy_enter();
    if (take_free(lock)) {
        note_tried(lock);
        return true;
    }
    if (is_mine_by_fork(lock))
        return true;
    os_busy_leave();
    return false;
}

void os_lock_release(struct os_lock *lock)
{
    if (likely(!is_mine_by_fork(lock))) {
        note_released(lock);
        tell_release(lock);
        if (unlikely(exchange_ordered(&lock->word, 0u) & OS_LOCK_AWAITED))
            lock_wake(lock);
    }
    os_busy_leave();
}

#ifdef PRUDENCE_DEBUG

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
