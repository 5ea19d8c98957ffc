/* SPDX-License-Identifier: MIT */
/*
 * A thread that finds a lock of the library taken sleeps, and gets the lock when the holder
 * releases it. The test waits until the other threads sleep (state S of their tasks), so that
 * tests/linking/test_probes.py sees each wait by its probes: WAITERS waits for the lock "short-term
 * memory", each with a sleep, in each of ROUNDS rounds.
 */
#define _GNU_SOURCE
#include <stdio.h>

#include <sched.h>
#include <unistd.h>

#include "os/os.h"
#include "support/suite.h"
#include "support/threads.h"

#define ROUNDS  3
#define WAITERS 2

static struct os_lock lock;
static unsigned inside, entries; /* under the lock */

static void *wait_for_lock(void *id)
{
    store_release((int *)id, (int)gettid());
    os_lock_take(&lock);
    inside++;
    assert_int_equal(inside, 1);
    entries++;
    inside--;
    os_lock_release(&lock);
    return NULL;
}

/* Returns whether the thread sleeps. After it has stored its id, it only sleeps to wait for the
 * lock. */
static bool sleeps(int id)
{
    char path[64], state = '?';
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", id);
    file = fopen(path, "r");
    if (!file)
        return false;
    if (fscanf(file, "%*d %*[^)]) %c", &state) != 1)
        state = '?';
    fclose(file);
    return state == 'S';
}

static void wait_until_asleep(int *id)
{
    while (!load_acquire(id) || !sleeps(load_acquire(id)))
        sched_yield();
}

TEST(waiters_sleep_and_get_the_lock)
{
    os_lock_init(&lock, OS_RANK_SCM);
    for (unsigned round = 0; round < ROUNDS; round++) {
        pthread_t threads[WAITERS];
        int ids[WAITERS] = {0};

        os_lock_take(&lock);
        for (unsigned i = 0; i < WAITERS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, wait_for_lock, &ids[i]), 0);
        for (unsigned i = 0; i < WAITERS; i++)
            wait_until_asleep(&ids[i]);
        assert_int_equal(entries, round * WAITERS);
        os_lock_release(&lock);
        threads_join(threads, WAITERS);
    }
    assert_int_equal(entries, ROUNDS * WAITERS);
    os_lock_destroy(&lock);
}

SUITE()
