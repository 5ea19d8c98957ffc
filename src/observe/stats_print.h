/* SPDX-License-Identifier: MIT */
/* Prints all statistics (see stats_print.c). */
#ifndef OBSERVE_STATS_PRINT_H
#define OBSERVE_STATS_PRINT_H

#include <stdbool.h>

struct output;

/* Prints everything that prudence_stats_print() does, as text or JSON. */
void stats_print(struct output *output, bool json);

#endif /* OBSERVE_STATS_PRINT_H */
