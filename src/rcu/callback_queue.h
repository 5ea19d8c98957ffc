/* SPDX-License-Identifier: MIT */
/* Private to callback_*.c: what they do to each other's queues and workers. */
#ifndef RCU_CALLBACK_QUEUE_H
#define RCU_CALLBACK_QUEUE_H

#include "rcu/callbacks.h"

#define CALLBACK_CLOSED      ((uintptr_t)1) /* in a lane's `incoming` */
#define CALLBACK_POLL_MAX_NS 1000000        /* between looks, however long it takes */

/*
 * The files, from the bottom to the top; each uses only those before it:
 *   callback_queue.c    a queue: pushing, and the runner's side
 *   callback_worker.c   the threads that run callbacks
 *   callback_life.c     queues are made and released; that of the default domain
 *   callback_wait.c     barriers, back-pressure
 *   callback_fork.c     fork
 */

/* callback_queue.c */

/* `lane` is there. The worker's list has it from now on. */
void callback_queue_init(struct callback_queue *queue, struct prudence_domain *domain,
                         struct callback_worker *worker, unsigned lanes);

/* False: another thread is. */
bool callback_become_runner(struct callback_queue *queue);
void callback_end_running(struct callback_queue *queue);

/* Between busy and idle the lists change, and no fork happens. */
void callback_become_busy(struct callback_queue *queue);
void callback_become_idle(struct callback_queue *queue);
void callback_collect(struct callback_queue *queue); /* lanes to segments */
void callback_promote(struct callback_queue *queue); /* safe segments to ready */
void callback_gather(struct callback_queue *queue);  /* all to ready, safe or not */
struct prudence_head *
callback_next_ready(struct callback_queue *queue); /* then `current`; NULL: none */
void callback_tell_watchers(struct callback_queue *queue);

extern uint32_t callbacks_forking; /* stored to by callback_fork.c */
/* Callbacks that this thread is in. (Without a worker's thread, a barrier may run some, too.) Its address stands for
 * the thread. */
extern __thread unsigned callback_depth;

/* callback_worker.c */

/* One turn of a queue. WAITS also where another thread runs it. */
enum callback_turn callback_serve(struct callback_queue *queue);
void callback_wait_for_readers(unsigned round);

/* What a worker's thread does, step by step: one turn of each queue. When nothing was found for a while, it announces
 * that it sleeps, and looks once more. True: it may sleep until a thread sets `awake`. */
enum callback_turn callback_serve_all(struct callback_worker *worker);
bool callback_worker_may_sleep(struct callback_worker *worker);

/* What its thread does after a turn of all queues. *rested: since callbacks last ran. */
enum callback_pause { CALLBACK_NO_PAUSE, CALLBACK_REST, CALLBACK_POLL, CALLBACK_SLEEP };
enum callback_pause callback_pause_after(enum callback_turn turn, bool *rested);

void callback_worker_init(struct callback_worker *worker, int cpu, bool polls);

extern struct callback_worker callback_main_worker;
extern struct list callback_workers; /* under callbacks_lock */
extern __thread struct callback_worker *callback_worker_here;

#endif /* RCU_CALLBACK_QUEUE_H */
