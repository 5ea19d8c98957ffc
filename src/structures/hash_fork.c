/* SPDX-License-Identifier: MIT */
/* A hash table while the process is copied (writers.h). */
#include "os/os.h"
#include "structures/hash.h"

/*
 * Whether a thread has a bucket of the array. A bucket that is taken behind this look belongs to a thread that has another one, which the look
 * finds later; or the thread gives it back at once, having changed nothing. A group's first bucket is the one that is
 * released last when the group is split (it is in the array that is looked at last), and of those that are joined the others follow it.
 */
static void wait_for_buckets(uintptr_t view)
{
    for (uint64_t i = 0; view && i < view_size(view); i++)
        while (load_acquire(&view_words(view)[i]) & HASH_LOCKED)
            os_sleep_ns(1000);
}

/* Without a step, the arrays stay what they are. */
void hash_wait_for_writers(struct hash_table *table)
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

void hash_forget_writers(struct hash_table *table)
{
    store_relaxed(&table->stepping, 0u);
    store_relaxed(&table->preparing, 0u);
    unlock_buckets(table->public.view);
    unlock_buckets(table->from);
}
