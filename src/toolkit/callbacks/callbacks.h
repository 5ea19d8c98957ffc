/* SPDX-License-Identifier: MIT */
/*
 * Callbacks after a grace period: the types. The files, from the bottom to the top; each uses only
 * those before, and each has a header of its name:
 *
 *   callback_queue.c    a queue: pushing, and the runner's side
 *   callback_worker.c   the threads that run callbacks
 *   callback_life.c     makes and releases queues; the queue of the default domain
 *   callback_wait.c     barriers, back-pressure
 *   callback_fork.c     fork
 *
 * A queue belongs to one domain and is served by one worker. Every domain has a queue, served by
 * the worker of the process; other queues may be made with a separate worker. A queue is released
 * when it is empty and the worker no longer uses it.
 */
#ifndef TOOLKIT_CALLBACKS_CALLBACKS_H
#define TOOLKIT_CALLBACKS_CALLBACKS_H

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

/* The arguments of prudence_domain_call_around(); written by the runner. Zero: nothing. */
struct callback_around {
    void (*begin)(void *argument), (*end)(void *argument);
    void *argument;
    unsigned most; /* callbacks between the two */
};

/* A sleeping worker must be woken; a resting one comes back without help. */
enum callback_awake {
    CALLBACK_SLEEPS, /* or is about to check once more */
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
    uintptr_t thread;               /* pthread_t, written by the thread itself; 0: none yet */
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
    struct callback_around around;
    struct prudence_head *current; /* runs; atomic */
    unsigned in_vain;              /* callbacks of this turn that found something to wait for */
    gp_cookie waits_for;           /* value 0: only for the runner; atomic */
    uint64_t taken;      /* callbacks ever detached from lanes; written before `collected` */
    uint64_t invoked;    /* callbacks that have returned */
    uint64_t bytes_left; /* bytes of all callbacks that ran or run */
    uint32_t collecting; /* number of collections of lanes begun */
    uint32_t collected;  /* number of those ended */
    uint32_t progress,
        watchers; /* Threads that wait for `invoked` or `collected` sleep on progress. */

    /* Set when a throttled caller waited without success: no other waits until `invoked`
     * changes. */
    uint32_t expired;
    uint64_t expired_invoked;
    uint64_t no_pace_until; /* ns; set when a thread that kept pace saw none return */
    uint64_t no_pace_ns;    /* that pause; 0: the last thread saw some return */

    struct callback_lane *lane;
    void *context; /* of an external domain; kept here, where tools search for pointers */
    bool is_told;  /* LeakSanitizer knows of the queue and the lanes */
};

#endif /* TOOLKIT_CALLBACKS_CALLBACKS_H */
