/* SPDX-License-Identifier: MIT */
/* The paper's section 5.2: every writer allocates and defers in a tight loop. */
#include "scenario.h"

static enum loop writer(const struct config *config, unsigned index)
{
    (void)config, (void)index;
    return LOOP_PAIRS;
}

const struct scenario scenario_pairs = {
    .name = "pairs",
    .summary = "allocate and retire in a tight loop (the paper's section 5.2)",
    .subjects = "*",
    .options = "bn",
    .pair = "an object allocated and retired",
    .warms_up = true,
    .defaults = {.size = 512, .threads = 2, .seconds = 0.5},
    .writer = writer,
    .reader = LOOP_READ,
    .counted = COUNTS(LOOP_PAIRS),
    .charged = COUNTS(LOOP_PAIRS) | HELPERS,
};
