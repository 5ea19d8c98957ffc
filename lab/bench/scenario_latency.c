/* SPDX-License-Identifier: MIT */
/*
 * How long memory is away: from the retire until the same memory is handed out again; for callbacks
 * until the callback runs, which is earlier than the next use.
 *
 * By default in a storm of pairs, in which a subject chooses how much is in flight. With --demand a
 * batch of objects is retired and demanded back at once: the writer allocates, and keeps the
 * objects, until all have returned; where there are callbacks it only waits.
 */
#include "scenario.h"

static const char *refuse(const struct config *config)
{
    if (config->demand && config->threads > 1)
        return "latency --demand is for one writer (--threads 1)";
    return config->batch > 1 && !config->demand ? "latency: --batch is for --demand" : NULL;
}

static enum loop writer(const struct config *config, unsigned index)
{
    (void)index;
    return config->demand ? LOOP_DEMAND : LOOP_REUSE;
}

static void prepare(struct run *run)
{
    run->latencies = histogram_create();
}

const struct scenario scenario_latency = {
    .name = "latency",
    .summary = "from retire to reuse, in a storm or (--demand) wanted back at once",
    .subjects = "prudence*,classic,urcu+*,ck-epoch+*",
    .options = "bd",
    .pair = "an object allocated and retired",
    .deferring = true,
    .times_objects = true,
    .min_size = 32,
    .defaults = {.size = 64, .threads = 1, .readers = 1, .seconds = 0.5},
    .writer = writer,
    .reader = LOOP_READ,
    .counted = COUNTS(LOOP_REUSE) | COUNTS(LOOP_DEMAND),
    .charged = COUNTS(LOOP_REUSE) | COUNTS(LOOP_DEMAND) | HELPERS,
    .refuse = refuse,
    .prepare = prepare,
};
