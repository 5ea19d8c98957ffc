/* SPDX-License-Identifier: MIT */
/*
 * A program for libscm, as the thesis describes them: it uses <stm.h> and <stm-debug.h>, no name of
 * Prudence, and no function that returns an error. Threads keep records of their own, publish some
 * in a pool that all refresh by global time, block for a while, and unregister. At the end all
 * dated objects are finalized, and the figures confirm it. Compiles as C++, too.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stm.h>
#include <stm-debug.h>

#define THREADS   3
#define ROUNDS    200
#define POOL      16
#define EXTENSION 2

struct record {
    int owner;
    char text[40];
};

static struct record *pool[POOL];
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begin;
static int finalizer;
static unsigned long finalized, made; /* atomic */

/* Calls go through pointers to functions, as in a table of operations. */
static void (*const tick)(void) = scm_tick;
static void (*const refresh[2])(void *, unsigned int) = {scm_refresh, scm_global_refresh};

static int count(void *object)
{
    struct record *record = (struct record *)object;

    if (record->owner < 0 || record->owner >= THREADS)
        abort();
    __atomic_fetch_add(&finalized, 1, __ATOMIC_RELAXED);
    return 0;
}

static struct record *record_make(int owner, int round)
{
    struct record *record = (struct record *)scm_malloc(sizeof *record);

    if (!record)
        abort();
    record->owner = owner;
    snprintf(record->text, sizeof record->text, "round %d", round);
    scm_set_finalizer(record, finalizer);
    __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
    return record;
}

/* Another thread's records exist as long as one thread refreshes them in each phase. */
static void share(int owner, int round)
{
    struct record *record = record_make(owner, round);

    pthread_mutex_lock(&pool_lock);
    refresh[1](record, EXTENSION);
    pool[round % POOL] = record;
    for (unsigned i = 0; i < POOL; i++)
        if (pool[i]) {
            refresh[1](pool[i], EXTENSION);
            if (strncmp(pool[i]->text, "round ", 6) != 0)
                abort();
        }
    pthread_mutex_unlock(&pool_lock);
}

static void *work(void *argument)
{
    int owner = *(int *)argument;

    tick(); /* the first call registers the thread */
    scm_global_tick();
    pthread_barrier_wait(&begin); /* no phase ends before all take part */
    for (int round = 0; round < ROUNDS; round++) {
        struct record *mine = record_make(owner, round);

        refresh[0](mine, SCM_MAX_EXPIRATION_EXTENSION);
        if (round % 3 == 0)
            share(owner, round);
        tick();
        scm_global_tick();
        if (round % 50 == 0) {
            scm_block_thread();
            scm_resume_thread();
        }
    }
    scm_unregister_thread();
    return NULL;
}

static void end_all(void)
{
    struct scm_mem_info info;

    memset(pool, 0, sizeof pool);
    do {
        scm_tick();
        scm_global_tick();
        scm_collect();
        scm_get_mem_info(&info);
    } while (info.num_dates);
    printf("%lu made, %lu finalized, %s\n", made, finalized,
           info.allocated >= info.freed && info.num_freed >= finalized ? "figures agree"
                                                                       : "figures differ");
}

int main(void)
{
    pthread_t threads[THREADS];
    int owners[THREADS];

    finalizer = scm_register_finalizer(count);
    pthread_barrier_init(&begin, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        owners[i] = i;
        pthread_create(&threads[i], NULL, work, &owners[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    end_all();
    errno = 0;
    scm_refresh(scm_malloc(10), 5000); /* above the option scm_max_extension, so reported */
    printf("errno: %s\n", errno == ERANGE ? "ERANGE" : "another");
    return 0;
}
