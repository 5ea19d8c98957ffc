/* SPDX-License-Identifier: MIT */
/* The cost of entering and leaving a read-side section, with and without a busy writer. */
#include "scenario.h"

static enum loop writer(const struct config *config, unsigned index)
{
    (void)config, (void)index;
    return LOOP_PAIRS;
}

static const char *refuse(const struct config *config)
{
    return config->readers ? NULL : "readers needs at least one reader";
}

const struct scenario scenario_readers = {
    .name = "readers",
    .summary =
        "lock and unlock; --threads is the number of update-heavy writers that run at the same "
        "time",
    .subjects =
        "prudence,prudence-fenced,prudence-free,epoch,hazard,hazard-fenced,urcu+glibc,"
        "urcu-mb+glibc,ck-epoch+glibc,ck-hp+glibc",
    .options = "",
    .pair = "entry to and exit from a read-side section",
    .deferring = true,
    .warms_up = true,
    .defaults = {.size = 64, .threads = 1, .readers = 1, .seconds = 0.5},
    .writer = writer,
    .reader = LOOP_READ,
    .counted = COUNTS(LOOP_READ),
    .charged = COUNTS(LOOP_READ),
    .refuse = refuse,
};
