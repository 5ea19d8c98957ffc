/* SPDX-License-Identifier: MIT */
/*
 * Induced quiescent states with batches, by one task (rcu-taskq, the thesis's C.1).
 *
 * call_rcu puts callbacks on a global list under a lock and starts the task, which lets a daemon of
 * each CPU run (runs.h), waits for all, and calls the callbacks that it had found.
 *
 * Difference. In the original the daemons' wake-ups preempt code in user mode; here the place must
 * reach its next switch.
 */
#include "runs.h"

#include <pthread.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct variant_queue waiting; /* under lock */
    bool ending;
    pthread_t task;
} taskq = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static void run_everywhere(void)
{
    uint64_t wanted[PLACES_MAX];

    variant_full_fence();
    for (unsigned place = 0; place < variant_place_count; place++)
        wanted[place] = runs_ask(place);
    for (unsigned place = 0; place < variant_place_count; place++)
        runs_wait(place, wanted[place], -1);
    variant_full_fence();
}

static void *task(void *unused)
{
    struct variant_queue batch;

    pthread_mutex_lock(&taskq.lock);
    for (;;) {
        while (!taskq.waiting.first && !taskq.ending)
            pthread_cond_wait(&taskq.wake, &taskq.lock);
        if (!taskq.waiting.first)
            break;
        queue_make_empty(&batch);
        queue_move(&batch, &taskq.waiting);
        pthread_mutex_unlock(&taskq.lock);
        run_everywhere();
        queue_invoke(&batch);
        pthread_mutex_lock(&taskq.lock);
    }
    pthread_mutex_unlock(&taskq.lock);
    return unused;
}

static void call(unsigned place, struct variant_head *head, void (*func)(struct variant_head *))
{
    (void)place;
    head->func = func;
    pthread_mutex_lock(&taskq.lock);
    if (!taskq.waiting.first)
        pthread_cond_signal(&taskq.wake);
    queue_append(&taskq.waiting, head);
    pthread_mutex_unlock(&taskq.lock);
}

static void start(unsigned places)
{
    (void)places;
    queue_make_empty(&taskq.waiting);
    taskq.ending = false;
    if (pthread_create(&taskq.task, NULL, task, NULL))
        __builtin_trap();
}

static void stop(void)
{
    pthread_mutex_lock(&taskq.lock);
    taskq.ending = true;
    pthread_cond_signal(&taskq.wake);
    pthread_mutex_unlock(&taskq.lock);
    pthread_join(taskq.task, NULL);
}

const struct variant variant_taskq = {
    .name = "taskq",
    .origin = "with batches, by one task (rcu-taskq, C.1)",
    .historical = true,
    .start = start,
    .stop = stop,
    .context_switch = runs_switch,
    .call = call,
};
