/* SPDX-License-Identifier: MIT */
/*
 * Callbacks after a grace period: queues (callback_queue.c), the threads that serve them
 * (callback_worker.c), and waiting for them (callback_wait.c). callback_queue.h has the order of
 * the files.
 *
 * A queue belongs to one domain and is served by one worker. Every domain has a queue, served by
 * the worker of the process; other queues may be made with a separate worker. A queue is released
 * when it is empty and the worker no longer uses it.
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
    uint64_t bytes_pushed; /* bytes of all heads ever pushed */
    char pad[CACHE_LINE - 16];
};

/* Callbacks that wait for one cookie, oldest first. `last` points at `first` if empty. */
struct callback_segment {
    struct prudence_head *first, **last;
    gp_cookie cookie;
};

/* A sleeping worker must be woken; a resting one comes back without help. */
enum callback_awake {
    CALLBACK_SLEEPS, /* or is about to look once more */
    CALLBACK_AWAKE,
    CALLBACK_RESTS,
};

struct callback_worker {
    uint32_t awake;     /* of enum callback_awake; the worker sleeps on this word */
    uint32_t started;   /* the thread exists */
    uint32_t stopping;  /* end the thread and start none; the thread answers by started = 0 */
    bool polls;         /* never sleeps for long, so pushes need not wake the worker */
    int cpu;            /* where the thread runs; negative: anywhere */
    uint64_t retry_at;  /* ns; no attempt to start a thread before */
    struct list queues; /* under callbacks_lock, as the next */
    struct list link;   /* in the list of workers */
    struct callback_queue *serving; /* under callbacks_lock; not released while served */
    uintptr_t thread;               /* pthread_t, written by the thread itself */
};

/*
 * Invariants: segments in use are segments[(first_segment + i) % CALLBACK_SEGMENTS], i <
 * segments_used; each has an older cookie than the next. Callbacks in `ready` are safe. Segments
 * and `ready` together have taken - invoked callbacks, without the current one.
 */
struct callback_queue {
    struct prudence_domain *domain;
    struct callback_worker *worker;
    struct list link; /* in the worker's queues */
    unsigned lanes;   /* in use, a power of two */

    /* Owned by the runner, the thread that has set `running`. */
    uint32_t running;
    uint32_t busy;    /* The runner changes lists, and fork waits. Not set inside callbacks. */
    uintptr_t runner; /* identifies the thread: the address of a thread-local variable */
    struct callback_segment segments[CALLBACK_SEGMENTS], ready;
    unsigned first_segment, segments_used;
    struct prudence_head *current;
    gp_cookie waits_for; /* value 0: only for the runner; atomic */
    uint64_t taken;      /* callbacks ever detached from lanes; written before `collected` */
    uint64_t invoked;    /* callbacks that have returned */
    uint64_t bytes_left; /* bytes of all callbacks that ran or run */
    uint32_t collecting; /* number of collections of lanes begun */
    uint32_t collected;  /* number of those ended */
    uint32_t progress,
        watchers; /* Threads that wait for `invoked` or `collected` sleep on progress. */

    /* Set when a throttled caller waited in vain: no other waits until `invoked` changes. */
    uint32_t expired;
    uint64_t expired_invoked;
    uint64_t no_pace_until; /* ns; set when a thread that kept pace saw none return */
    uint64_t no_pace_ns;    /* that pause; 0: the last thread saw some return */

    struct callback_lane *lane;
    void *context; /* of an external domain; kept here, where tools look for pointers */
    bool is_told;  /* LeakSanitizer knows of the queue and the lanes */
};

extern struct os_lock
    callbacks_lock; /* guards lists of queues; innermost except locks of rank > CALLBACKS */

/* Set by a layer above: callbacks_weigh returns the bytes that a queued head counts as, and
 * callbacks_leave looks at the head before the callback runs, while the object is whole. NULL: no
 * bytes are counted. */
extern size_t (*callbacks_weigh)(const struct prudence_head *head);
extern void (*callbacks_leave)(const struct prudence_head *head);

