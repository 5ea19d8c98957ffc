/* SPDX-License-Identifier: MIT */
/* Options that the start of the process looks at (process.c). */
#ifndef HEAP_OPTIONS_H
#define HEAP_OPTIONS_H

#include <stdbool.h>

extern bool option_rseq, option_membarrier;

/* exit_stats.c: whether statistics are printed at exit. */
void exit_stats_set(bool wanted);

#endif /* HEAP_OPTIONS_H */
