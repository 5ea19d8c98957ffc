/* SPDX-License-Identifier: MIT */
/* Private to callback_*.c: operations on queues and workers. */
#ifndef RCU_CALLBACK_QUEUE_H
#define RCU_CALLBACK_QUEUE_H

#include "rcu/callbacks.h"

#define CALLBACK_CLOSED      ((uintptr_t)1) /* in a lane's `incoming` */
#define CALLBACK_POLL_MAX_NS 1000000        /* longest pause between looks */

/*
 * The files, from the bottom to the top; each uses only those before:
 *
 *   callback_queue.c    a queue: pushing, and the runner's side
 *   callback_worker.c   the threads that run callbacks
 *   callback_life.c     makes and releases queues; the queue of the default domain
 *   callback_wait.c     barriers, back-pressure
 *   callback_fork.c     fork
 */

/* callback_queue.c */

/* Initializes a queue whose `lane` is set, and adds the queue to the worker's list. */
void callback_queue_init(struct callback_queue *queue, struct prudence_domain *domain,
                         struct callback_worker *worker, unsigned lanes);

/* Returns false if another thread is the runner. */
bool callback_become_runner(struct callback_queue *queue);
void callback_end_running(struct callback_queue *queue);

/* Lists change only between busy and idle, where no fork happens. */
void callback_become_busy(struct callback_queue *queue);
void callback_become_idle(struct callback_queue *queue);
void callback_collect(struct callback_queue *queue); /* lanes to segments */
void callback_promote(struct callback_queue *queue); /* safe segments to ready */
void callback_gather(struct callback_queue *queue);  /* all to ready, safe or not */
struct prudence_head *
callback_next_ready(struct callback_queue *queue); /* sets `current`; NULL: none */
void callback_tell_watchers(struct callback_queue *queue);

extern uint32_t callbacks_forking; /* written by callback_fork.c */
/* Number of callbacks that this thread is in; without a worker's thread, barriers run callbacks,
 * too. The variable's address identifies the thread. */
extern __thread unsigned callback_depth;

/* callback_worker.c */

/* Serves one turn of a queue. Also returns WAITS if another thread runs the queue. */
enum callback_turn callback_serve(struct callback_queue *queue);
void callback_wait_for_readers(unsigned round);

/* The steps of a worker's thread. callback_serve_all() serves one turn of each queue. After a while
 * without work, callback_worker_may_sleep() announces that the worker sleeps, looks once more, and
 * returns true if the thread may sleep until another one sets `awake`. */
enum callback_turn callback_serve_all(struct callback_worker *worker);
bool callback_worker_may_sleep(struct callback_worker *worker);

/* Returns the pause after a turn of all queues. *rested: rested since callbacks last ran. */
enum callback_pause { CALLBACK_NO_PAUSE, CALLBACK_REST, CALLBACK_POLL, CALLBACK_SLEEP };
enum callback_pause callback_pause_after(enum callback_turn turn, bool *rested);

void callback_worker_init(struct callback_worker *worker, int cpu, bool polls);

extern struct callback_worker callback_main_worker;
extern struct list callback_workers; /* under callbacks_lock */
extern __thread struct callback_worker *callback_worker_here;

#endif /* RCU_CALLBACK_QUEUE_H */
