/* SPDX-License-Identifier: MIT */
/*
 * Cases of the explorer itself. They prove that it sees violations, so that a case does not hold
 * only because the explorer is blind. Those whose names begin with "breaks-" must be found to be
 * violated.
 */
#include "explorer.h"
#include "os/os.h"
#include "posix.h"

static uint64_t x, y, seen[2]; /* x, y: atomic */
static uint64_t data;
static pthread_mutex_t mutex;

/* ----------------------------------------------------- store buffering, with fences and without */

static bool fences[2], fences_all;

static void stores_and_loads(void *number)
{
    uintptr_t mine = (uintptr_t)number;

    store_relaxed(mine ? &y : &x, (uint64_t)1);
    if (fences[mine])
        os_full_fence();
    else if (mine && fences_all)
        os_membarrier();
    else
        compiler_barrier();
    seen[mine] = load_relaxed(mine ? &x : &y);
}

static void one_was_seen(void)
{
    explore_assert(seen[0] || seen[1]);
    explore_note();
}

static void make_two(bool first, bool second, bool all)
{
    fences[0] = first;
    fences[1] = second;
    fences_all = all;
    for (uintptr_t i = 0; i < 2; i++)
        explore_thread(stores_and_loads, (void *)i);
}

CASE_THEN("breaks-store-buffering", no_fences, one_was_seen, 2, 2)
{
    make_two(false, false, false);
}

CASE_THEN("breaks-store-buffering-one-fence", one_fence, one_was_seen, 2, 2)
{
    make_two(true, false, false);
}

CASE_THEN("store-buffering-two-fences", two_fences, one_was_seen, 6, 6)
{
    make_two(true, true, false);
}

CASE_THEN("store-buffering-membarrier", a_remote_fence, one_was_seen, 6, 6)
{
    make_two(false, false, true);
}

/* ------------------------------------------ of two stores to a word the first may be seen alone */

static void stores_twice(void *unused)
{
    (void)unused;
    store_relaxed(&x, (uint64_t)1);
    store_relaxed(&x, (uint64_t)2);
    seen[0] = load_relaxed(&y);
}

static void stores_and_looks(void *unused)
{
    (void)unused;
    store_relaxed(&y, (uint64_t)1);
    os_full_fence();
    seen[1] = load_relaxed(&x);
}

static void not_the_first_alone(void)
{
    explore_assert(seen[0] || seen[1] != 1);
}

CASE_THEN("breaks-two-stores", two_stores, not_the_first_alone, 2, 2)
{
    explore_thread(stores_twice, NULL);
    explore_thread(stores_and_looks, NULL);
}

/* ------------------------------------------------------------------------------ message passing */

static bool releases;

static void sends(void *unused)
{
    (void)unused;
    store_relaxed(&x, (uint64_t)1);
    if (releases)
        store_release(&y, (uint64_t)1);
    else
        store_relaxed(&y, (uint64_t)1);
}

static void receives(void *unused)
{
    (void)unused;
    seen[0] = load_acquire(&y);
    seen[1] = load_relaxed(&x);
}

static void message_came_whole(void)
{
    explore_assert(!seen[0] || seen[1]);
    explore_note();
}

CASE_THEN("breaks-relaxed-message", relaxed_message, message_came_whole, 3, 3)
{
    explore_thread(sends, NULL);
    explore_thread(receives, NULL);
}

CASE_THEN("released-message", released_message, message_came_whole, 6, 6)
{
    releases = true;
    relaxed_message();
}

/* -------------------------------------------------------------------------- races on plain data */

static bool locks;

static void counts(void *unused)
{
    (void)unused;
    if (locks)
        pthread_mutex_lock(&mutex);
    data++;
    explore_note();
    if (locks)
        pthread_mutex_unlock(&mutex);
}

CASE("breaks-unlocked-count", unlocked_count, 0, 0)
{
    explore_thread(counts, NULL);
    explore_thread(counts, NULL);
}

CASE("locked-count", locked_count, 6, 6)
{
    locks = true;
    unlocked_count();
}

/* --- an increment under a lock (McKenney, "Exploiting Deferred Destruction", 2004, 2.9 to 2.11) */

static bool early, ordered; /* loads before it takes the lock; the lock has its barriers */

/* y is the lock. */
static void increments(void *unused)
{
    uint64_t value = early ? load_relaxed(&x) : 0;

    (void)unused;
    while (__atomic_exchange_n(&y, 1, ordered ? __ATOMIC_ACQUIRE : __ATOMIC_RELAXED))
        os_relax();
    if (!early)
        value = load_relaxed(&x);
    store_relaxed(&x, value + 1);
    __atomic_store_n(&y, 0, ordered ? __ATOMIC_RELEASE : __ATOMIC_RELAXED);
}

static void none_is_lost(void)
{
    explore_assert(load_relaxed(&x) == 2);
    explore_note();
}

CASE_THEN("breaks-increment-out-of-order", increment_out_of_order, none_is_lost, 2, 2)
{
    early = true;
    ordered = true;
    explore_thread(increments, NULL);
    explore_thread(increments, NULL);
}

CASE_THEN("breaks-increment-without-barriers", increment_without_barriers, none_is_lost, 3, 3)
{
    explore_thread(increments, NULL);
    explore_thread(increments, NULL);
}

CASE_THEN("increment-with-barriers", increment_with_barriers, none_is_lost, 6, 6)
{
    ordered = true;
    increment_without_barriers();
}

/* -------------------------------------------------------------------- freed memory, and hanging */

static uint64_t *block;

static void uses_block(void *unused)
{
    (void)unused;
    if (load_acquire(&x))
        explore_assert(*block == 0);
}

static void frees_block(void *unused)
{
    (void)unused;
    explore_free(block, sizeof *block);
    store_release(&x, (uint64_t)1);
}

CASE("breaks-use-after-free", use_after_free, 1, 1)
{
    block = explore_alloc(sizeof *block);
    explore_thread(uses_block, NULL);
    explore_thread(frees_block, NULL);
}

/* No thread wakes a sleeper that went to sleep after the other had checked. */
static void sleeps(void *unused)
{
    static uint32_t word;

    (void)unused;
    explore_note();
    os_word_wait(&word, 0, 0);
}

CASE("breaks-sleep-for-ever", sleep_for_ever, 0, 0)
{
    explore_thread(sleeps, NULL);
}

static void spins(void *unused)
{
    (void)unused;
    explore_note();
    while (!load_acquire(&x))
        os_relax();
}

CASE("breaks-spin-for-ever", spin_for_ever, 0, 0)
{
    explore_thread(spins, NULL);
}
