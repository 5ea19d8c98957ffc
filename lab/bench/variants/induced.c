/* SPDX-License-Identifier: MIT */
/*
 * Induced quiescent states (synchronize_kernel, the thesis's 4.3.1): the waiter runs once on every
 * CPU (runs.h), one after another, and nothing is batched.
 *
 * Difference. The original has no callbacks: call waits, as the thesis's caller would.
 */
#include "runs.h"

#include <pthread.h>

static pthread_mutex_t one_waiter = PTHREAD_MUTEX_INITIALIZER;

/* Serves requests to `self` while it waits for a turn; otherwise two waiters would wait for
 * each other. */
static void take_turn(unsigned self)
{
    while (pthread_mutex_trylock(&one_waiter)) {
        runs_switch(self);
        variant_pause();
    }
}

static void synchronize(unsigned self)
{
    take_turn(self);
    variant_full_fence();
    for (unsigned place = 0; place < variant_place_count; place++) {
        if (place != self)
            runs_wait(place, runs_ask(place), (int)self);
    }
    pthread_mutex_unlock(&one_waiter);
    variant_full_fence();
}

static void call(unsigned place, struct variant_head *head, void (*func)(struct variant_head *))
{
    synchronize(place);
    func(head);
}

const struct variant variant_induced = {
    .name = "induced",
    .origin = "quiescent states induced by running on each CPU (synchronize_kernel, 4.3.1)",
    .historical = true,
    .called_at_once = true,
    .context_switch = runs_switch,
    .call = call,
    .synchronize = synchronize,
};
