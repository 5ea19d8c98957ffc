/* SPDX-License-Identifier: MIT */
/* Split counters: the sum is exact when no thread adds, whatever CPUs threads run on, with
 * restartable sequences and without. */
#define _GNU_SOURCE
#include <sched.h>

#include "support/slab_test.h"
#include "support/threads.h"

#include <signal.h>
#include <unistd.h>

#include <prudence/counter.h>

#define THREADS   4
#define ADDITIONS 200000
#define IN_SIGNAL 1000000007 /* an addition in a handler */

static struct prudence_counter *counter;
static unsigned handled;

static void add_in_handler(int unused)
{
    prudence_counter_add(counter, IN_SIGNAL);
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

/* Moves to another CPU now and then, if there is one. */
static void *add(void *number)
{
    for (uint64_t i = 0; i < ADDITIONS; i++) {
        prudence_counter_add(counter, i % 3 == 2 ? -1 : 1);
        if (i % 20000 == 0) {
            cpu_set_t cpu;

            CPU_ZERO(&cpu);
            CPU_SET((i / 20000 + (uintptr_t)number) % os_cpu_count(), &cpu);
            sched_setaffinity(0, sizeof cpu, &cpu);
        }
    }
    return NULL;
}

TEST(nothing_is_lost)
{
    pthread_t threads[THREADS];
    int64_t each = 0;

    counter = prudence_counter_create();
    handled = 0;
    signal(SIGUSR1, add_in_handler);
    for (unsigned i = 0; i < ADDITIONS; i++)
        each += i % 3 == 2 ? -1 : 1;
    threads_start(threads, THREADS, add);
    for (unsigned i = 0; i < 200; i++)
        pthread_kill(threads[i % THREADS], SIGUSR1);
    threads_join(threads, THREADS);
    assert_true(handled > 0);
    assert_int_equal(prudence_counter_sum(counter), THREADS * each + (int64_t)handled * IN_SIGNAL);
    prudence_counter_destroy(counter);
}

TEST(sums_are_modulo)
{
    counter = prudence_counter_create();
    assert_int_equal(prudence_counter_sum(counter), 0);
    prudence_counter_add(counter, INT64_MAX);
    prudence_counter_add(counter, 1);
    assert_true(prudence_counter_sum(counter) == INT64_MIN);
    prudence_counter_add(counter, INT64_MIN);
    assert_int_equal(prudence_counter_sum(counter), 0);
    prudence_counter_destroy(counter);
    prudence_counter_destroy(NULL);
}

TEST(a_child_has_the_sum)
{
    pid_t child;

    counter = prudence_counter_create();
    prudence_counter_add(counter, 42);
    child = fork();
    if (!child) {
        prudence_counter_add(counter, 1);
        _exit(prudence_counter_sum(counter) == 43 ? 0 : 1);
    }
    assert_int_equal(status_of(child), 0);
    assert_int_equal(prudence_counter_sum(counter), 42);
    prudence_counter_destroy(counter);
}

TEST(without_memory_there_is_none)
{
    assert_int_equal(prudence_counter_destroy(NULL), EINVAL);
    assert_int_equal(prudence_counter_destroy(prudence_counter_create()), 0);
    memory_fail(0, UINT32_MAX);
    do
        counter = prudence_counter_create(); /* served from the caches, as long as they hold any */
    while (counter);
    assert_int_equal(errno, ENOMEM);
    memory_succeed();
}

/* Runs in a separate process, because the way of adding is chosen at the start. */
static void all_without_rseq(void *unused)
{
    prudence_option_set("rseq", "0");
    nothing_is_lost(NULL);
    assert_false(os_percpu_rseq);
}

/* First, before the process uses the library. */
TEST_FIRST(without_sequences_as_well)
{
    char output[4096];

    expect_life(all_without_rseq, NULL, output, sizeof output);
}

SUITE()
