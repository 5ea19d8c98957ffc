/* SPDX-License-Identifier: MIT */
/* Threads that stand around a measurement: readers that are registered, or that read now and then. */
#ifndef BENCH_GROWTH_CROWD_H
#define BENCH_GROWTH_CROWD_H

#include <stdbool.h>

struct crowd;

/*
 * Starts `count` threads, each of which has read once when this returns. Busy ones go on: so often
 * that all together make some 20,000 sections a second, however many they are, because the point is
 * what each of them costs the others, not that CPUs are few. NULL: so many threads cannot be had.
 */
struct crowd *crowd_start(unsigned count, bool busy);

/* Ends and joins them. */
void crowd_stop(struct crowd *crowd);

#endif /* BENCH_GROWTH_CROWD_H */