/* The result of a worker's look: the worker found nothing to do, found callbacks that wait for
 * readers or for another thread, or ran some. */
enum callback_turn { CALLBACK_TURN_EMPTY, CALLBACK_TURN_WAITS, CALLBACK_TURN_RAN };

/* Other work for the process's worker, between callbacks. NULL: none. */
extern enum callback_turn (*callbacks_other_work)(void);

/* Makes a queue with at most `lanes` lanes, served by the worker of the process. Returns NULL
 * without memory. callback_worker_make() gives the queue a separate worker. */
struct callback_queue *callback_queue_make(struct prudence_domain *domain, unsigned lanes);
void callback_queue_keep(struct callback_queue *queue, void *context); /* of an external domain */
bool callback_waits(const struct callback_queue *queue); /* true if a callback is queued or runs */
/* The queue must be empty; may wait for the worker. */
void callback_queue_release(struct callback_queue *queue);
struct callback_queue *callback_queue_of(struct prudence_domain *domain);
struct callback_worker *callback_worker_make(struct callback_queue *queue, int cpu, bool polls);
void callback_worker_release(struct callback_worker *worker); /* the worker's queue must be empty */

/* Starts the worker's thread, or ends the thread's sleep. */
void callback_worker_wake(struct callback_worker *worker);

static inline void callback_kick(struct callback_worker *worker)
{
    if (unlikely(!load_relaxed(&worker->awake) || !load_relaxed(&worker->started)))
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

/* Queues head->func. `bytes` is the value that callbacks_weigh will return. Returns true when
 * enough was pushed since the last time to check the limit. Does not tell the worker, as
 * callback_start() does. */
bool callback_push_quietly(struct callback_queue *queue, struct prudence_head *head, size_t bytes);

static inline bool callback_push(struct callback_queue *queue, struct prudence_head *head,
                                 size_t bytes)
{
    bool look = callback_push_quietly(queue, head, bytes);

    /* The compare-and-swap fenced: the worker sees the head, or we see that the worker sleeps. */
    if (unlikely(look))
        callback_hurry(queue->worker);
    else
        callback_kick(queue->worker);
    return look;
}

uint64_t callback_bytes(const struct callback_queue *queue); /* bytes that wait now */
bool callback_is_pending(const struct callback_queue *queue);

/* Has the worker look at the queue, and starts the worker if needed. */
void callback_start(struct callback_queue *queue);

/* Returns whether this thread is in a callback. */
bool callback_here(void);

/* Waits until all callbacks queued before have returned. The caller may wait, and is not in a
 * callback. */
void callback_barrier(struct callback_queue *queue);

/* Waits until at most `bytes` wait; returns false at the deadline. The caller has asked
 * callback_worth_waiting(). */
bool callback_wait_for_room(struct callback_queue *queue, uint64_t bytes, uint64_t deadline);
bool callback_worth_waiting(struct callback_queue *queue);

/* Holds the caller back, for 4 ms at most, if callbacks that wait for no reader are queued faster
 * than they run, so the backlog is no longer than the caches can hold. Does the same while the
 * reader in the way has lost its CPU, because that reader may need this thread's CPU. Waits for no
 * action of a reader, so callers may be inside a section, but not in a callback. Returns false if
 * there was no reason to wait. */
bool callback_keep_pace(struct callback_queue *queue);

/* Moves the callbacks of `from` to `to`, of the same domain, and ends the worker of `from`, waiting
 * for a callback that runs there. No thread pushes to `from` any more. Barriers may look at both,
 * first at `from`. */
void callback_move(struct callback_queue *from, struct callback_queue *to);

/* callbacks_kick() makes the process's worker look at callbacks_other_work, and starts the worker
 * if needed. callbacks_nudge() starts no worker, and may be called with any locks held. */
void callbacks_kick(void);
void callbacks_nudge(void);

void callbacks_fork_prepare(void);
void callbacks_fork_child(bool whole); /* before callbacks_fork_done */
void callbacks_fork_done(void);

#endif /* RCU_CALLBACKS_H */
