/* SPDX-License-Identifier: MIT */
/* Waits for callbacks (see callback_wait.c). */
#ifndef TOOLKIT_CALLBACKS_CALLBACK_WAIT_H
#define TOOLKIT_CALLBACKS_CALLBACK_WAIT_H

#include "toolkit/callbacks/callbacks.h"

/* Wait until all callbacks queued before have returned. The second returns false at the deadline
 * (0: none). The caller may wait, and is not in a callback. */
void callback_barrier(struct callback_queue *queue);
bool callback_barrier_until(struct callback_queue *queue, uint64_t deadline);

/* Waits until at most `bytes` wait; returns false at the deadline. The caller has asked
 * callback_wait_is_worthwhile(). */
bool callback_wait_for_room(struct callback_queue *queue, uint64_t bytes, uint64_t deadline);
bool callback_wait_is_worthwhile(struct callback_queue *queue);

/* Holds the caller back, for 4 ms at most, if callbacks that wait for no reader are queued faster
 * than they run, so the backlog is no longer than the caches can hold. Does the same while the
 * blocking reader has lost its CPU, because that reader may need this thread's CPU. Waits for no
 * action of a reader, so callers may be inside a section, but not in a callback. Returns false if
 * there was no reason to wait. */
bool callback_wait_keep_pace(struct callback_queue *queue);

#endif /* TOOLKIT_CALLBACKS_CALLBACK_WAIT_H */
