/* SPDX-License-Identifier: MIT */
/*
 * Induced quiescent states, by running on each CPU (the thesis's 4.3.1 and C.1).
 *
 * The waiter runs once on every CPU: what ran there has then been switched out. *induced*: one after
 * the other, by the waiter itself, nothing batched. *taskq*: one task for all; call_rcu puts callbacks on
 * a global list under a lock and starts the task, which lets a daemon of each CPU run, waits for all,
 * and calls what it had found.
 *
 * Differences. A place is not a CPU that the scheduler could be made to put us on, so "running there" is
 * a request which the place carries out at its next context switch; an idle place counts as run on. In
 * the original the daemons' wake-ups preempt what runs in user mode; here the place must reach its next switch. The
 * original induced form has no callbacks: call waits, as the thesis's caller would.
 */
#include "variant.h"

#include <pthread.h>

static struct {
    uint64_t wanted, done; /* run here: requests, and those carried out */
} __attribute__((aligned(VARIANT_LINE))) runs[PLACES_MAX];

static void context_switch(unsigned place)
{
    uint64_t wanted = __atomic_load_n(&runs[place].wanted, __ATOMIC_ACQUIRE);

    if (wanted == runs[place].done)
        return;
    variant_full_fence(); /* the switch itself */
    __atomic_store_n(&runs[place].done, wanted, __ATOMIC_RELEASE);
}

static uint64_t ask(unsigned place)
{
    return __atomic_add_fetch(&runs[place].wanted, 1, __ATOMIC_SEQ_CST);
}

/* Until the place has run it, or been idle since. A waiter that is a place itself (>= 0)
 * goes on with its own. */
static void wait_for(unsigned place, uint64_t wanted, int self)
{
    for (;;) {
        if (__atomic_load_n(&runs[place].done, __ATOMIC_ACQUIRE) >= wanted ||
            variant_is_idle(place))
            return;
        if (self >= 0)
            context_switch((unsigned)self);
        variant_pause();
    }
}

static pthread_mutex_t one_waiter = PTHREAD_MUTEX_INITIALIZER;

/* `self` serves requests while it waits for its turn, or two waiters would wait for each other. */
static void take_turn(unsigned self)
{
    while (pthread_mutex_trylock(&one_waiter)) {
        context_switch(self);
        variant_pause();
    }
}

static void induced_synchronize(unsigned self)
{
    take_turn(self);
    variant_full_fence();
    for (unsigned place = 0; place < variant_place_count; place++) {
        if (place != self)
            wait_for(place, ask(place), (int)self);
    }
    pthread_mutex_unlock(&one_waiter);
    variant_full_fence();
}

static void induced_call(unsigned place, struct variant_head *head,
                         void (*func)(struct variant_head *))
{
    induced_synchronize(place);
    func(head);
}

/* --------------------------------------------------------------------------------------- taskq */

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
        wanted[place] = ask(place);
    for (unsigned place = 0; place < variant_place_count; place++)
        wait_for(place, wanted[place], -1);
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

static void taskq_call(unsigned place, struct variant_head *head,
                       void (*func)(struct variant_head *))
{
    (void)place;
    head->func = func;
    pthread_mutex_lock(&taskq.lock);
    if (!taskq.waiting.first)
        pthread_cond_signal(&taskq.wake);
    queue_append(&taskq.waiting, head);
    pthread_mutex_unlock(&taskq.lock);
}

static void taskq_start(unsigned places)
{
    (void)places;
    queue_make_empty(&taskq.waiting);
    taskq.ending = false;
    if (pthread_create(&taskq.task, NULL, task, NULL))
        __builtin_trap();
}

static void taskq_stop(void)
{
    pthread_mutex_lock(&taskq.lock);
    taskq.ending = true;
    pthread_cond_signal(&taskq.wake);
    pthread_mutex_unlock(&taskq.lock);
    pthread_join(taskq.task, NULL);
}

const struct variant variant_induced = {
    .name = "induced",
    .origin = "quiescent states induced by running on each CPU (synchronize_kernel, 4.3.1)",
    .historical = true,
    .called_at_once = true,
    .context_switch = context_switch,
    .call = induced_call,
    .synchronize = induced_synchronize,
};

const struct variant variant_taskq = {
    .name = "taskq",
    .origin = "the same with batches, by one task (rcu-taskq, C.1)",
    .historical = true,
    .start = taskq_start,
    .stop = taskq_stop,
    .context_switch = context_switch,
    .call = taskq_call,
};
