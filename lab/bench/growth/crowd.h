/* SPDX-License-Identifier: MIT */
/* Threads around a measurement: readers that are registered, or that read now and then. */
#ifndef BENCH_GROWTH_CROWD_H
#define BENCH_GROWTH_CROWD_H

#include <stdbool.h>

struct crowd;

/*
 * Starts `count` threads, each of which has read once when this returns. Busy ones continue, and
 * all together make some 20,000 sections a second, however many they are: the figure is to show
 * their cost to the others, not a lack of CPUs. Returns NULL if the system refuses that many
 * threads.
 */
struct crowd *crowd_start(unsigned count, bool busy);

/* Ends and joins them. */
void crowd_stop(struct crowd *crowd);

#endif /* BENCH_GROWTH_CROWD_H */
