/* SPDX-License-Identifier: MIT */
/*
 * Callbacks after a grace period: queues (callback_queue.c), the threads that serve them (callback_worker.c), and
 * waiting for them (callback_wait.c). callback_queue.h has the order of the files.
 *
 * A queue belongs to one domain and is served by one worker. Every domain has one, served by the worker of the
 * process; others may be made with a worker of their own. Lifetimes: a queue is released when it is empty, and its
 * worker no longer uses it.
 */
#ifndef RCU_CALLBACKS_H
#define RCU_CALLBACKS_H

#include <prudence/call.h>

#include "base/list.h"
#include "gp/gp.h"
#include "os/os.h"

#define CALLBACK_LANES_MAX 64
#define CALLBACK_SEGMENTS  4

/* One CPU's end of a queue. Pushed by compare-and-swap, newest first; detached whole. */
struct callback_lane {
    uintptr_t incoming;    /* the newest head; bit 0: closed by a fork */
    uint64_t bytes_pushed; /* ever, what heads stand for */
    char pad[CACHE_LINE - 16];
};

/* Callbacks that wait for one cookie, oldest first; empty: `last` points at `first`. */
struct callback_segment {
    struct prudence_head *first, **last;
    gp_cookie cookie;
};

/* A worker that sleeps has to be woken. One that rests comes back by itself. */
enum callback_awake {
    CALLBACK_SLEEPS, /* or is about to look once more */
    CALLBACK_AWAKE,
    CALLBACK_RESTS,
};

struct callback_worker {
    uint32_t awake;     /* of enum callback_awake; the word it sleeps on */
    uint32_t started;   /* there is a thread */
    uint32_t stopping;  /* it shall end, and is not started again; it answers by started = 0 */
    bool polls;         /* never sleeps for long, so that it need not be woken */
    int cpu;            /* where it runs; negative: anywhere */
    uint64_t retry_at;  /* ns; before that no thread is tried for again */
    struct list queues; /* under callbacks_lock, as the next */
    struct list link;   /* in the list of workers */
    struct callback_queue *serving; /* under callbacks_lock; not released while it is served */
    uintptr_t thread;               /* pthread_t, by itself */
};

/*
 * Invariants: segments in use are segments[(first_segment + i) % CALLBACK_SEGMENTS], i < segments; each has an older
 * cookie than the next. `ready` is safe. Segments and ready together have taken - invoked callbacks, without the
 * current one.
 */
struct callback_queue {
    struct prudence_domain *domain;
    struct callback_worker *worker;
    struct list link; /* in its worker's queues */
    unsigned lanes;   /* in use, a power of two */

    /* The runner's, which is the thread that has set `running`. */
    uint32_t running;
    uint32_t busy;    /* it is at the lists: fork waits; not inside callbacks */
    uintptr_t runner; /* an address of its thread's own */
    struct callback_segment segments[CALLBACK_SEGMENTS], ready;
    unsigned first_segment, segments_used;
    struct prudence_head *current;
    gp_cookie waits_for; /* value 0: for nothing but the runner; atomic */
    uint64_t taken;      /* callbacks ever detached from lanes; written before `collected` */
    uint64_t invoked;    /* ... that have returned */
    uint64_t bytes_left; /* ever, what returned callbacks stood for */
    uint32_t collecting; /* times that lanes were looked at: begun */
    uint32_t collected;  /* ... ended */
    uint32_t progress,
        watchers; /* a thread that waits for `invoked`, or for `collected`, sleeps on progress */

    /* After a throttled caller waited in vain: the state that must change before another does. */
    uint32_t expired;
    uint64_t expired_invoked;
    uint64_t no_pace_until; /* ns; a thread that kept pace saw none return */
    uint64_t no_pace_ns;    /* how long that was; 0: the last one saw some */

    struct callback_lane *lane;
    void *context; /* of an external domain: kept here, where tools look for pointers */
    bool is_told;  /* LeakSanitizer knows of this and of the lanes */
};

extern struct os_lock
    callbacks_lock; /* lists of queues; innermost except those of rank > CALLBACKS */

/* A layer above knows how many bytes a queued head stands for, and looks at the head when its callback is about to
 * run: the object is whole. NULL: nothing is counted. */
