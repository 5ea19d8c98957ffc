/* SPDX-License-Identifier: MIT */
/*
 * Drives QEMU's RCU as its memory maps do, first steadily and then in a storm. There is no guest.
 *
 *     storm SECONDS
 *
 * The main loop has the big lock, which is ours here, except while it sleeps. It flips the map: it
 * makes a view as large as a flat view of a PC, publishes it, and hands the old one to call_rcu.
 * READERS threads read the map in sections of some microseconds. For SECONDS a flip is made each
 * millisecond: the time until its old view is freed is taken, and the main loop's wait for the lock
 * after its sleep. Then BURSTS times FLIPS flips are made at once. At last, small objects are
 * replaced by g_free_rcu. Prints one line of JSON.
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "qemu/rcu.h"
#include "qemu/thread.h"

#include "../driver.h"

#include <sys/resource.h>

#ifndef CONFIG_PRUDENCE
#define rcu_alloc(size) g_malloc(size)
#endif

#define READERS  2
#define RANGES   4000 /* bytes */
#define BURSTS   100
#define FLIPS    1000
#define REPLACED 300000 /* small objects */
#define TIMES    (1 << 20)

struct view {
    struct rcu_head rcu; /* first */
    uint64_t replaced;   /* when, in ns */
    char *ranges;
};

struct small {
    struct rcu_head rcu; /* first */
    uint64_t value[2];
};

static struct view *map;
static struct small *status;
static bool over;
static uint32_t frees[TIMES], waits[TIMES]; /* ns */
static unsigned free_count, wait_count;
static long views; /* that are not yet freed */

/* ------------------------------------------------------------------------------- the big lock */

static pthread_mutex_t big_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool has_big_lock;

bool qemu_mutex_iothread_locked(void)
{
    return has_big_lock;
}

void qemu_mutex_lock_iothread_impl(const char *file, int line)
{
    pthread_mutex_lock(&big_lock);
    has_big_lock = true;
}

void qemu_mutex_unlock_iothread(void)
{
    has_big_lock = false;
    pthread_mutex_unlock(&big_lock);
}

/* ------------------------------------------------------------------------------------- the map */

static double cpu_us(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 + used.ru_utime.tv_usec +
           used.ru_stime.tv_usec;
}

static void destroy(struct view *view)
{
    assert(has_big_lock);
    frees[free_count++ % TIMES] = now_ns(CLOCK_MONOTONIC) - view->replaced;
    g_free(view->ranges);
    g_free(view);
    qatomic_dec(&views);
}

static void flip(void)
{
    struct view *view = g_new0(struct view, 1), *old = map;

    view->ranges = g_malloc(RANGES);
    memset(view->ranges, 1, RANGES);
    qatomic_inc(&views);
    qatomic_rcu_set(&map, view);
    if (old) {
        old->replaced = now_ns(CLOCK_MONOTONIC);
        call_rcu(old, destroy, rcu);
    }
}

static void sleep_outside(unsigned us)
{
    uint64_t asked;

    qemu_mutex_unlock_iothread();
    g_usleep(us);
    asked = now_ns(CLOCK_MONOTONIC);
    qemu_mutex_lock_iothread();
    waits[wait_count++ % TIMES] = now_ns(CLOCK_MONOTONIC) - asked;
}

static void *read_map(void *unused)
{
    rcu_register_thread();
    while (!qatomic_read(&over)) {
        for (int i = 0; i < 20; i++) {
            rcu_read_lock();
            struct view *view = qatomic_rcu_read(&map);
            struct small *small = qatomic_rcu_read(&status);

            for (int at = 0; at < RANGES; at++)
                if (view->ranges[at] != 1)
                    abort();
            if (small->value[0] != small->value[1])
                abort();
            rcu_read_unlock();
        }
        g_usleep(200);
    }
    rcu_unregister_thread();
    return NULL;
}

static void replace_small(uint64_t value)
{
    struct small *small = rcu_alloc(sizeof *small), *old = status;

    small->value[0] = small->value[1] = value;
    qatomic_rcu_set(&status, small);
    if (old)
        g_free_rcu(old, rcu);
}

/* ----------------------------------------------------------------------------------- measuring */

static double quantile_us(uint32_t *times, unsigned count, double which)
{
    count = MIN(count, TIMES);
    qsort(times, count, sizeof *times, by_value);
    return count ? times[(unsigned)(count * which)] / 1e3 : 0;
}

/* Returns the highest resident memory at the end of a burst. */
static double storm(void)
{
    double highest = 0;

    for (int i = 0; i < BURSTS; i++) {
        for (int j = 0; j < FLIPS; j++)
            flip();
        highest = MAX(highest, resident_mb());
        sleep_outside(1000);
    }
    return highest;
}

static void wait_for_frees(void)
{
    qemu_mutex_unlock_iothread();
    drain_call_rcu();
    qemu_mutex_lock_iothread();
    if (qatomic_read(&views) != 1) /* the map */
        abort();
}

int main(int argc, char **argv)
{
    double seconds = argc == 2 ? atof(argv[1]) : 0;
    QemuThread readers[READERS];

    if (seconds <= 0) {
        fprintf(stderr, "storm: one argument is needed, a number of seconds\n");
        return 2;
    }
    qemu_mutex_lock_iothread();
    memset(frees, 0, sizeof frees); /* resident from the start */
    memset(waits, 0, sizeof waits);
    flip();
    replace_small(0);
    for (int i = 0; i < READERS; i++)
        qemu_thread_create(&readers[i], "reader", read_map, NULL, QEMU_THREAD_JOINABLE);

    uint64_t end = now_ns(CLOCK_MONOTONIC) + seconds * 1e9;

    while (now_ns(CLOCK_MONOTONIC) < end) {
        flip();
        sleep_outside(1000);
    }
    wait_for_frees();
    printf("{\"free_p50_us\": %.1f, \"free_p999_us\": %.1f", quantile_us(frees, free_count, 0.5),
           quantile_us(frees, free_count, 0.999));

    wait_count = 0;
    double cpu = cpu_us(), highest = storm();

    wait_for_frees();
    cpu = (cpu_us() - cpu) / (BURSTS * FLIPS);
    qemu_mutex_unlock_iothread();
    g_usleep(2000000);
    printf(", \"stall_p99_us\": %.1f, \"peak_mb\": %.1f, \"after_mb\": %.1f, \"flip_cpu_us\": %.2f",
           quantile_us(waits, wait_count, 0.99), highest, resident_mb(), cpu);

    uint64_t begun = now_ns(CLOCK_MONOTONIC);
    double before = resident_mb();

    for (uint64_t i = 1; i <= REPLACED; i++)
        replace_small(i);
    printf(", \"replace_ns\": %.1f, \"small_mb\": %.1f}\n",
           (now_ns(CLOCK_MONOTONIC) - begun) / (double)REPLACED, resident_mb() - before);
    qatomic_set(&over, true);
    for (int i = 0; i < READERS; i++)
        qemu_thread_join(&readers[i]);
    return 0;
}
