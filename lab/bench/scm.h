/* SPDX-License-Identifier: MIT */
/* prudence-bench scm: the cost of the calls of short-term memory. */
#ifndef BENCH_SCM_H
#define BENCH_SCM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "measure.h"

/* Parses the command line after "scm"; returns the exit status. */
int scm_bench(int argc, char **argv);

/* --- scm_bursts.c --- */
#define BURST_OBJECTS 1000
enum burst_way { BURSTS_BY_FREE, BURSTS_IN_REGIONS, BURSTS_BY_DATES, BURST_WAYS };
extern const char *const scm_burst_ways[BURST_WAYS];
bool scm_bursts(uint64_t rounds, double results[BURST_WAYS]);

#endif /* BENCH_SCM_H */
