/* SPDX-License-Identifier: MIT */
/* Threads that run callbacks (see callback_worker.c). */
#ifndef TOOLKIT_CALLBACKS_CALLBACK_WORKER_H
#define TOOLKIT_CALLBACKS_CALLBACK_WORKER_H

#include "toolkit/callbacks/callback_queue.h"

/* Set by a layer above: callbacks_weigh returns the bytes that a queued head counts as, and
 * callbacks_leave reads the head before the callback runs, while the object is whole. NULL: no
 * bytes are counted. */
extern size_t (*callbacks_weigh)(const struct prudence_head *head);
extern void (*callbacks_leave)(const struct prudence_head *head);

/* The result of a worker's check: the worker found nothing to do, found callbacks that wait for
 * readers or for another thread, or ran some. */
enum callback_turn {
    CALLBACK_TURN_EMPTY,
    CALLBACK_TURN_LATER, /* no callback waits for readers, but check again in a millisecond */
    CALLBACK_TURN_WAITS,
    CALLBACK_TURN_RAN
};

/* Other work for the process's worker, between callbacks. NULL: none. */
extern enum callback_turn (*callbacks_other_work)(void);

struct callback_worker *callback_worker_make(struct callback_queue *queue, int cpu, bool polls);
void callback_worker_release(struct callback_worker *worker); /* the worker's queue must be empty */

/* Starts the worker's thread, or ends the thread's sleep. */
void callback_worker_wake(struct callback_worker *worker);

/* Notifies the worker of a head that the caller has pushed. The load is sequentially consistent, as
 * the push before it is, so the two are not reordered. (AArch64 without LSE may execute a relaxed
 * load before the push is visible.) It pairs with the store of 0 in callback_worker_may_sleep()
 * and the fence after that store: the worker sees the head, or this sees that the worker sleeps. */
static inline void callback_kick(struct callback_worker *worker)
{
    if (unlikely(!load_ordered(&worker->awake) || !load_relaxed(&worker->started)))
        callback_worker_wake(worker);
}

/* Ends the worker's rest, because a thread waits, or much is queued. */
void callback_worker_end_rest(struct callback_worker *worker);

static inline void callback_hurry(struct callback_worker *worker)
{
    callback_kick(worker);
    if (unlikely(load_relaxed(&worker->awake) == CALLBACK_RESTS))
        callback_worker_end_rest(worker);
}

/* Like callback_queue_push_quietly(), and notifies the worker. */
static inline bool callback_push(struct callback_queue *queue, struct prudence_head *head,
                                 size_t bytes)
{
    bool look = callback_queue_push_quietly(queue, head, bytes);

    /* After the push, so that the worker finds the head or is woken. */
    if (unlikely(look))
        callback_hurry(queue->worker);
    else
        callback_kick(queue->worker);
    return look;
}

/* Has the worker check the queue, and starts the worker if needed. */
void callback_worker_look_at(struct callback_queue *queue);

/* Returns whether this thread is in a callback. */
bool callback_here(void);

/* Called in a callback of the queue that found something to wait for, and has queued itself there
 * anew. That is no work done, so the worker pauses before the next try. */
void callback_worker_note_vain(struct callback_queue *queue);

/* Asks the queue's own worker to end, and waits a little. Returns whether it has ended, and no
 * other thread runs the queue: then no callback runs there any more. */
bool callback_worker_ends(struct callback_queue *queue);

/* Moves the callbacks of `from` to `to`, of the same domain, and ends the worker of `from`, waiting
 * for a callback that runs there. No thread pushes to `from` any more. Barriers may read both,
 * first at `from`. */
void callback_worker_move_queue(struct callback_queue *from, struct callback_queue *to);

/* Makes the process's worker check callbacks_other_work, if there is one. Starts no worker, and
 * may be called with any locks held. */
void callback_worker_nudge(void);

/* --- private to callback_*.c --- */

#define CALLBACK_POLL_MAX_NS 1000000 /* longest pause between checks */

/* Serves one turn of a queue. Also returns WAITS if another thread runs the queue. */
enum callback_turn callback_worker_serve(struct callback_queue *queue);
void callback_worker_wait_for_readers(unsigned round);

/* The steps of a worker's thread. callback_worker_serve_all() serves one turn of each queue. After
 * a while without work, callback_worker_may_sleep() announces that the worker sleeps, checks once
 * more, and returns true if the thread may sleep until another one sets `awake`. */
enum callback_turn callback_worker_serve_all(struct callback_worker *worker);
bool callback_worker_may_sleep(struct callback_worker *worker);

/* Returns the pause after a turn of all queues. *rested: rested since callbacks last ran. */
enum callback_pause {
    CALLBACK_NO_PAUSE,
    CALLBACK_REST,
    CALLBACK_LONG_REST,
    CALLBACK_POLL,
    CALLBACK_SLEEP
};
enum callback_pause callback_worker_pause_after(enum callback_turn turn, bool *rested);

void callback_worker_init(struct callback_worker *worker, int cpu, bool polls);

extern struct callback_worker callback_main_worker;
extern struct list callback_workers; /* under callbacks_lock */
extern __thread struct callback_worker *callback_worker_here;

#endif /* TOOLKIT_CALLBACKS_CALLBACK_WORKER_H */
