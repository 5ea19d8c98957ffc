/* SPDX-License-Identifier: MIT */
/*
 * One CPU allocates, another retires: writers come in couples, joined by a bounded queue. Memory
 * retired on the one CPU must find its way back to the other, or memory grows. With objects of many
 * sizes, the memory kept for each of them adds up.
 */
#include "scenario.h"

#include <stdlib.h>
#include <string.h>

#include "loops.h"

static enum loop writer(const struct config *config, unsigned index)
{
    (void)config;
    return index % 2 ? LOOP_CONSUME : LOOP_PRODUCE;
}

static const char *refuse(const struct config *config)
{
    return config->threads % 2 ? "recycle needs couples of threads (--threads 2, 4, ...)" : NULL;
}

/* Sizes as size classes have them. */
static const size_t mixed_sizes[MIXED_SIZES] = {32,  48,  64,   96,   128,  192,  256,  384,
                                                512, 768, 1024, 1536, 2048, 3072, 4096, 6144};

static void prepare_pools(struct run *run)
{
    const struct operations *op = run->subject->family->operations;

    for (unsigned i = 0; i < MIXED_SIZES; i++)
        run->mixed_pools[i] = run->config.mixed ? op->pool_create(mixed_sizes[i]) : run->pool;
}

static void prepare(struct run *run)
{
    size_t bytes = run->config.threads / 2 * sizeof *run->rings;

    run->rings = aligned_alloc(CACHE_LINE, bytes);
    if (!run->rings)
        abort();
    memset(run->rings, 0, bytes);
    prepare_pools(run);
}

const struct scenario scenario_recycle = {
    .name = "recycle",
    .summary = "allocate on one CPU, retire on another",
    .subjects = "prudence,prudence-heap,classic,urcu+*,ck-epoch+*,plain+*",
    .options = "x",
    .pair = "an object allocated, handed over and retired",
    .samples = true,
    .defaults = {.size = 512, .threads = 2, .seconds = 2},
    .writer = writer,
    .reader = LOOP_READ,
    .counted = COUNTS(LOOP_CONSUME),
    .charged = COUNTS(LOOP_CONSUME) | COUNTS(LOOP_PRODUCE) | HELPERS,
    .refuse = refuse,
    .prepare = prepare,
};
