/* SPDX-License-Identifier: MIT */
/* Counts the objects of a hash table. */
#include "structures/hash.h"

uint64_t hash_count(const struct hash_table *table)
{
    return object_count_sum(table->counters, table->counter_mask);
}

uint64_t prudence_hash_count(const struct prudence_hash *table)
{
    return hash_count(hash_of(table));
}
