/* SPDX-License-Identifier: MIT */
/* Readers of a domain, for the summary. */
#ifndef PROCESS_READER_STATS_H
#define PROCESS_READER_STATS_H

#include <stdbool.h>

#include <prudence/stats.h>

struct prudence_domain;

/* Finds the next reader of a visited domain, without the thread's name and trace; *place starts at
 * 0. Returns false at the end. Takes no lock. */
bool reader_stats_next(const struct prudence_domain *domain, uint64_t *place,
                       struct prudence_reader_stats *stats);

/* Adds the thread's name, which opens a file, and the thread's trace if the reader is inside and
 * stall_trace is set. */
void reader_stats_look_up(struct prudence_reader_stats *stats);

#endif /* PROCESS_READER_STATS_H */
