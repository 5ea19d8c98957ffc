/* SPDX-License-Identifier: MIT */
/* For the scenario_*.c files: each exports one struct scenario. */
#ifndef BENCH_SCENARIO_H
#define BENCH_SCENARIO_H

#include "bench.h"

extern const struct scenario scenario_endurance, scenario_pairs, scenario_latency, scenario_stall,
    scenario_recycle, scenario_destroy, scenario_readers, scenario_tree;

#endif /* BENCH_SCENARIO_H */
