/* SPDX-License-Identifier: MIT */
/*
 * The threads share only `running` and `over`; both are atomic. An idle reader sleeps in a
 * semaphore until the end.
 */
#include "crowd.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#include <prudence/rcu.h>

#define STACK_BYTES      (64 << 10)
#define SECTIONS_EACH_MS 20 /* of all threads together */

struct crowd {
    pthread_t *threads;
    unsigned count;
    unsigned running; /* number of threads that have read once; atomic */
    bool busy;
    bool over; /* atomic */
    sem_t idle;
};

static void read_once(void)
{
    prudence_read_lock();
    __asm__ __volatile__("" ::: "memory");
    prudence_read_unlock();
}

/* Sleeps at least a millisecond, and never long, so that the end does not wait for it. */
static void nap(const struct crowd *crowd)
{
    unsigned ms = crowd->count / SECTIONS_EACH_MS;
    struct timespec time = {.tv_nsec = 1000000L * (ms < 1 ? 1 : ms > 900 ? 900 : ms)};

    nanosleep(&time, NULL);
}

static void *stand_by(void *argument)
{
    struct crowd *crowd = argument;

    read_once();
    __atomic_add_fetch(&crowd->running, 1, __ATOMIC_RELAXED);
    if (!crowd->busy)
        sem_wait(&crowd->idle);
    while (!__atomic_load_n(&crowd->over, __ATOMIC_RELAXED)) {
        read_once();
        nap(crowd);
    }
    return NULL;
}

struct crowd *crowd_start(unsigned count, bool busy)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    pthread_attr_t attributes;

    if (!crowd || !(crowd->threads = calloc(count ? count : 1, sizeof *crowd->threads)))
        abort();
    crowd->busy = busy;
    sem_init(&crowd->idle, 0, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    while (crowd->count < count &&
           !pthread_create(&crowd->threads[crowd->count], &attributes, stand_by, crowd))
        crowd->count++;
    pthread_attr_destroy(&attributes);
    while (__atomic_load_n(&crowd->running, __ATOMIC_RELAXED) < crowd->count)
        sched_yield();
    if (crowd->count == count)
        return crowd;
    crowd_stop(crowd);
    return NULL;
}

void crowd_stop(struct crowd *crowd)
{
    __atomic_store_n(&crowd->over, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < crowd->count; i++)
        sem_post(&crowd->idle);
    for (unsigned i = 0; i < crowd->count; i++)
        pthread_join(crowd->threads[i], NULL);
    sem_destroy(&crowd->idle);
    free(crowd->threads);
    free(crowd);
}
