/* SPDX-License-Identifier: MIT */
/*
 * The idle helper at work on a loaded machine: every CPU has busy threads of ordinary priority, and
 * neither fork nor the destruction of a cache waits for a thread that gets no CPU. A helper of idle
 * priority kept them waiting for up to seconds here, even when it owned nothing of the library's,
 * because a page fault is enough to hold the lock of the address space.
 *
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children, no exit with other
 * threads) ctest: alone (measures how long a fork takes with a busy helper)
 */
#define _GNU_SOURCE

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prudence/prudence.h>
#include <prudence/stats.h>

#include "base/atomic.h"
#include "posix.h"
#include "support/gp_reader.h"
#include "support/gp_tsan.h"
#include "support/suite.h"

#define BUSY_MAX 64
#define OBJECTS  4000
#define BOUND_NS 2000000000ull /* far above the measured 5 to 40 ms */

static bool stop;
static void *objects[OBJECTS];
static unsigned long long fork_max, destroy_max, preflushed;

static void *be_busy(void *unused)
{
    while (!load_relaxed(&stop))
        ;
    return unused;
}

static unsigned long long larger(unsigned long long a, unsigned long long b)
{
    return a > b ? a : b;
}

/* Overfills the caches of one CPU after another, so that the helper has work for this cache. */
static void make_work(struct prudence_cache *cache)
{
    for (unsigned i = 0; i < OBJECTS; i++)
        objects[i] = prudence_cache_alloc(cache);
    prudence_cache_free_deferred_bulk(cache, OBJECTS / 2, objects);
    for (unsigned i = OBJECTS / 2; i < OBJECTS; i++)
        prudence_cache_free(cache, objects[i]);
}

/* The library does all background work in ordinary threads. */
static void expect_ordinary_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;

    while ((task = readdir(tasks)))
        if (task->d_name[0] != '.')
            assert_int_equal(sched_getscheduler(atoi(task->d_name)), sched_getscheduler(0));
    closedir(tasks);
}

static bool is_idle(unsigned cpu)
{
    return true;
}

static void measure_fork(void)
{
    unsigned long long began = now_ns();
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(42);
    fork_max = larger(fork_max, now_ns() - began);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

static void measure_destroy(struct prudence_cache *cache)
{
    struct prudence_cache_stats stats;
    unsigned long long began;

    prudence_cache_stats(cache, &stats);
    preflushed += stats.preflushed_objects;
    began = now_ns();
    assert_int_equal(prudence_cache_destroy(cache), 0);
    destroy_max = larger(destroy_max, now_ns() - began);
}

TEST(fork_and_destroy_do_not_wait_for_idle_time)
{
    long count = 2 * sysconf(_SC_NPROCESSORS_ONLN);
    unsigned long long end = now_ns() + 1000000000ull;
    pthread_t busy[BUSY_MAX];
    unsigned rounds = 0;

    count = count > BUSY_MAX ? BUSY_MAX : count;
    for (long i = 0; i < count; i++)
        assert_int_equal(pthread_create(&busy[i], NULL, be_busy, NULL), 0);
    posix_idle_inject(is_idle); /* otherwise it would never run */
    assert_int_equal(prudence_option_set("background", "1"), 0);
    for (; now_ns() < end || preflushed == 0; rounds++) {
        struct prudence_cache *cache = prudence_cache_create("short-lived", 256, NULL);

        assert_non_null(cache);
        for (unsigned i = 0; i < 5; i++) {
            make_work(cache);
            pause_ms(1);
            measure_fork();
            expect_ordinary_threads();
        }
        measure_destroy(cache);
    }
    prudence_option_set("background", "0");
    store_relaxed(&stop, true);
    for (long i = 0; i < count; i++)
        pthread_join(busy[i], NULL);
    print_message(
        "%u rounds, %llu objects pre-flushed; longest fork %.1f ms, destruction %.1f ms\n", rounds,
        preflushed, (double)fork_max / 1e6, (double)destroy_max / 1e6);
    assert_true(fork_max < BOUND_NS && destroy_max < BOUND_NS);
}

SUITE()
