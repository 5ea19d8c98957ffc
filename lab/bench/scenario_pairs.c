/* SPDX-License-Identifier: MIT */
/*
 * The paper's section 5.2: every writer allocates and defers in a tight loop. With --order a writer
 * replaces the objects of a table instead, as the updates of a data structure do (loop_replace.h).
 */
#include <stdlib.h>

#include "scenario.h"

#define PLACES 65536u /* least length of the list, after which a table's places repeat */

static enum loop writer(const struct config *config, unsigned index)
{
    (void)index;
    return config->order == ORDER_TIGHT ? LOOP_PAIRS : LOOP_REPLACE;
}

static uint16_t place(const struct config *config, unsigned index, uint64_t *random)
{
    if (config->order == ORDER_IN_ORDER)
        return (uint16_t)(index % config->live);
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint16_t)((*random >> 33) % config->live);
}

/* The list is whole tables long, plus a slice or batch, because one may begin at its last place. */
static void prepare(struct run *run)
{
    const struct config *config = &run->config;
    unsigned beyond = config->batch > LONGEST_SLICE ? config->batch : LONGEST_SLICE;
    uint64_t random = 1;
    uint16_t *places;

    if (config->order == ORDER_TIGHT)
        return;
    run->place_count = (PLACES + config->live - 1) / config->live * config->live;
    places = calloc(run->place_count + beyond, sizeof *places);
    if (!places)
        abort();
    for (unsigned i = 0; i < run->place_count + beyond; i++)
        places[i] = place(config, i, &random);
    run->places = places;
}

const struct scenario scenario_pairs = {
    .name = "pairs",
    .summary = "allocate and retire in a tight loop, or replace live objects",
    .subjects = "*,plain+*/1024",
    .options = "bneV",
    .pair = "an object allocated and retired",
    .compares = true,
    .warms_up = true,
    .defaults = {.size = 512, .threads = 2, .seconds = 0.5},
    .writer = writer,
    .reader = LOOP_READ,
    .counted = COUNTS(LOOP_PAIRS) | COUNTS(LOOP_REPLACE),
    .charged = COUNTS(LOOP_PAIRS) | COUNTS(LOOP_REPLACE) | HELPERS,
    .prepare = prepare,
};
