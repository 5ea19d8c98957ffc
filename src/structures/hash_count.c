/* SPDX-License-Identifier: MIT */
/* The number of objects. */
#include "structures/hash.h"

/* The sum is not taken at one moment: one of a removal that was counted and an addition that was not may be below 0. */
uint64_t hash_count(const struct hash_table *table)
{
    int64_t objects = 0;

    for (unsigned i = 0; i <= table->counter_mask; i++)
        objects += load_relaxed(&table->counters[i].objects);
    return objects > 0 ? (uint64_t)objects : 0;
}

uint64_t prudence_hash_count(const struct prudence_hash *table)
{
    return hash_count(hash_of(table));
}