extern size_t (*callbacks_weigh)(const struct prudence_head *head);
extern void (*callbacks_leave)(const struct prudence_head *head);

/* What a worker found: nothing to do, something that waits for readers (or for another thread), or
 * something that it ran. */
enum callback_turn { CALLBACK_TURN_EMPTY, CALLBACK_TURN_WAITS, CALLBACK_TURN_RAN };

/* Other work for the process's worker, between callbacks. NULL: none. */
extern enum callback_turn (*callbacks_other_work)(void);

/* A queue without a worker of its own, or with one; NULL: no memory. `lanes`: at most so many. */
struct callback_queue *callback_queue_make(struct prudence_domain *domain, unsigned lanes);
void callback_queue_keep(struct callback_queue *queue, void *context); /* of an external domain */
bool callback_waits(const struct callback_queue *queue);   /* in it; one that runs, too */
void callback_queue_release(struct callback_queue *queue); /* none does; may wait for the worker */
struct callback_queue *callback_queue_of(struct prudence_domain *domain);
struct callback_worker *callback_worker_make(struct callback_queue *queue, int cpu, bool polls);
void callback_worker_release(struct callback_worker *worker); /* its queue is empty */

/* Starts the worker's thread, or ends its sleep. */
void callback_worker_wake(struct callback_worker *worker);

static inline void callback_kick(struct callback_worker *worker)
{
    if (unlikely(!load_relaxed(&worker->awake) || !load_relaxed(&worker->started)))
        callback_worker_wake(worker);
}

/* The same, and ends its rest: a thread waits, or much is queued. */
void callback_worker_end_rest(struct callback_worker *worker);

static inline void callback_hurry(struct callback_worker *worker)
{
    callback_kick(worker);
    if (unlikely(load_relaxed(&worker->awake) == CALLBACK_RESTS))
        callback_worker_end_rest(worker);
}

/* Queues head->func. `bytes`: what callbacks_weigh will say. True when enough was pushed since the last time to check
 * whether it is too much. Quietly: its worker is not told; callback_start does that. */
bool callback_push_quietly(struct callback_queue *queue, struct prudence_head *head, size_t bytes);

static inline bool callback_push(struct callback_queue *queue, struct prudence_head *head,
                                 size_t bytes)
{
    bool look = callback_push_quietly(queue, head, bytes);

    /* The compare-and-swap fenced: the worker sees the head, or this that it sleeps. */
    if (unlikely(look))
        callback_hurry(queue->worker);
    else
        callback_kick(queue->worker);
    return look;
}

uint64_t callback_bytes(const struct callback_queue *queue); /* that wait now */
bool callback_is_pending(const struct callback_queue *queue);

/* Has its worker look at the queue, and starts it if need be. */
void callback_start(struct callback_queue *queue);

/* Whether this thread is in a callback. */
bool callback_here(void);

/* Waits until all that was queued before has returned. The caller may wait, and is not in a
 * callback. */
void callback_barrier(struct callback_queue *queue);

/* Until less than `bytes` wait, or the deadline. The caller has asked callback_worth_waiting(). */
bool callback_wait_for_room(struct callback_queue *queue, uint64_t bytes, uint64_t deadline);
bool callback_worth_waiting(struct callback_queue *queue);

/* Holds the caller back, for 4 ms at most, if callbacks that wait for no reader are queued faster than they are run:
 * so the backlog is no longer than what the caches hold. Also while the reader that is in the way has lost its CPU,
 * because it may need this thread's. This waits for nothing that a reader does, so it may be called inside a section,
 * but not in a callback. False: there was no reason. */
bool callback_keep_pace(struct callback_queue *queue);

/* Moves what waits in `from` to `to`, of the same domain, and ends the worker of `from`: waits for a callback that
 * runs there. No thread pushes to `from` any more. Barriers may look at both, at `from` first. */
void callback_move(struct callback_queue *from, struct callback_queue *to);

/* Makes the process's worker look at callbacks_other_work; starts it if need be. Nudge: does not start
 * it, and may be called with any locks held. */
void callbacks_kick(void);
void callbacks_nudge(void);

void callbacks_fork_prepare(void);
void callbacks_fork_child(bool whole); /* before callbacks_fork_done */
void callbacks_fork_done(void);

#endif /* RCU_CALLBACKS_H */
