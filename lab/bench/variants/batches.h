/* SPDX-License-Identifier: MIT */
/*
 * Numbered batches and a barrier: common code of rcu-ltimer, X-rcu, rcu-krcud, rcu-preempt, and
 * rcu-poll with a queue per CPU (the thesis's 4.4.1, C.2, C.3).
 *
 * A grace period is a number, and a mask of the places that have not passed a quiescent state in
 * it. The thread that clears the last bit begins the next batch, if one was requested. A place's
 * new callbacks wait in a queue; when no others of that place wait for a batch, they wait for the
 * first one that begins later. The variants differ in the thread that checks, the time of the
 * check, and the meaning of a quiescent state.
 *
 * A place's queues and notes belong to one thread, the place's or the daemon's.
 */
#ifndef VARIANTS_BATCHES_H
#define VARIANTS_BATCHES_H

#include "variant.h"

void batches_start(unsigned places);

/* Returns the new callbacks of a place, to append to. */
struct variant_queue *batches_new(unsigned place);
void batches_call(unsigned place, struct variant_head *head, void (*func)(struct variant_head *));
/* Returns whether the place has any callback. batches_idle() switches until it has none, before
 * the place becomes idle. */
bool batches_have_callbacks_of(unsigned place);
void batches_idle(unsigned place, void (*context_switch)(unsigned place));

/* Appends the callbacks whose batch is over to `done`, and gives new ones a batch. */
void batches_advance(unsigned place, struct variant_queue *done);

/* Returns the running batch, and the places that it waits for; 0 if none is running. */
uint64_t batches_under_way(uint64_t *places);
/* Returns the running batch if it waits for this place, otherwise 0. */
uint64_t batches_wait_for(unsigned place);

/* Notes the count of switches when first asked about that batch; returns true when a later count
 * differs. */
bool batches_saw_switch(unsigned place, uint64_t batch, uint64_t switches);

/* Records that these places have passed a quiescent state since that batch began. */
void batches_pass(uint64_t places, uint64_t batch);

/* Does a timer's work on a CPU: checks whether this place has switched since the batch began.
 * Idle places have passed as well. */
void batches_look(unsigned place, uint64_t switches);

#endif /* VARIANTS_BATCHES_H */
