/* SPDX-License-Identifier: MIT */
/* A reader repeatedly stays in its section, asleep, for 1, 10 or 100 ms. */
#include "scenario.h"

static enum loop writer(const struct config *config, unsigned index)
{
    (void)config, (void)index;
    return LOOP_PAIRS;
}

static const char *refuse(const struct config *config)
{
    return config->readers ? NULL : "stall needs a reader that stays (--readers 1)";
}

const struct scenario scenario_stall = {
    .name = "stall",
    .summary = "allocate and retire while a reader stays in its section",
    .subjects = "prudence,epoch,hazard,urcu+*,ck-epoch+*,ck-hp+*",
    .options = "by",
    .pair = "an object allocated and retired",
    .deferring = true,
    .samples = true,
    .defaults = {.size = 512, .threads = 1, .readers = 1, .seconds = 1, .stay_ms = 100},
    .writer = writer,
    .reader = LOOP_STAY,
    .counted = COUNTS(LOOP_PAIRS),
    .charged = COUNTS(LOOP_PAIRS) | HELPERS,
    .refuse = refuse,
};
