/* SPDX-License-Identifier: MIT */
/*
 * Counters and barrier, driven by a timer per CPU (X-rcu, the thesis's C.2.2).
 *
 * Same as barrier.c, but each CPU has a separate timer, which expires every fifth tick, even
 * without work. Its handler moves callbacks from next to current to done, checks for the CPU's
 * quiescent state, and calls those in done.
 *
 * Differences: those of barrier.c, with the timer's handler in place of the tick. The timers of the
 * places expire in different ticks, like those of CPUs that were started one after another.
 */
#include "batches.h"

#define PERIOD 5 /* ticks */

static struct {
    uint64_t switches, expires; /* own */
} __attribute__((aligned(VARIANT_LINE))) cpu[PLACES_MAX];

static void handle_timer(unsigned place)
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
    if (ticks < cpu[place].expires)
        return;
    cpu[place].expires = ticks + PERIOD;
    handle_timer(place);
}

static void idle(unsigned place)
{
    batches_idle(place, context_switch);
}

static void start(unsigned places)
{
    batches_start(places);
    variant_ticks_start();
    for (unsigned i = 0; i < places; i++)
        cpu[i].expires = 1 + i % PERIOD;
}

const struct variant variant_xrcu = {
    .name = "xrcu",
    .origin = "counters and barrier, driven by a timer per CPU (X-rcu, C.2.2)",
    .historical = true,
    .start = start,
    .stop = variant_ticks_stop,
    .idle = idle,
    .context_switch = context_switch,
    .call = batches_call,
};
