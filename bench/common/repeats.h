/* SPDX-License-Identifier: MIT */
/* The repeats of one row: each is run in a child of its own, and says what it measured as a JSON object. */
#ifndef BENCH_REPEATS_H
#define BENCH_REPEATS_H

#include <jansson.h>

/*
 * What `run` returns, in a child that is killed after so many seconds, when its threads have said where they are; a new reference.
 * {"failed": why} if it was, or if it returned NULL. Where no child can be started the program ends, with a message.
 */
json_t *run_in_child(json_t *(*run)(const void *row), const void *row, unsigned seconds);

/* The numbers that `count` repeats have under `key`, in the object `inner` if that is given; how many have one. */
unsigned repeats_values(json_t *const *repeats, unsigned count, const char *inner, const char *key,
                        double *values);

#endif /* BENCH_REPEATS_H */
