/* SPDX-License-Identifier: MIT */
/*
 * A single CPU (the thesis's 4.5): the context switch calls the callbacks queued before it.
 *
 * On one CPU all readers have ended their sections when it switches, so that is the grace period:
 * no counter, no batch, no lock. Callbacks may come from interrupt handlers, also in the midst of a
 * section of the code that they interrupt.
 *
 * Differences. The interrupt handler is a signal handler in the place's thread. The original would
 * disable interrupts to queue; here a compare-and-swap does, which need not be ordered for other
 * CPUs.
 */
#include "variant.h"

static struct variant_head
    *list; /* the youngest first; atomic towards handlers of the same thread */

static void context_switch(unsigned place)
{
    struct variant_head *head;

    (void)place;
    if (!__atomic_load_n(&list, __ATOMIC_RELAXED))
        return;
    head = __atomic_exchange_n(&list, NULL, __ATOMIC_RELAXED);
    while (head) {
        struct variant_head *next = head->next; /* the callback may free it */

        head->func(head);
        head = next;
    }
}

static void call(unsigned place, struct variant_head *head, void (*func)(struct variant_head *))
{
    (void)place;
    head->func = func;
    head->next = __atomic_load_n(&list, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&list, &head->next, head, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
        ;
}

static void idle(unsigned place)
{
    while (__atomic_load_n(&list, __ATOMIC_RELAXED))
        context_switch(place);
}

const struct variant variant_single = {
    .name = "single",
    .origin = "a CPU, whose context switch calls back (4.5)",
    .historical = true,
    .places_max = 1,
    .idle = idle,
    .context_switch = context_switch,
    .call = call,
};
