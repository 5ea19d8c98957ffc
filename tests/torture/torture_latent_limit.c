/* SPDX-License-Identifier: MIT */
/*
 * Garbage under the limit: many more threads than CPUs, objects of 16 bytes to 256 KiB, readers
 * whose sections are short. No wait reaches wait_max here, so nothing excuses a byte above
 * latent_limit.
 *
 * The sum over all caches is exact only while nothing moves, so now and then all writers stop
 * between two operations, and the test checks it then. The account, which is never below the truth,
 * is compared with the limit at every instant, by the peak. The limit is latent_ceiling, which is
 * latent_limit where none is set.
 */
#define _GNU_SOURCE
#include "support/gp_torture.h"

#define WRITERS   16
#define READERS   3
#define OWNED     64
#define LEAST     1000 /* operations */
#define SMALLEST  16
#define DOUBLINGS 14 /* to 256 KiB */

static uint32_t halted;
static bool halt;
static uint64_t operations, halts, most_latent, longest_deferral;

/* Returns each order of magnitude equally often. */
static size_t random_size(uint64_t *random)
{
    size_t size = (size_t)SMALLEST << torture_below(random, DOUBLINGS);

    return size + torture_below(random, (unsigned)size + 1);
}

static void stop_if_told(void)
{
    if (!__atomic_load_n(&halt, __ATOMIC_ACQUIRE))
        return;
    __atomic_fetch_add(&halted, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&halt, __ATOMIC_ACQUIRE))
        torture_sleep_us(100);
    __atomic_fetch_sub(&halted, 1, __ATOMIC_ACQ_REL);
}

static void put(void *object, uint64_t *random)
{
    uint64_t began;

    if (torture_below(random, 8) == 0) {
        prudence_free(object);
        return;
    }
    began = torture_now();
    prudence_free_deferred(object);
    torture_raise(&longest_deferral, torture_now() - began);
}

static void *writer(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;
    void *objects[OWNED] = {NULL};

    for (; !torture_stopped(); __atomic_fetch_add(&operations, 1, __ATOMIC_RELAXED)) {
        void **object = &objects[torture_below(&random, OWNED)];

        if (*object) {
            put(*object, &random);
            *object = NULL;
        } else {
            *object = prudence_malloc(random_size(&random));
            TORTURE_CHECK(*object != NULL);
        }
        if (torture_below(&random, 1024) == 0) {
            torture_migrate(&random);
            torture_roam();
        }
        stop_if_told();
    }
    for (unsigned i = 0; i < OWNED; i++)
        if (objects[i])
            put(objects[i], &random);
    return NULL;
}

static void *reader(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;

    while (!torture_stopped()) {
        prudence_read_lock();
        if (torture_below(&random, 64) == 0)
            torture_sleep_us(torture_below(&random, 2000));
        prudence_read_unlock();
        if (torture_below(&random, 16) == 0)
            torture_sleep_us(50);
    }
    return NULL;
}

/* Checks the sum while all writers are between two operations. */
static void look(void)
{
    struct prudence_stats stats;

    __atomic_store_n(&halt, true, __ATOMIC_RELEASE);
    while (__atomic_load_n(&halted, __ATOMIC_ACQUIRE) < WRITERS)
        torture_sleep_us(50);
    prudence_stats(&stats);
    torture_raise(&most_latent, stats.bytes_latent);
    if (stats.bytes_latent > stats.latent_ceiling)
        torture_violation("%llu bytes latent, the limit is %llu",
                          (unsigned long long)stats.bytes_latent,
                          (unsigned long long)stats.latent_ceiling);
    halts++;
    __atomic_store_n(&halt, false, __ATOMIC_RELEASE);
    while (__atomic_load_n(&halted, __ATOMIC_ACQUIRE) > 0)
        torture_sleep_us(50);
}

static void watch(double seconds)
{
    uint64_t end = torture_now() + (uint64_t)(seconds * 1e9);

    /* Continues on a slow machine until enough has happened. */
    while (torture_now() < end || __atomic_load_n(&operations, __ATOMIC_RELAXED) < LEAST) {
        torture_sleep_us(2000);
        look();
    }
}

static void check_end(void)
{
    struct prudence_stats stats;

    torture_expect_nothing_left(&stats);
    TORTURE_CHECK(stats.throttle_expiries == 0);
    TORTURE_CHECK(stats.latent_overruns == 0);
    TORTURE_CHECK(stats.bytes_latent_peak >= most_latent);
    if (stats.bytes_latent_peak > stats.latent_ceiling)
        torture_violation("the account was at %llu bytes, the limit is %llu",
                          (unsigned long long)stats.bytes_latent_peak,
                          (unsigned long long)stats.latent_ceiling);
    TORTURE_SAY({"operations", operations}, {"looks", halts}, {"latent K", most_latent >> 10},
                {"peak K", stats.bytes_latent_peak >> 10}, {"waits", stats.throttle_waits},
                {"rises", stats.latent_rises}, {"longest us", longest_deferral / 1000});
}

static int torture(const char *variant, double seconds)
{
    torture_pretend_idle();
    torture_start(writer, WRITERS, 1);
    torture_start(reader, READERS, 100);
    watch(seconds);
    torture_join();
    check_end();
    return torture_end(variant);
}

TORTURE(torture, {"4M", "latent_limit=4M,wait_max=60s"},
        {"8M, idle helper", "latent_limit=8M,wait_max=60s,background=1"},
        {"32M", "latent_limit=32M,wait_max=60s"},
        {"8M, fence-free", "latent_limit=8M,wait_max=60s,reader_mode=free"},
        {"8M, lock", "latent_limit=8M,wait_max=60s,rseq=0"},
        {"5M, checked", "latent_limit=5000000,wait_max=60s,check=1"},
        {"1M", "latent_limit=1M,wait_max=60s"},
        {"1M to 8M", "latent_limit=1M,latent_ceiling=8M,wait_max=60s"},
        {"1M to 8M, lock", "latent_limit=1M,latent_ceiling=8M,wait_max=60s,rseq=0"})
