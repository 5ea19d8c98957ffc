/* SPDX-License-Identifier: MIT */
/*
 * Polling with queues per CPU (rcu-poll as it was changed for Linux 2.5.46, the thesis's 8.3.4).
 *
 * One task notes all counters of context switches when a batch has begun, makes each CPU
 * reschedule, and checks the counters again and again, as in polling.c. But callbacks stay in
 * queues of their own CPU (batches.h), which calls them itself: no list and no callback goes from
 * CPU to CPU.
 *
 * Differences: those of polling.c. The thesis says no more than that the queues are per CPU; that
 * they wait for numbered batches, as in rcu-ltimer, is our choice.
 */
#include "batches.h"

#include <pthread.h>

static struct {
    uint64_t switches;   /* own; read by the task */
    uint64_t noted;      /* the task's */
    uint32_t reschedule; /* set by the task */
} __attribute__((aligned(VARIANT_LINE))) cpu[PLACES_MAX];

static struct {
    pthread_mutex_t lock; /* held by the place that carries the task on */
    uint64_t batch;       /* number of the batch for which counters were noted */
} task = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void note(void)
{
    for (unsigned i = 0; i < variant_place_count; i++) {
        cpu[i].noted = __atomic_load_n(&cpu[i].switches, __ATOMIC_ACQUIRE);
        __atomic_store_n(&cpu[i].reschedule, 1, __ATOMIC_RELAXED);
    }
}

/* Returns which of the places have switched, or were idle, since their counters were noted. */
static uint64_t passed_among(uint64_t places)
{
    uint64_t passed = 0;

    for (unsigned i = 0; i < variant_place_count; i++) {
        if (places >> i & 1 &&
            (variant_is_idle(i) ||
             __atomic_load_n(&cpu[i].switches, __ATOMIC_ACQUIRE) != cpu[i].noted))
            passed |= UINT64_C(1) << i;
    }
    return passed;
}

static void carry_on(void)
{
    uint64_t places, batch;

    if (pthread_mutex_trylock(&task.lock))
        return;
    batch = batches_under_way(&places);
    variant_full_fence(); /* so that counters are read after the batch began */
    if (batch && batch != task.batch) {
        task.batch = batch;
        note();
    } else if (batch) {
        batches_pass(passed_among(places), batch);
    }
    pthread_mutex_unlock(&task.lock);
}

static void advance(unsigned place)
{
    struct variant_queue done;

    queue_make_empty(&done);
    batches_advance(place, &done);
    queue_invoke(&done);
}

static void context_switch(unsigned place)
{
    uint64_t places;

    __atomic_store_n(&cpu[place].switches, cpu[place].switches + 1, __ATOMIC_RELEASE);
    variant_full_fence(); /* the switch itself: later reads come after it was counted */
    if (__atomic_load_n(&cpu[place].reschedule, __ATOMIC_RELAXED))
        __atomic_store_n(&cpu[place].reschedule, 0, __ATOMIC_RELAXED);
    if (batches_have_callbacks_of(place))
        advance(place);
    if (batches_under_way(&places))
        carry_on();
}

static void idle(unsigned place)
{
    batches_idle(place, context_switch);
}

static void start(unsigned places)
{
    batches_start(places);
    task.batch = 0;
}

const struct variant variant_polling_percpu = {
    .name = "polling-percpu",
    .origin = "a task that polls the CPUs' counters, queues per CPU (rcu-poll of 2.5.46, 8.3.4)",
    .historical = true,
    .start = start,
    .idle = idle,
    .context_switch = context_switch,
    .call = batches_call,
};
