/* SPDX-License-Identifier: MIT */
/*
 * Running on each CPU: what `induced`, `batch` and `taskq` share (the thesis's 4.3.1).
 *
 * What ran on a CPU before a waiter runs there has been switched out. A place is not a CPU that the scheduler could be
 * made to put us on. So "running there" is a request, which the place carries out at its next context switch; an idle place
 * counts as run on.
 */
#ifndef VARIANTS_RUNS_H
#define VARIANTS_RUNS_H

#include "variant.h"

/* The context switch of all three: carries out what was asked of this place. */
void runs_switch(unsigned place);

/* Asks for a run on that place. A full fence. Returns what runs_wait waits for. */
uint64_t runs_ask(unsigned place);

/* Until the place has carried it out, or has been idle since. A waiter that is a place itself (`self` >= 0) carries out
 * what is asked of it meanwhile, or two waiters would wait for each other. */
void runs_wait(unsigned place, uint64_t wanted, int self);

#endif /* VARIANTS_RUNS_H */
