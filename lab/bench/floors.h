/* SPDX-License-Identifier: MIT */
/*
 * The floors that the scenario pairs compares a pair with. They are subjects of their own
 * (subject_floors.c), and the best plain malloc/free pair of the same run, one at a time and in
 * batches.
 */
#ifndef BENCH_FLOORS_H
#define BENCH_FLOORS_H

#include <stdbool.h>

#include "runner.h"

#define PLAIN_BATCH 1024 /* objects, of the batches that are the second measure */

/* Returns whether the floors that are restartable sequences can run in this process. */
bool floors_have_sequences(void);

/*
 * Stores into each merged row by how much the CPU time of its pair exceeds that of the best plain
 * pair of these rows: "by_plain" has "single" and "batched", each with "ratio", and with "min" and
 * "max" over the rounds. Whichever was not among the rows is not there.
 */
void floors_divide(struct row *rows, unsigned count);

/* Prints which pair was the best, or why there is none; and how far rounds were apart. */
void floors_print(const struct row *rows, unsigned count);

#endif /* BENCH_FLOORS_H */
