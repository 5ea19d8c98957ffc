/* SPDX-License-Identifier: MIT */
/*
 * Callbacks and fork.
 *
 * Fork closes the lanes, so threads that push wait, except the forking one, and keeps runners from
 * changing lists: a runner marks itself busy, fences, and checks whether a fork is under way. Fork
 * does not wait for a callback to return, because the callback might wait for the forking thread.
 * In the child, that callback counts as done, and no worker runs until one is needed.
 *
 * A handler of the program that runs between the library's own may queue callbacks, and start no
 * thread. If it did, the worker of the process is woken or started when the fork is over; urcu.c
 * does the same for the workers that were made.
 */
#include "fork_part.h"
#include "toolkit/callbacks/callback_life.h"
#include "toolkit/callbacks/callback_queue.h"
#include "toolkit/callbacks/callback_worker.h"

static void for_all_queues(void (*visit)(struct callback_queue *queue))
{
    struct list *item, *at;

    list_for_each(at, &callback_workers)
    {
        struct callback_worker *worker = list_entry(at, struct callback_worker, link);

        list_for_each(item, &worker->queues)
        {
            visit(list_entry(item, struct callback_queue, link));
        }
    }
}

/* Afterwards every pushed head is whole, and no thread pushes. */
static void close_lanes(struct callback_queue *queue)
{
    for (unsigned i = 0; i < queue->lanes; i++)
        __atomic_fetch_or(&queue->lane[i].incoming, CALLBACK_CLOSED, __ATOMIC_SEQ_CST);
}

static void open_lanes(struct callback_queue *queue)
{
    for (unsigned i = 0; i < queue->lanes; i++)
        __atomic_fetch_and(&queue->lane[i].incoming, ~CALLBACK_CLOSED, __ATOMIC_SEQ_CST);
}

static void wait_until_idle(struct callback_queue *queue)
{
    while (load_acquire(&queue->busy))
        os_sleep_ns(1000);
}

static void callback_fork_prepare(void)
{
    callback_queue_forget_fork();
    os_lock_take_for_fork(&callbacks_lock);
    store_release(&callbacks_forking, 1u);
    os_full_fence();
    for_all_queues(wait_until_idle);
    for_all_queues(close_lanes);
}

/* Clears the runner, which only exists in the child if it is the forking thread, in a callback. */
static void forget_runner(struct callback_queue *queue)
{
    queue->watchers = 0;
    if (!queue->running || queue->runner == (uintptr_t)&callback_depth)
        return;
    queue->running = queue->busy = 0;
    queue->runner = 0; /* a thread of the child may get the address */
    if (queue->current) {
        queue->current = NULL;
        queue->invoked++;
    }
}

static void callback_fork_child(bool whole)
{
    struct list *at;

    if (!whole) { /* another thread may have been forking, too */
        for_all_queues(open_lanes);
        callbacks_forking = 0;
    }
    for_all_queues(forget_runner);
    list_for_each(at, &callback_workers)
    {
        struct callback_worker *worker = list_entry(at, struct callback_worker, link);

        if (worker == callback_worker_here)
            continue;
        worker->started = worker->awake = worker->stopping = 0;
        worker->serving = NULL;
        worker->thread = 0;
    }
}

static void callback_fork_done(void)
{
    for_all_queues(open_lanes);
    store_release(&callbacks_forking, 0u);
    os_lock_release_from_fork(&callbacks_lock);
}

/* Runs without locks held. */
static void callback_fork_over(void)
{
    if (callback_queue_asked_in_fork())
        callbacks_kick();
}

const struct fork_part callback_fork_part = {.order = FORK_CALLBACKS,
                                             .name = "callbacks",
                                             .prepare = callback_fork_prepare,
                                             .child = callback_fork_child,
                                             .done = callback_fork_done,
                                             .resume = callback_fork_over,
                                             .revive = callback_fork_over};
