/* SPDX-License-Identifier: MIT */
/*
 * Counter ring (rcu-sched, the thesis's 4.4.2).
 *
 * Each CPU has a counter. At a context switch, while callbacks are pending anywhere, it sets its
 * own to one more than the counter of the CPU before it. When that is a change, every CPU has
 * switched since this one's last change: a grace period of its own, which overlaps the others'.
 * There are two queues of callbacks per CPU: those that wait for the grace period, and new ones;
 * they change roles when it ends. No lock.
 *
 * Differences. An idle CPU's idle loop takes part in the original; here the next place carries the
 * counter past an idle one, by compare-and-swap, because the place may come back and do so itself.
 * A place with callbacks stays until they have run before it becomes idle (the original's idle loop
 * polls on). No CPU comes or goes, so there is no finished_count; nor do handlers queue callbacks,
 * so there is one queue for all interrupt levels. On one place alone each switch is a grace period.
 */
#include "variant.h"

static struct {
    uint64_t count;
    uint64_t seen;                    /* own: the count at the last grace period's end */
    struct variant_queue next, waits; /* own */
} __attribute__((aligned(VARIANT_LINE))) ring[PLACES_MAX];

static uint64_t pending __attribute__((aligned(VARIANT_LINE))); /* callbacks; atomic */

static uint64_t count_of(unsigned place)
{
    return __atomic_load_n(&ring[place].count, __ATOMIC_ACQUIRE);
}

static unsigned before(unsigned place)
{
    return (place ? place : variant_place_count) - 1;
}

/* Raises a counter to one more than the counter before it. */
static void pass(unsigned place)
{
    uint64_t count = count_of(place), wanted = count_of(before(place)) + 1;

    if (count < wanted)
        __atomic_compare_exchange_n(&ring[place].count, &count, wanted, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_RELAXED);
}

/* Carries the counter past the idle places just before this one. */
static void pass_idle(unsigned place)
{
    unsigned first = place;

    variant_full_fence();
    while (before(first) != place && variant_is_idle(before(first)))
        first = before(first);
    for (; first != place; first = (first + 1) % variant_place_count)
        pass(first);
}

/* The own counter has changed, so callbacks that waited since its last change may run. */
static void grace_period_ended(unsigned place)
{
    struct variant_queue over;

    queue_make_empty(&over);
    queue_move(&over, &ring[place].waits);
    queue_move(&ring[place].waits, &ring[place].next);
    if (over.first)
        __atomic_sub_fetch(&pending, queue_invoke(&over), __ATOMIC_RELAXED);
}

static void context_switch(unsigned place)
{
    if (!__atomic_load_n(&pending, __ATOMIC_RELAXED))
        return; /* the global read that an idle system pays for */
    pass_idle(place);
    pass(place);
    variant_full_fence();
    if (count_of(place) != ring[place].seen) {
        ring[place].seen = count_of(place);
        grace_period_ended(place);
    }
}

static void call(unsigned place, struct variant_head *head, void (*func)(struct variant_head *))
{
    head->func = func;
    queue_append(&ring[place].next, head);
    __atomic_add_fetch(&pending, 1, __ATOMIC_SEQ_CST);
}

/* Stays until the callbacks have run, as the original's idle loop does. */
static void idle(unsigned place)
{
    while (ring[place].next.first || ring[place].waits.first) {
        context_switch(place);
        variant_pause();
    }
}

static void start(unsigned places)
{
    pending = 0;
    for (unsigned i = 0; i < places; i++) {
        ring[i].count = i; /* as after a round */
        ring[i].seen = i;
        queue_make_empty(&ring[i].next);
        queue_make_empty(&ring[i].waits);
    }
}

const struct variant variant_ring = {
    .name = "ring",
    .origin = "ring of counters, passed on at context switches (rcu-sched, 4.4.2)",
    .historical = true,
    .start = start,
    .idle = idle,
    .context_switch = context_switch,
    .call = call,
};
