/* SPDX-License-Identifier: MIT */
/* Readers of a domain, for the summary. */
#ifndef RUNTIME_READER_STATS_H
#define RUNTIME_READER_STATS_H

#include <stdbool.h>

#include <prudence/stats.h>

struct prudence_domain;

/* The next reader of a domain that is visited, without the thread's name and trace; *place is 0 at first. False: there is no more. Takes no
 * lock. */
bool reader_next(const struct prudence_domain *domain, uint64_t *place,
                 struct prudence_reader_stats *stats);

/* The thread's name, for which a file is opened; and where it is, if it is inside and stall_trace is set. */
void reader_look_up(struct prudence_reader_stats *stats);

#endif /* RUNTIME_READER_STATS_H */
