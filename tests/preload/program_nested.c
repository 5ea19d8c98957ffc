/* SPDX-License-Identifier: MIT */
/*
 * A small program for test_nested_calls.py that uses malloc() in all its phases, and deferral if a
 * library offers it. Prints "ok".
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nested_phases.h"

#define BLOCKS  800
#define THREADS 3
#define READERS 140 /* more than a chunk has slots */

static void *handed[THREADS][BLOCKS];

static void phase(int now)
{
    if (nested_phase)
        nested_phase(now);
}

static void *some(unsigned i)
{
    size_t size = i % 100 ? i % 3000 + 1 : 40000 + i * 10;
    char *block = i % 7 ? NAMED(malloc)(size) : NAMED(aligned_alloc)(128, size);

    if (!block)
        abort();
    memset(block, (int)i, size);
    return block;
}

static void leave(void *block, unsigned i)
{
    if (prudence_free_deferred && i % 3 == 0)
        prudence_free_deferred(block);
    else
        NAMED(free)(block);
}

static void work(void **blocks)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        blocks[i] = some(i);
    for (unsigned i = 0; i < BLOCKS; i += 50)
        blocks[i] = NAMED(realloc)(blocks[i], 100 + i * 40);
    for (unsigned i = 0; i < BLOCKS; i += 2) {
        leave(blocks[i], i);
        blocks[i] = NULL;
    }
}

static void *thread(void *blocks)
{
    if (prudence_read_lock) {
        prudence_read_lock();
        prudence_read_unlock();
    }
    work(blocks);
    return NULL;
}

static void threads(void)
{
    pthread_t ids[THREADS];

    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&ids[i], NULL, thread, handed[i]))
            abort();
    for (int i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < THREADS; i++)
        for (unsigned k = 1; k < BLOCKS; k += 2)
            leave(handed[i][k], k);
}

static pthread_barrier_t all_read;

static void *read_once(void *unused)
{
    prudence_read_lock();
    prudence_read_unlock();
    pthread_barrier_wait(&all_read);
    return unused;
}

/* Has this many readers at once that there must be room for more. */
static void readers(void)
{
    pthread_attr_t small;
    pthread_t ids[READERS];

    if (!prudence_read_lock)
        return;
    if (pthread_barrier_init(&all_read, NULL, READERS) || pthread_attr_init(&small) ||
        pthread_attr_setstacksize(&small, (size_t)256 << 10))
        abort();
    for (int i = 0; i < READERS; i++)
        if (pthread_create(&ids[i], &small, read_once, NULL))
            abort();
    for (int i = 0; i < READERS; i++)
        pthread_join(ids[i], NULL);
}

static void fork_one(void)
{
    int status;
    pid_t child = fork();

    if (child < 0)
        abort();
    if (child == 0) {
        phase(NESTED_RUN);
        threads();
        exit(0); /* NOLINT(concurrency-mt-unsafe): the threads have been joined */
    }
    if (waitpid(child, &status, 0) != child || status)
        abort();
}

/* Uses a separate mapping, which grows without copying. */
static void grow(void)
{
    void *block = NAMED(malloc)((size_t)40 << 20);

    for (size_t mib = 50; block && mib < 200; mib += 50)
        block = NAMED(realloc)(block, mib << 20);
    if (!block)
        abort();
    NAMED(free)(block);
}

int main(void)
{
    phase(NESTED_RUN);
    threads();
    readers();
    grow();
    if (prudence_synchronize)
        prudence_synchronize();
    malloc_trim(0);
    if (mallinfo2().uordblks == 0)
        abort();
    phase(NESTED_RUN);
    fork_one();
    phase(NESTED_EXIT);
    puts("ok");
    return 0;
}
