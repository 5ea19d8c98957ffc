/* SPDX-License-Identifier: MIT */
/* Operations on a queue of callbacks (see callback_queue.c). */
#ifndef TOOLKIT_CALLBACKS_CALLBACK_QUEUE_H
#define TOOLKIT_CALLBACKS_CALLBACK_QUEUE_H

#include "fork_part.h"
#include "toolkit/callbacks/callbacks.h"

#define CALLBACK_CLOSED ((uintptr_t)1) /* in a lane's `incoming` */

/* Guards lists of queues; innermost except locks of rank > CALLBACKS. */
extern struct os_lock callbacks_lock;

/* Queues head->func. `bytes` is the value that callbacks_weigh will return. Returns true when
 * enough was pushed since the last time to check the limit. Does not notify the worker, as
 * callback_worker_look_at() does. */
bool callback_queue_push_quietly(struct callback_queue *queue, struct prudence_head *head,
                                 size_t bytes);

uint64_t callback_queue_bytes(const struct callback_queue *queue); /* bytes that wait now */
bool callback_queue_is_pending(const struct callback_queue *queue);
/* Returns whether a callback is queued or runs, or this thread runs the queue: then the caller is a
 * callback, or a function around callbacks. */
bool callback_queue_waits(const struct callback_queue *queue);

/* --- private to callback_*.c --- */

/* Initializes a queue whose `lane` is set, and adds the queue to the worker's list. */
void callback_queue_init(struct callback_queue *queue, struct prudence_domain *domain,
                         struct callback_worker *worker, unsigned lanes);

/* Returns false if another thread is the runner. */
bool callback_queue_become_runner(struct callback_queue *queue);
void callback_queue_end_running(struct callback_queue *queue);

/* Lists change only between busy and idle, where no fork happens. */
void callback_queue_become_busy(struct callback_queue *queue);
void callback_queue_become_idle(struct callback_queue *queue);
void callback_queue_collect(struct callback_queue *queue); /* lanes to segments */
void callback_queue_promote(struct callback_queue *queue); /* safe segments to ready */
void callback_queue_gather(struct callback_queue *queue);  /* all to ready, safe or not */
struct prudence_head *
callback_queue_next_ready(struct callback_queue *queue); /* sets `current`; NULL: none */
void callback_queue_tell_watchers(struct callback_queue *queue);

/* Between fork's handlers no thread can be started, and in a child's first ones the workers still
 * look like the parent's. So a thread that queues there, or asks for a worker, notes that, and asks
 * once more when the fork is over. */
void callback_queue_note_fork(void);
bool callback_queue_asked_in_fork(void); /* in this process, during this thread's last fork */
void callback_queue_forget_fork(void);   /* a fork begins */

extern uint32_t callbacks_forking; /* written by callback_fork.c */
/* Number of callbacks that this thread is in; without a worker's thread, barriers run callbacks,
 * too. The variable's address identifies the thread. */
extern __thread unsigned callback_depth;

extern const struct fork_part callback_fork_part;

#endif /* TOOLKIT_CALLBACKS_CALLBACK_QUEUE_H */
