/* SPDX-License-Identifier: MIT */
/*
 * Counts of threads that carry objects, so that fork and walks over the heap can wait for them (os_lock.h).
 *
 * Counters in stripes, by CPU: two locked additions for a batch of objects, and no line that all CPUs
 * share. A carrier that is moved to another CPU takes its addition from the stripe that it added to.
 *
 * A carrier adds to its stripe, then looks whether a fork has stopped all; fork says so, then looks at the stripes.
 * Both additions are seq-cst (the fork's is followed by a full fence), so one of the two sees the other. The same holds for a
 * walk, which keeps forks and other walks away by the lock of the list of caches. A carrier that
 * sees the fork takes its addition back: a child that was copied in between has that addition, and not the thread, so
 * it sets all stripes anew (os_carry_forget_others).
 */
#include "os/os.h"

#define STRIPES 128 /* CPUs beyond share them */

static struct {
    uint32_t carriers;
    char pad[CACHE_LINES_APART - sizeof(uint32_t)];
} stripes[STRIPES] __attribute__((aligned(CACHE_LINES_APART)));

static uint32_t stopped READ_MOSTLY = 0; /* by a fork or a walk */
static __thread unsigned depth __attribute__((tls_model("initial-exec")));
static __thread uint32_t *stripe __attribute__((tls_model("initial-exec"))); /* added to */

bool os_carry_try(void)
{
    os_busy_enter();
    if (!depth) /* before it is known to carry: a copy made here looks at it */
        stripe = &stripes[os_cpu_current() % STRIPES].carriers;
    if (depth++ || os_lock_forking)
        return true;
    __atomic_fetch_add(stripe, 1, __ATOMIC_SEQ_CST);
    if (likely(!__atomic_load_n(&stopped, __ATOMIC_SEQ_CST)))
        return true;
    __atomic_fetch_sub(stripe, 1, __ATOMIC_RELEASE);
    depth--;
    os_busy_leave();
    return false;
}

void os_carry_begin(void)
{
    while (unlikely(!os_carry_try()))
        os_sleep_ns(10000);
}

/* Release: what was carried is where it belongs. */
void os_carry_end(void)
{
    if (--depth == 0 && !os_lock_forking)
        __atomic_fetch_sub(stripe, 1, __ATOMIC_RELEASE);
    os_busy_leave();
    os_later_check();
}

/* Acquire: what was carried is where it belongs. */
void os_carry_stop(void)
{
    __atomic_store_n(&stopped, 1u, __ATOMIC_SEQ_CST);
    os_full_fence();
    for (unsigned i = 0; i < STRIPES; i++)
        while (load_acquire(&stripes[i].carriers))
            os_sleep_ns(1000);
}

void os_carry_go_on(void)
{
    store_release(&stopped, 0u);
}

void os_carry_forget_others(void)
{
    for (unsigned i = 0; i < STRIPES; i++)
        store_relaxed(&stripes[i].carriers, 0u);
    if (depth)
        store_relaxed(stripe, 1u);
}
