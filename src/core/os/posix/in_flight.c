/* SPDX-License-Identifier: MIT */
/*
 * Counts threads that carry objects, so that fork and walks over the heap can wait for them
 * (os_lock.h).
 *
 * Counters are in stripes, by CPU, so a batch of objects costs two locked additions, and no cache
 * line is shared by all CPUs. A carrier that moves to another CPU subtracts from the stripe that it
 * added to.
 *
 * A carrier adds to a stripe, then checks whether a fork has stopped all. Fork sets
 * `in_flight_stopped`, then checks the stripes. Both accesses are seq-cst (the fork's is followed
 * by a full fence), so at least one of the two sees the other. The same holds for a walk, which
 * excludes forks and other walks by the lock of the list of caches. A carrier that sees the fork
 * undoes the addition. A child copied in between has the addition but not the thread, so the child
 * resets all stripes (os_in_flight_forget_others).
 *
 * A signal handler may fork between any two instructions here. In the child it may return, and the
 * interrupted code goes on. Whether that still adds or subtracts is unknown, and it may have read
 * the address already. So there are two sets of stripes, of which one is in use, and a child
 * changes to the set in which its thread's `stripe` is not. The thread's `depth` rises after the
 * addition and falls before the subtraction, with a compiler barrier in between, which is enough
 * for a handler on the same thread:
 *
 *   - `depth` is 0: the thread is outside, or one of the two may or may not be done. If it comes,
 *     it goes to the old set, which no thread reads, and so does the subtraction that belongs to an
 *     addition there.
 *   - `depth` is more: the addition is done, and the subtraction will read `stripe` again. So the
 *     thread counts as 1 in the new set, and `stripe` points there.
 *
 * A thread that was interrupted before its `depth` rose is not counted in the child until it begins
 * again. No fork misses it, because the child has no other thread until the handler returns.
 */
#include "os/os.h"

#define STRIPES 128 /* in a set; more CPUs share them */

static struct stripe {
    uint32_t carriers;
    char pad[CACHE_LINES_APART - sizeof(uint32_t)];
} stripes[2 * STRIPES] __attribute__((aligned(CACHE_LINES_APART)));

static uint32_t first_stripe READ_MOSTLY = 0;      /* of the set in use; atomic */
static uint32_t in_flight_stopped READ_MOSTLY = 0; /* by a fork or a walk */
static __thread unsigned depth __attribute__((tls_model("initial-exec")));
/* Where the thread counts, or counted last. */
static __thread struct stripe *stripe __attribute__((tls_model("initial-exec")));

static struct stripe *stripe_at(unsigned number)
{
    return &stripes[load_relaxed(&first_stripe) + number];
}

/* Counts the thread, unless a fork or a walk has stopped all. */
static bool count_in(void)
{
    stripe = stripe_at(os_cpu_current() % STRIPES);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* a fork from here on reads `stripe` */
    __atomic_fetch_add(&stripe->carriers, 1, __ATOMIC_SEQ_CST);
    if (likely(!__atomic_load_n(&in_flight_stopped, __ATOMIC_SEQ_CST)))
        return true;
    __atomic_fetch_sub(&stripe->carriers, 1, __ATOMIC_RELEASE);
    return false;
}

bool os_in_flight_try(void)
{
    os_busy_enter();
    if (!depth && !os_lock_forking && unlikely(!count_in())) {
        os_busy_leave();
        return false;
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* see the head of this file; the same below */
    depth++;
    return true;
}

void os_in_flight_begin(void)
{
    while (unlikely(!os_in_flight_try()))
        os_sleep_ns(10000);
}

/* Release: carried objects have arrived. */
void os_in_flight_end(void)
{
    bool outermost = --depth == 0;

    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (outermost && !os_lock_forking)
        __atomic_fetch_sub(&stripe->carriers, 1, __ATOMIC_RELEASE);
    os_busy_leave();
    os_later_check();
}

/* Acquire: carried objects have arrived. Asks for the set each time, because the child of a handler
 * that interrupted this has the other one. */
void os_in_flight_stop(void)
{
    __atomic_store_n(&in_flight_stopped, 1u, __ATOMIC_SEQ_CST);
    os_full_fence();
    for (unsigned i = 0; i < STRIPES; i++)
        while (load_acquire(&stripe_at(i)->carriers))
            os_sleep_ns(1000);
}

void os_in_flight_go_on(void)
{
    store_release(&in_flight_stopped, 0u);
}

void os_in_flight_forget_others(void)
{
    unsigned mine = stripe ? (unsigned)(stripe - stripes) : 0, first = mine < STRIPES ? STRIPES : 0;

    for (unsigned i = 0; i < STRIPES; i++)
        store_relaxed(&stripes[first + i].carriers, 0u);
    if (depth) {
        stripe = &stripes[first + mine % STRIPES];
        store_relaxed(&stripe->carriers, 1u);
    }
    store_relaxed(&first_stripe, first);
}
