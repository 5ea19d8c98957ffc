/* SPDX-License-Identifier: MIT */
/*
 * Numbered batches and a barrier: what rcu-ltimer, X-rcu, rcu-krcud, rcu-preempt, and rcu-poll with a queue per
 * CPU share (the thesis's 4.4.1, C.2, C.3).
 *
 * A grace period is a number, and a mask of the places that have not passed a quiescent state in it. The thread that
 * clears the last bit begins the next batch, if one was asked for. A place's new callbacks wait in a queue; when no
 * others of it wait for a batch, they do, for the first one that begins later. The variants differ in the thread that
 * looks, when it looks, and what it takes for a quiescent state.
 *
 * A place's queues and notes belong to one thread: that of the place, or its daemon.
 */
#ifndef VARIANTS_BATCHES_H
#define VARIANTS_BATCHES_H

#include "variant.h"

void batches_start(unsigned places);

/* The new callbacks of a place: append to it. */
struct variant_queue *batches_new(unsigned place);
void batches_call(unsigned place, struct variant_head *head, void (*func)(struct variant_head *));
/* Whether it has any callback; and switches until it has none, before the place becomes idle. */
bool batches_have_callbacks_of(unsigned place);
void batches_idle(unsigned place, void (*context_switch)(unsigned place));

/* Puts the callbacks whose batch is over behind `done`, and gives new ones a batch. */
void batches_advance(unsigned place, struct variant_queue *done);

/* The batch that is under way, and the places that it waits for; 0: none is. */
uint64_t batches_under_way(uint64_t *places);
/* The batch that is under way, if it waits for this place; else 0. */
uint64_t batches_wait_for(unsigned place);

/* Notes the count of switches when first asked about that batch; true when another count is seen later. */
bool batches_saw_switch(unsigned place, uint64_t batch, uint64_t switches);

/* These places have passed a quiescent state since that batch began. */
void batches_pass(uint64_t places, uint64_t batch);

/* What a timer does on a CPU: has this place switched since the batch began? Idle places have passed as well. */
void batches_look(unsigned place, uint64_t switches);

#endif /* VARIANTS_BATCHES_H */
