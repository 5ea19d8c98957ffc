/* SPDX-License-Identifier: MIT */
/*
 * Induced quiescent states with batches, driven by the callers (batch, the thesis's 4.3.2).
 *
 * call_rcu pushes onto one list for all CPUs, under a lock. A function takes the list, waits by
 * inducing a quiescent state on each CPU (as induced.c does), and calls all of it, the youngest
 * first. The original leaves its caller open: "from time to time".
 *
 * Differences. Here a place that has queued calls it at its next context switch, so a batch is what
 * all places have queued until then; places that never queue do not pay.
 */
#include "runs.h"

#include <pthread.h>

static struct {
    pthread_mutex_t lock;
    struct variant_head *list; /* under lock */
} pending = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
    bool has_called; /* own: called since it last took the list */
} __attribute__((aligned(VARIANT_LINE))) cpu[PLACES_MAX];

static void free_pending(unsigned place)
{
    struct variant_head *head;

    cpu[place].has_called = false;
    pthread_mutex_lock(&pending.lock);
    head = pending.list;
    pending.list = NULL;
    pthread_mutex_unlock(&pending.lock);
    if (!head) /* another place has taken all */
        return;
    variant_induced.synchronize(place);
    while (head) {
        struct variant_head *next = head->next; /* the callback may free it */

        head->func(head);
        head = next;
    }
}

static void context_switch(unsigned place)
{
    runs_switch(place); /* carries out what other places ask of this one */
    if (cpu[place].has_called)
        free_pending(place);
}

static void call(unsigned place, struct variant_head *head, void (*func)(struct variant_head *))
{
    head->func = func;
    cpu[place].has_called = true;
    pthread_mutex_lock(&pending.lock);
    head->next = pending.list;
    pending.list = head;
    pthread_mutex_unlock(&pending.lock);
}

/* Repeats, because a callback may queue another one. */
static void idle(unsigned place)
{
    while (cpu[place].has_called)
        free_pending(place);
}

const struct variant variant_batch = {
    .name = "batch",
    .origin = "induced quiescent states with batches, driven by callers (4.3.2)",
    .historical = true,
    .idle = idle,
    .context_switch = context_switch,
    .call = call,
};
