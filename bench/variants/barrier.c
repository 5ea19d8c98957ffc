/* SPDX-License-Identifier: MIT */
/*
 * Counters and barrier (rcu-ltimer, the thesis's 4.4.1; DYNIX/ptx before it).
 *
 * Each CPU counts its context switches. At its timer tick it looks whether there is something to do: a
 * grace period is a number (curbatch) and a mask of CPUs that have not switched in it; a CPU that finds its
 * bit set notes its counter, and at a later tick, when the counter has moved, clears the bit. The CPU that clears the
 * last one begins the next batch, if one was asked for. A CPU's new callbacks wait in `next`; at a tick they
 * become `current`, if that is empty, for the batch after the running one.
 *
 * Differences. Timer interrupts are a counter that a thread raises every millisecond; a place does a
 * tick's work in the first context switch after it, never in a section, so "interrupted in user mode" is
 * not a quiescent state of its own. Idle places are left out of the mask, and cleared from it by the place that
 * does a tick (the original interrupts them). A place with callbacks stays until they have run before it
 * becomes idle.
 */
#include "variant.h"

#include <pthread.h>

static struct {
    uint64_t switches, noted, tick, batch; /* own */
    bool has_noted;
    uint64_t noted_batch;
    struct variant_queue next, current; /* own */
} __attribute__((aligned(VARIANT_LINE))) cpu[PLACES_MAX];

static struct {
    pthread_mutex_t lock;
    uint64_t current; /* the batch that runs, or will run next */
    uint64_t wanted;  /* the last batch that somebody waits for; under lock */
    uint64_t mask;    /* written under lock */
} barrier = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Begins the current batch, if it is wanted and none runs. Under the lock. */
static void begin(void)
{
    uint64_t mask = 0;

    if (barrier.mask || barrier.wanted < barrier.current)
        return;
    for (unsigned i = 0; i < variant_place_count; i++)
        mask |= UINT64_C(1) << i;
    __atomic_store_n(&barrier.mask, mask, __ATOMIC_RELEASE);
}

/* Under the lock. */
static void clear(unsigned place)
{
    uint64_t mask = barrier.mask & ~(UINT64_C(1) << place);

    if (mask == barrier.mask)
        return;
    __atomic_store_n(&barrier.mask, mask, __ATOMIC_RELEASE);
    if (mask)
        return;
    __atomic_store_n(&barrier.current, barrier.current + 1, __ATOMIC_RELEASE);
    begin();
}

static void clear_idle(void)
{
    uint64_t mask;

    variant_full_fence();
    mask = barrier.mask;
    for (unsigned i = 0; i < variant_place_count; i++) {
        if (mask >> i & 1 && variant_is_idle(i))
            clear(i);
    }
}

/* Whether the own bit may be cleared: a switch since the batch was noticed. */
static bool has_switched(unsigned place)
{
    uint64_t batch = __atomic_load_n(&barrier.current, __ATOMIC_ACQUIRE);

    if (!cpu[place].has_noted || cpu[place].noted_batch != batch) {
        cpu[place].has_noted = true;
        cpu[place].noted_batch = batch;
        cpu[place].noted = cpu[place].switches;
        return false;
    }
    return cpu[place].switches != cpu[place].noted;
}

static void check_barrier(unsigned place)
{
    uint64_t mask = __atomic_load_n(&barrier.mask, __ATOMIC_ACQUIRE);

    if (!mask)
        return;
    if (mask >> place & 1 && !has_switched(place))
        return;
    pthread_mutex_lock(&barrier.lock);
    if (cpu[place].has_noted && cpu[place].noted_batch == barrier.current && has_switched(place))
        clear(place);
    clear_idle();
    pthread_mutex_unlock(&barrier.lock);
}

static void ask_for_batch(unsigned place)
{
    pthread_mutex_lock(&barrier.lock);
    /* One that runs may have begun before these were queued. */
    cpu[place].batch = barrier.current + (barrier.mask != 0);
    if (barrier.wanted < cpu[place].batch)
        barrier.wanted = cpu[place].batch;
    begin();
    pthread_mutex_unlock(&barrier.lock);
}

static void advance_callbacks(unsigned place)
{
    if (cpu[place].current.first &&
        cpu[place].batch < __atomic_load_n(&barrier.current, __ATOMIC_ACQUIRE)) {
        struct variant_queue over;

        queue_make_empty(&over);
        queue_move(&over, &cpu[place].current);
        queue_invoke(&over);
    }
    if (!cpu[place].current.first && cpu[place].next.first) {
        queue_move(&cpu[place].current, &cpu[place].next);
        ask_for_batch(place);
    }
}

static void do_tick(unsigned place)
{
    advance_callbacks(place);
    check_barrier(place);
}

static void context_switch(unsigned place)
{
    uint64_t ticks = __atomic_load_n(&variant_ticks, __ATOMIC_RELAXED);

    cpu[place].switches++; /* of its own thread only: nobody else reads it */
    variant_full_fence();  /* the switch itself */
    if (ticks == cpu[place].tick)
        return;
    cpu[place].tick = ticks;
    do_tick(place);
}

static void call(unsigned place, struct variant_head *head, void (*func)(struct variant_head *))
{
    head->func = func;
    queue_append(&cpu[place].next, head);
}

static void idle(unsigned place)
{
    while (cpu[place].next.first || cpu[place].current.first) {
        context_switch(place);
        variant_pause();
    }
}

static void start(unsigned places)
{
    barrier.current = 1;
    barrier.wanted = 0;
    barrier.mask = 0;
    for (unsigned i = 0; i < places; i++) {
        queue_make_empty(&cpu[i].next);
        queue_make_empty(&cpu[i].current);
    }
    variant_ticks_start();
}

const struct variant variant_barrier = {
    .name = "barrier",
    .origin = "counters and barrier, driven by the timer (rcu-ltimer, 4.4.1)",
    .historical = true,
    .start = start,
    .stop = variant_ticks_stop,
    .idle = idle,
    .context_switch = context_switch,
    .call = call,
};
