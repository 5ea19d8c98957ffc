/* SPDX-License-Identifier: MIT */
/*
 * Voluntary switches, and counts of preempted readers (rcu-preempt, the thesis's C.3).
 *
 * Same as krcud.c, but only voluntary switches are quiescent states. A task that is preempted for
 * the first time since its last voluntary switch is counted in its CPU's next counter, and
 * remembers which one that was. At its next voluntary switch, wherever it then runs, it is removed
 * from that counter. A CPU has passed when its task has switched voluntarily and its previous
 * counter is empty.
 *
 * The roles of the two counters are exchanged when the daemon has seen a voluntary switch, or an
 * idle place, in the batch. All tasks of this CPU that may have been in a section when the batch
 * began are then either past a voluntary switch or counted in what becomes the previous counter.
 * The thesis has two descriptions, an exchange at the end of a grace period and one at its
 * beginning. Either would miss a task that ran when the grace period began and was preempted
 * afterwards: it counts as next, and the switch of another task passes its CPU.
 *
 * The previous counter is empty from a pass to the next exchange: a task that counted itself in it,
 * because it read the roles before an exchange, sees that and counts itself in the other.
 */
#include "batches.h"
#include "daemons.h"

static struct {
    uint64_t switches;   /* own, voluntary ones; read by the daemon */
    uint64_t counter[2]; /* tasks; atomic */
    uint32_t next;       /* index; written by the daemon */
    uint64_t exchanged;  /* the daemon's: the batch of the last exchange */
    uint64_t *held;      /* own: the counter of the running task; NULL if it was not preempted */
} __attribute__((aligned(VARIANT_LINE))) cpu[PLACES_MAX];

static void context_switch(unsigned place)
{
    if (cpu[place].held) {
        __atomic_sub_fetch(cpu[place].held, 1, __ATOMIC_SEQ_CST);
        cpu[place].held = NULL;
    }
    __atomic_store_n(&cpu[place].switches, cpu[place].switches + 1, __ATOMIC_RELEASE);
    variant_full_fence(); /* the switch itself: later reads come after it was counted */
}

/* Counts a task in the next counter. Either this sees an exchange after it has counted, or the
 * daemon sees the count after the exchange (both: write, full fence, read). */
static uint64_t *count_preempted(unsigned place)
{
    for (;;) {
        uint32_t next = __atomic_load_n(&cpu[place].next, __ATOMIC_ACQUIRE);
        uint64_t *counter = &cpu[place].counter[next];

        __atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST);
        variant_full_fence();
        if (__atomic_load_n(&cpu[place].next, __ATOMIC_ACQUIRE) == next)
            return counter;
        __atomic_sub_fetch(counter, 1, __ATOMIC_SEQ_CST);
    }
}

static void preempt(unsigned place, struct variant_task *task)
{
    task->counter = cpu[place].held ? cpu[place].held : count_preempted(place);
    cpu[place].held = NULL;
}

static void resume(unsigned place, struct variant_task *task)
{
    context_switch(place); /* a switch of the task that ran */
    cpu[place].held = task->counter;
}

static bool has_switched(unsigned place, uint64_t batch)
{
    return batches_saw_switch(place, batch,
                              __atomic_load_n(&cpu[place].switches, __ATOMIC_ACQUIRE)) ||
           variant_is_idle(place);
}

static bool has_passed(unsigned place, uint64_t batch)
{
    if (cpu[place].exchanged != batch) {
        if (!has_switched(place, batch))
            return false;
        cpu[place].exchanged = batch;
        __atomic_store_n(&cpu[place].next, !cpu[place].next, __ATOMIC_RELEASE);
        variant_full_fence(); /* pairs with the fence in count_preempted */
    }
    return !__atomic_load_n(&cpu[place].counter[!cpu[place].next], __ATOMIC_ACQUIRE);
}

static void start(unsigned places)
{
    for (unsigned i = 0; i < places; i++)
        cpu[i].exchanged = 0; /* batches are counted from 1 */
    daemons_start(places, has_passed);
}

const struct variant variant_preempt = {
    .name = "preempt",
    .origin = "voluntary switches and counts of preempted readers (rcu-preempt, C.3)",
    .historical = true,
    .start = start,
    .stop = daemons_stop,
    .context_switch = context_switch,
    .preempt = preempt,
    .resume = resume,
    .call = daemons_call,
};
