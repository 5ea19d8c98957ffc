/* SPDX-License-Identifier: MIT */
/* <prudence/hash.h>. */
#include <prudence/hash.h>

#define FUNCTION(name) prudence_hash_##name
static struct prudence_hash *table;

#include "hash_family.h"

static void start_table(void)
{
    start();
    table = prudence_hash_create("bench", NULL);
    if (!table)
        abort();
}

static void settle(void)
{
    struct prudence_hash_stats stats;

    prudence_hash_stats(table, &stats);
    prudence_hash_resize(table, stats.buckets);
}

const struct subject SUBJECT(prudence) = {
    "prudence",           "prudence_hash, its objects in a cache",
    .start = start_table, .fill = fill,
    .settle = settle,     .run = run};
