/* SPDX-License-Identifier: MIT */
/* The repeats of one row: each runs in a child of its own, which returns its measurements as a
 * JSON object. */
#ifndef BENCH_REPEATS_H
#define BENCH_REPEATS_H

#include <jansson.h>

/*
 * Returns the result of `run`, a new reference. The child is killed after `seconds`, when the
 * threads have printed their places. Returns {"failed": why} in that case, or if `run` returned
 * NULL. Ends the program, with a message, if no child can be started.
 */
json_t *run_in_child(json_t *(*run)(const void *row), const void *row, unsigned seconds);

/* Collects the numbers that `count` repeats have under `key`, in the object `inner` unless it is
 * NULL. Returns how many have one. */
unsigned repeats_values(json_t *const *repeats, unsigned count, const char *inner, const char *key,
                        double *values);

#endif /* BENCH_REPEATS_H */
