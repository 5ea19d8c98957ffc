/* SPDX-License-Identifier: MIT */
/* Queues are made and released (see callback_life.c). */
#ifndef TOOLKIT_CALLBACKS_CALLBACK_LIFE_H
#define TOOLKIT_CALLBACKS_CALLBACK_LIFE_H

#include "toolkit/callbacks/callbacks.h"

/* Makes a queue with at most `lanes` lanes, served by the worker of the process. Returns NULL
 * without memory. callback_worker_make() gives the queue a separate worker. */
struct callback_queue *callback_queue_make(struct prudence_domain *domain, unsigned lanes);
void callback_queue_keep(struct callback_queue *queue, void *context); /* of an external domain */

/* The queue must be empty; may wait for the worker. */
void callback_queue_release(struct callback_queue *queue);
struct callback_queue *callback_queue_of(struct prudence_domain *domain);

/* Like callback_worker_nudge(), but starts the worker if needed. */
void callbacks_kick(void);

#endif /* TOOLKIT_CALLBACKS_CALLBACK_LIFE_H */
