/* SPDX-License-Identifier: MIT */
/*
 * Running on each CPU: common code of `induced`, `batch` and `taskq` (the thesis's 4.3.1).
 *
 * Tasks that ran on a CPU before a waiter runs there have been switched out. The scheduler cannot
 * put us on a place, because a place is no CPU. So "running there" is a request, which the place
 * carries out at its next context switch; an idle place counts as run on.
 */
#ifndef VARIANTS_RUNS_H
#define VARIANTS_RUNS_H

#include "variant.h"

/* The context switch of all three: carries out requests to this place. */
void runs_switch(unsigned place);

/* Requests a run on that place. A full fence. Returns the number for runs_wait. */
uint64_t runs_ask(unsigned place);

/* Waits until the place has carried it out, or has been idle since. A waiter that is a place
 * itself (`self` >= 0) carries out requests to it in the meantime; otherwise two waiters would
 * wait for each other. */
void runs_wait(unsigned place, uint64_t wanted, int self);

#endif /* VARIANTS_RUNS_H */
