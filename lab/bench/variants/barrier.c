/* SPDX-License-Identifier: MIT */
/*
 * Counters and barrier (rcu-ltimer, the thesis's 4.4.1; DYNIX/ptx before it).
 *
 * Each CPU counts context switches. At a timer tick it checks for work (batches.h): a CPU
 * that the batch waits for notes the counter, and at a later tick, when the counter has moved,
 * clears the bit.
 *
 * Differences. Timer interrupts are a counter that a thread raises every millisecond; a place does
 * a tick's work in the first context switch after it, never in a section, so "interrupted in user
 * mode" is not a quiescent state of its own. The place that does a tick clears idle places from the
 * mask (the original interrupts them). A place with callbacks stays until they have run before it
 * becomes idle.
 */
#include "batches.h"

static struct {
    uint64_t switches, tick; /* own */
} __attribute__((aligned(VARIANT_LINE))) cpu[PLACES_MAX];

static void do_tick(unsigned place)
{
    struct variant_queue done;

    queue_make_empty(&done);
    batches_advance(place, &done);
    batches_look(place, cpu[place].switches);
    queue_invoke(&done);
}

static void context_switch(unsigned place)
{
    uint64_t ticks = __atomic_load_n(&variant_ticks, __ATOMIC_RELAXED);

    cpu[place].switches++; /* no other thread reads it */
    variant_full_fence();  /* the switch itself */
    if (ticks == cpu[place].tick)
        return;
    cpu[place].tick = ticks;
    do_tick(place);
}

static void idle(unsigned place)
{
    batches_idle(place, context_switch);
}

static void start(unsigned places)
{
    batches_start(places);
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
    .call = batches_call,
};
