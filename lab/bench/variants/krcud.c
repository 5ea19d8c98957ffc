/* SPDX-License-Identifier: MIT */
/*
 * Counters and barrier, driven by daemons (rcu-krcud, the thesis's C.2.1).
 *
 * Each CPU counts context switches; a daemon checks the counter, woken by one timer that
 * expires only while there are callbacks. daemons.h explains how the daemons differ from the
 * original's.
 */
#include "batches.h"
#include "daemons.h"

static struct {
    uint64_t switches; /* own; read by the daemon */
} __attribute__((aligned(VARIANT_LINE))) cpu[PLACES_MAX];

static void context_switch(unsigned place)
{
    __atomic_store_n(&cpu[place].switches, cpu[place].switches + 1, __ATOMIC_RELEASE);
    variant_full_fence(); /* the switch itself: later reads come after it was counted */
}

static bool has_passed(unsigned place, uint64_t batch)
{
    return batches_saw_switch(place, batch,
                              __atomic_load_n(&cpu[place].switches, __ATOMIC_ACQUIRE)) ||
           variant_is_idle(place);
}

static void start(unsigned places)
{
    daemons_start(places, has_passed);
}

const struct variant variant_krcud = {
    .name = "krcud",
    .origin = "counters and barrier, driven by a daemon per CPU (rcu-krcud, C.2.1)",
    .historical = true,
    .start = start,
    .stop = daemons_stop,
    .context_switch = context_switch,
    .call = daemons_call,
};
