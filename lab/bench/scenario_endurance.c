/* SPDX-License-Identifier: MIT */
/*
 * The paper's section 3.5: each writer replaces the entries of its own list of 512-byte objects,
 * one after another without a pause, while readers traverse all lists. A reclaimer that cannot keep
 * up reaches the memory limit.
 */
#include "scenario.h"

#include <stdlib.h>

static enum loop writer(const struct config *config, unsigned index)
{
    (void)config, (void)index;
    return LOOP_UPDATE;
}

static void prepare(struct run *run)
{
    size_t bytes = run->config.threads * sizeof *run->lists;

    run->lists = aligned_alloc(CACHE_LINE, bytes);
    if (!run->lists)
        abort();
    for (unsigned i = 0; i < run->config.threads; i++)
        run->lists[i].head = NULL;
}

const struct scenario scenario_endurance = {
    .name = "endurance",
    .summary = "update lists while readers traverse them (the paper's section 3.5)",
    .subjects = "prudence,urcu+*",
    .options = "L",
    .pair = "an entry replaced",
    .deferring = true,
    .samples = true,
    .min_size = 32,
    .defaults = {.size = 512, .threads = 2, .readers = 1, .seconds = 5},
    .writer = writer,
    .reader = LOOP_TRAVERSE,
    .counted = COUNTS(LOOP_UPDATE),
    .charged = COUNTS(LOOP_UPDATE) | HELPERS,
    .prepare = prepare,
};
