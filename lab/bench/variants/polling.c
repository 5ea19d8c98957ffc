/* SPDX-License-Identifier: MIT */
/*
 * Global-list polling (rcu-poll, the thesis's C.2.3).
 *
 * One list of new callbacks and one of those that wait, for all CPUs, under a lock; one task, which
 * any thread that finds work carries on. It notes every CPU's counter of context switches and makes
 * each CPU reschedule; then it checks the counters again and again; when all have moved, it calls
 * the callbacks and begins anew. Shortest grace periods, least batching.
 *
 * Differences. The reschedule interrupt is a word that the place reads in variant_switch(),
 * where it would have switched anyway; so a place in a long section is not hurried, and neither was
 * a CPU of the original in a section that could not be preempted. The tasklet is carried on by
 * places in their context switches, and by the place that queues; idle places count as switched.
 */
#include "variant.h"

#include <pthread.h>

static struct {
    uint64_t switches;   /* own; read by the task */
    uint64_t noted;      /* the task's */
    uint32_t reschedule; /* set by the task */
    uint64_t last_round; /* own: of its last callback */
} __attribute__((aligned(VARIANT_LINE))) cpu[PLACES_MAX];

static struct {
    pthread_mutex_t list_lock; /* next */
    struct variant_queue next;
    uint64_t round;       /* round that will take the callbacks queued now; under list_lock */
    pthread_mutex_t task; /* held by the place that carries the task on; protects the rest */
    struct variant_queue waits;
    uint64_t mask;        /* places that have not switched yet */
    uint64_t waits_for;   /* the round of `waits` */
    uint64_t rounds_over; /* last round whose callbacks have returned; atomic */
    uint32_t active
        __attribute__((aligned(VARIANT_LINE))); /* there are callbacks; written under list_lock */
} polling = {.list_lock = PTHREAD_MUTEX_INITIALIZER, .task = PTHREAD_MUTEX_INITIALIZER};

/* Begins the next grace period, for callbacks queued until now. */
static void prepare(void)
{
    pthread_mutex_lock(&polling.list_lock);
    queue_move(&polling.waits, &polling.next);
    polling.waits_for = polling.round++;
    __atomic_store_n(&polling.active, polling.waits.first != NULL, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&polling.list_lock);
    polling.mask = 0;
    if (!polling.waits.first)
        return;
    variant_full_fence();
    for (unsigned i = 0; i < variant_place_count; i++) {
        cpu[i].noted = __atomic_load_n(&cpu[i].switches, __ATOMIC_ACQUIRE);
        __atomic_store_n(&cpu[i].reschedule, 1, __ATOMIC_RELAXED);
        polling.mask |= UINT64_C(1) << i;
    }
}

/* Checks once which places have switched. */
static void look(void)
{
    variant_full_fence();
    for (unsigned i = 0; i < variant_place_count; i++) {
        if (polling.mask >> i & 1 &&
            (variant_is_idle(i) ||
             __atomic_load_n(&cpu[i].switches, __ATOMIC_ACQUIRE) != cpu[i].noted))
            polling.mask &= ~(UINT64_C(1) << i);
    }
}

static void carry_on(void)
{
    struct variant_queue over;
    uint64_t round = 0;

    if (pthread_mutex_trylock(&polling.task))
        return;
    queue_make_empty(&over);
    if (polling.mask)
        look();
    if (!polling.mask) {
        queue_move(&over, &polling.waits);
        round = polling.waits_for;
        prepare();
    }
    pthread_mutex_unlock(&polling.task);
    variant_full_fence();
    queue_invoke(&over);
    /* Rounds may end out of order, because the place that invokes may be preempted. Only idle
     * places ask. */
    if (round > __atomic_load_n(&polling.rounds_over, __ATOMIC_RELAXED))
        __atomic_store_n(&polling.rounds_over, round, __ATOMIC_RELEASE);
}

static void context_switch(unsigned place)
{
    __atomic_store_n(&cpu[place].switches, cpu[place].switches + 1, __ATOMIC_RELEASE);
    variant_full_fence(); /* the switch itself: later reads come after it was counted */
    if (__atomic_load_n(&cpu[place].reschedule, __ATOMIC_RELAXED))
        __atomic_store_n(&cpu[place].reschedule, 0, __ATOMIC_RELAXED);
    if (__atomic_load_n(&polling.active, __ATOMIC_RELAXED))
        carry_on();
}

static void call(unsigned place, struct variant_head *head, void (*func)(struct variant_head *))
{
    head->func = func;
    pthread_mutex_lock(&polling.list_lock);
    queue_append(&polling.next, head);
    cpu[place].last_round = polling.round;
    __atomic_store_n(&polling.active, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&polling.list_lock);
}

/* Stays until the callbacks have been called, because in the original the tasklet keeps a CPU
 * awake. */
static void idle(unsigned place)
{
    while (__atomic_load_n(&polling.rounds_over, __ATOMIC_ACQUIRE) < cpu[place].last_round) {
        context_switch(place);
        variant_pause();
    }
}

static void start(unsigned places)
{
    (void)places;
    queue_make_empty(&polling.next);
    queue_make_empty(&polling.waits);
    polling.round = 1;
}

const struct variant variant_polling = {
    .name = "polling",
    .origin = "a list, and a task that polls the CPUs' counters (rcu-poll, C.2.3)",
    .historical = true,
    .start = start,
    .idle = idle,
    .context_switch = context_switch,
    .call = call,
};
