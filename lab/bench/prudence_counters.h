/* SPDX-License-Identifier: MIT */
/* Statistics of Prudence, for every subject that runs on its slabs. */
#ifndef BENCH_PRUDENCE_COUNTERS_H
#define BENCH_PRUDENCE_COUNTERS_H

#include "bench.h"

struct prudence_domain;

/* Makes a slab cache for the readers of that domain (NULL: the default domain), or ends the
 * process. */
struct prudence_cache *prudence_counted_cache(size_t object_size, struct prudence_domain *domain);

/* For struct family: the number of objects latent now, counted by the library. */
uint64_t prudence_latent(uint64_t retired);

/* For struct family: add "counters" (of the run's cache), "totals", "reader_mode", "percpu". */
void prudence_report(struct run *run, json_t *result);
void prudence_report_totals(struct run *run, json_t *result);

#endif /* BENCH_PRUDENCE_COUNTERS_H */
