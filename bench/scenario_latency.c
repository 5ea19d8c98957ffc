/* SPDX-License-Identifier: MIT */
/*
 * How long memory is away: from the retire until the same memory is handed out again; for
 * callbacks until the callback runs, which is earlier than its next use.
 */
#include "scenario.h"

static enum loop writer(unsigned index)
{
    (void)index;
    return LOOP_REUSE;
}

static void prepare(struct run *run)
{
    run->latencies = histogram_create();
}

const struct scenario scenario_latency = {
    .name = "latency",
    .summary = "from retire to reuse; one object in 16 is timed",
    .subjects = "prudence*,classic,urcu+*,ck-epoch+*",
    .options = "",
    .pair = "an object allocated and retired",
    .deferring = true,
    .min_size = 32,
    .defaults = {.size = 64, .threads = 1, .readers = 1, .seconds = 0.5},
    .writer = writer,
    .reader = LOOP_READ,
    .counted = COUNTS(LOOP_REUSE),
    .charged = COUNTS(LOOP_REUSE) | HELPERS,
    .prepare = prepare,
};
