/* SPDX-License-Identifier: MIT */
/*
 * A recycle pool over liburcu's qsbr flavour, written from a description of one in a file server.
 *
 * A retired object goes to the list of the CPU that retires it. One thread, the sweeper, takes the
 * lists of all CPUs, waits for a grace period, and puts each object into the depot of the same CPU.
 * A thread that allocates pops from its own magazine. When that is empty, it takes the whole depot
 * of the CPU where it runs, and when that is empty too, it calls malloc.
 *
 * Locks: `lock` of a depot protects its lists; `registry` protects the list of magazines. Neither
 * is held across a wait. A magazine belongs to its thread, and stays when the thread ends.
 */
#define _GNU_SOURCE
#include "pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#define MAX_CPUS 1024
#define PAUSE_US 100 /* of a sweeper that found nothing */

/* Stands before each object, because readers may still be in the object itself. */
struct header {
    struct header *next;
    void *unused; /* keeps objects aligned to 16 bytes */
};

struct depot {
    _Alignas(64) pthread_mutex_t lock;
    struct header *retired, *ready;
};

struct magazine {
    struct header *ready;
    struct magazine *next; /* in all_magazines */
};

static struct depot depots[MAX_CPUS];
static long cpus;
static pthread_t sweeper;
static atomic_bool over;
static atomic_size_t swept; /* rounds that the sweeper has ended */
static atomic_size_t made;  /* objects that malloc gave */
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static struct magazine *all_magazines;
static _Thread_local struct magazine *own;

static struct depot *this_depot(void)
{
    return &depots[sched_getcpu()];
}

static struct header *take(struct depot *depot, struct header **list)
{
    struct header *first;

    pthread_mutex_lock(&depot->lock);
    first = *list;
    *list = NULL;
    pthread_mutex_unlock(&depot->lock);
    return first;
}

/* Puts the chain from `first` to `last` in front of the list. */
static void put(struct depot *depot, struct header **list, struct header *first,
                struct header *last)
{
    pthread_mutex_lock(&depot->lock);
    last->next = *list;
    *list = first;
    pthread_mutex_unlock(&depot->lock);
}

static struct header *last_of(struct header *chain)
{
    while (chain->next)
        chain = chain->next;
    return chain;
}

/* Returns whether anything was retired. */
static bool sweep(struct header **taken)
{
    bool any = false;

    for (long cpu = 0; cpu < cpus; cpu++) {
        taken[cpu] = take(&depots[cpu], &depots[cpu].retired);
        any |= taken[cpu] != NULL;
    }
    if (!any)
        return false;
    urcu_qsbr_synchronize_rcu();
    for (long cpu = 0; cpu < cpus; cpu++)
        if (taken[cpu])
            put(&depots[cpu], &depots[cpu].ready, taken[cpu], last_of(taken[cpu]));
    return true;
}

static void *run_sweeper(void *taken)
{
    while (!atomic_load(&over)) {
        bool any = sweep(taken);

        atomic_fetch_add(&swept, 1);
        if (!any)
            usleep(PAUSE_US);
    }
    free(taken);
    return NULL;
}

int pool_start(void)
{
    void *taken;
    int error;

    cpus = sysconf(_SC_NPROCESSORS_CONF);
    if (cpus < 1 || cpus > MAX_CPUS)
        return ERANGE;
    for (long cpu = 0; cpu < cpus; cpu++)
        pthread_mutex_init(&depots[cpu].lock, NULL);
    taken = calloc(cpus, sizeof(struct header *));
    if (!taken)
        return ENOMEM;
    error = pthread_create(&sweeper, NULL, run_sweeper, taken);
    if (error)
        free(taken);
    return error;
}

static struct magazine *magazine_of_thread(void)
{
    if (own)
        return own;
    own = calloc(1, sizeof *own);
    if (!own)
        return NULL;
    pthread_mutex_lock(&registry);
    own->next = all_magazines;
    all_magazines = own;
    pthread_mutex_unlock(&registry);
    return own;
}

static void *make_object(void)
{
    struct header *header = malloc(sizeof *header + OBJECT);

    if (!header)
        return NULL;
    atomic_fetch_add(&made, 1);
    return header + 1;
}

void *pool_allocate(void)
{
    struct magazine *magazine = magazine_of_thread();
    struct header *header;

    if (!magazine)
        return NULL;
    if (!magazine->ready) {
        struct depot *depot = this_depot();

        magazine->ready = take(depot, &depot->ready);
    }
    header = magazine->ready;
    if (!header)
        return make_object();
    magazine->ready = header->next;
    return header + 1;
}

void pool_retire(void *object)
{
    struct depot *depot = this_depot();
    struct header *header = (struct header *)object - 1;

    put(depot, &depot->retired, header, header);
}

/* The round that runs now may have taken the lists before the last object was retired. */
void pool_settle(void)
{
    size_t start = atomic_load(&swept);

    while (atomic_load(&swept) - start < 2)
        usleep(PAUSE_US);
}

static size_t free_chain(struct header *chain)
{
    size_t count = 0;

    while (chain) {
        struct header *next = chain->next;

        free(chain);
        chain = next;
        count++;
    }
    return count;
}

size_t pool_stop(void)
{
    size_t freed = 0;

    pool_settle();
    atomic_store(&over, true);
    pthread_join(sweeper, NULL);
    for (long cpu = 0; cpu < cpus; cpu++)
        freed += free_chain(depots[cpu].ready);
    while (all_magazines) {
        struct magazine *magazine = all_magazines;

        all_magazines = magazine->next;
        freed += free_chain(magazine->ready);
        free(magazine);
    }
    return atomic_load(&made) - freed;
}
