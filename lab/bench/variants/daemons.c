/* SPDX-License-Identifier: MIT */
/* A daemon per place, and the timer that wakes them (daemons.h). */
#include "daemons.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#include "batches.h"

#define PERIOD_NS (5 * VARIANT_TICK_NS)

static struct {
    pthread_mutex_t lock;
    struct variant_queue fresh; /* under lock: the place appends, the daemon takes */
    sem_t wake;
    pthread_t daemon;
} __attribute__((aligned(VARIANT_LINE))) of[PLACES_MAX];

static struct {
    sem_t armed; /* posted when a first callback is queued, and at the end */
    pthread_t thread;
} timer;

static bool (*place_has_passed)(unsigned place, uint64_t batch);
static int ending;       /* atomic */
static uint64_t pending; /* callbacks that have not returned; atomic */

static void process(unsigned place)
{
    struct variant_queue done;
    uint64_t batch;

    pthread_mutex_lock(&of[place].lock);
    queue_move(batches_new(place), &of[place].fresh);
    pthread_mutex_unlock(&of[place].lock);
    queue_make_empty(&done);
    batches_advance(place, &done);
    batch = batches_wait_for(place);
    variant_full_fence(); /* so that the variant reads after the batch began */
    if (batch && place_has_passed(place, batch))
        batches_pass(UINT64_C(1) << place, batch);
    if (done.first)
        __atomic_sub_fetch(&pending, queue_invoke(&done), __ATOMIC_RELEASE);
}

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore)) /* repeats after a signal */
        ;
}

static void *run_daemon(void *argument)
{
    unsigned place = (unsigned)(uintptr_t)argument;

    for (;;) {
        wait_for(&of[place].wake);
        if (__atomic_load_n(&ending, __ATOMIC_ACQUIRE))
            return NULL;
        process(place);
    }
}

static void wake_daemons(void)
{
    for (unsigned place = 0; place < variant_place_count; place++)
        sem_post(&of[place].wake);
}

static void *run_timer(void *unused)
{
    while (!__atomic_load_n(&ending, __ATOMIC_ACQUIRE)) {
        wait_for(&timer.armed);
        while (__atomic_load_n(&pending, __ATOMIC_ACQUIRE)) {
            variant_sleep_ns(PERIOD_NS);
            wake_daemons();
        }
    }
    return unused;
}

static void create(pthread_t *thread, void *(*body)(void *), void *argument)
{
    if (pthread_create(thread, NULL, body, argument)) {
        perror("pthread_create");
        exit(EXIT_FAILURE);
    }
}

void daemons_start(unsigned places, bool (*has_passed)(unsigned place, uint64_t batch))
{
    batches_start(places);
    place_has_passed = has_passed;
    ending = 0;
    pending = 0;
    sem_init(&timer.armed, 0, 0);
    for (uintptr_t place = 0; place < places; place++) {
        pthread_mutex_init(&of[place].lock, NULL);
        queue_make_empty(&of[place].fresh);
        sem_init(&of[place].wake, 0, 0);
        create(&of[place].daemon, run_daemon, (void *)place);
    }
    create(&timer.thread, run_timer, NULL);
}

void daemons_stop(void)
{
    while (__atomic_load_n(&pending, __ATOMIC_ACQUIRE))
        variant_sleep_ns(VARIANT_TICK_NS);
    __atomic_store_n(&ending, 1, __ATOMIC_RELEASE);
    sem_post(&timer.armed);
    pthread_join(timer.thread, NULL);
    wake_daemons();
    for (unsigned place = 0; place < variant_place_count; place++)
        pthread_join(of[place].daemon, NULL);
}

void daemons_call(unsigned place, struct variant_head *head, void (*func)(struct variant_head *))
{
    head->func = func;
    pthread_mutex_lock(&of[place].lock);
    queue_append(&of[place].fresh, head);
    pthread_mutex_unlock(&of[place].lock);
    if (__atomic_fetch_add(&pending, 1, __ATOMIC_RELEASE) == 0)
        sem_post(&timer.armed);
}
