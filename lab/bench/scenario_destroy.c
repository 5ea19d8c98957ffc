/* SPDX-License-Identifier: MIT */
/*
 * The first writer repeatedly makes a cache, fills it, retires all objects and destroys it, while
 * the other writers keep another cache busy. A destroy must wait for its own deferred objects only.
 */
#include "scenario.h"

static enum loop writer(const struct config *config, unsigned index)
{
    (void)config;
    return index ? LOOP_PAIRS : LOOP_DESTROY;
}

static void prepare(struct run *run)
{
    run->latencies = histogram_create();
}

const struct scenario scenario_destroy = {
    .name = "destroy",
    .summary = "create a cache, fill, retire all, destroy it, while another cache is busy",
    .subjects = "prudence,classic,urcu+*,ck-epoch+*",
    .options = "co",
    .pair = "an object allocated and retired, its share of create and destroy included",
    .deferring = true,
    .defaults = {.size = 512, .threads = 2, .seconds = 5},
    .writer = writer,
    .reader = LOOP_READ,
    .counted = COUNTS(LOOP_DESTROY),
    .charged = COUNTS(LOOP_DESTROY),
    .prepare = prepare,
};
