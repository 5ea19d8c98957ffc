/* SPDX-License-Identifier: MIT */
/* Connects callbacks and the allocator (see call.c). */
#ifndef TOOLKIT_CALLBACKS_CALL_H
#define TOOLKIT_CALLBACKS_CALL_H

#include "fork_part.h"
#include "process/option.h"
#include "toolkit/callbacks/callbacks.h"

extern uint64_t call_limit; /* the option; bytes, 0: none */
extern const struct option callback_options[];

void call_start(void);

/* Queues a callback. The last argument is the name of the public function. */
void call_push(struct callback_queue *queue, struct prudence_head *head,
               void (*func)(struct prudence_head *head), const char *what);

extern const struct fork_part call_fork_part;

#endif /* TOOLKIT_CALLBACKS_CALL_H */
