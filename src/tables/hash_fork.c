/* SPDX-License-Identifier: MIT */
/* Hash tables while fork copies the process (writers.h). */
#include "os/os.h"
#include "tables/hash.h"
#include "tables/hash_fork.h"

/*
 * Waits until no thread holds a bucket of the array. A thread that takes a bucket after this check
 * either holds another one, which a later check finds, or gives the bucket back at once without a
 * change. A thread that splits a group releases the group's first bucket last, and this bucket is
 * in the array that is checked last. If a thread joins a group, the other buckets are checked after
 * the first.
 */
static void wait_for_buckets(uintptr_t view)
{
    for (uint64_t i = 0; view && i < view_size(view); i++)
        while (load_acquire(&view_words(view)[i]) & HASH_LOCKED)
            os_sleep_ns(1000);
}

/* The arrays stay the same as long as no thread takes a step. */
void hash_fork_wait_for_writers(struct hash_table *table)
{
    while (load_acquire(&table->stepping))
        os_sleep_ns(1000);
    wait_for_buckets(table->public.view);
    wait_for_buckets(table->from);
}

static void unlock_buckets(uintptr_t view)
{
    for (uint64_t i = 0; view && i < view_size(view); i++)
        if (view_words(view)[i] & HASH_LOCKED)
            store_relaxed(&view_words(view)[i], view_words(view)[i] & ~HASH_LOCKED);
}

void hash_fork_forget_writers(struct hash_table *table)
{
    store_relaxed(&table->stepping, 0u);
    store_relaxed(&table->preparing, 0u);
    unlock_buckets(table->public.view);
    unlock_buckets(table->from);
}
