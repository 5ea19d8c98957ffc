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
 */
#include "os/os.h"

#define STRIPES 128 /* more CPUs share them */

static struct {
    uint32_t carriers;
    char pad[CACHE_LINES_APART - sizeof(uint32_t)];
} stripes[STRIPES] __attribute__((aligned(CACHE_LINES_APART)));

static uint32_t in_flight_stopped READ_MOSTLY = 0; /* by a fork or a walk */
static __thread unsigned depth __attribute__((tls_model("initial-exec")));
static __thread uint32_t *stripe __attribute__((tls_model("initial-exec"))); /* counted there */

bool os_in_flight_try(void)
{
    os_busy_enter();
    if (!depth) /* before the thread counts as a carrier, because a copy made now reads `stripe` */
        stripe = &stripes[os_cpu_current() % STRIPES].carriers;
    if (depth++ || os_lock_forking)
        return true;
    __atomic_fetch_add(stripe, 1, __ATOMIC_SEQ_CST);
    if (likely(!__atomic_load_n(&in_flight_stopped, __ATOMIC_SEQ_CST)))
        return true;
    __atomic_fetch_sub(stripe, 1, __ATOMIC_RELEASE);
    depth--;
    os_busy_leave();
    return false;
}

void os_in_flight_begin(void)
{
    while (unlikely(!os_in_flight_try()))
        os_sleep_ns(10000);
}

/* Release: carried objects have arrived. */
void os_in_flight_end(void)
{
    if (--depth == 0 && !os_lock_forking)
        __atomic_fetch_sub(stripe, 1, __ATOMIC_RELEASE);
    os_busy_leave();
    os_later_check();
}

/* Acquire: carried objects have arrived. */
void os_in_flight_stop(void)
{
    __atomic_store_n(&in_flight_stopped, 1u, __ATOMIC_SEQ_CST);
    os_full_fence();
    for (unsigned i = 0; i < STRIPES; i++)
        while (load_acquire(&stripes[i].carriers))
            os_sleep_ns(1000);
}

void os_in_flight_go_on(void)
{
    store_release(&in_flight_stopped, 0u);
}

void os_in_flight_forget_others(void)
{
    for (unsigned i = 0; i < STRIPES; i++)
        store_relaxed(&stripes[i].carriers, 0u);
    if (depth)
        store_relaxed(stripe, 1u);
}
