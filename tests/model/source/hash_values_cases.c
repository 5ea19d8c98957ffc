/* SPDX-License-Identifier: MIT */
/*
 * Cases of the hash table of values: values that are put, exchanged and erased during lookups, and
 * concurrently. No value is lost.
 */
#include "caches.h"
#include "explorer.h"
#include "os/os.h"
#include "tables/hash_values.h"

#define KEY   7
#define MADE  42
#define ITEMS 3

static struct item {
    unsigned value; /* plain: a thread that finds an item sees earlier writes to it */
} items[ITEMS];

static struct prudence_hash_values *values;
static void *left[EXPLORE_THREADS_MAX]; /* by thread: the value that its update took out */

static struct item *made_item(void *number)
{
    struct item *item = &items[(uintptr_t)number];

    item->value = MADE;
    return item;
}

/* Makes a table without sections: the cases' threads mark themselves as inside in words of their
 * own. */
static void make_values(void)
{
    values = explore_alloc_aligned(sizeof *values, CACHE_LINES_APART);
    values->table = hash_of(prudence_hash_create("explored", NULL));
    values->entries.classes = 1;
    values->entries.caches[0] = explored_cache(64); /* an entry is smaller */
    for (unsigned i = 0; i < EXPLORE_THREADS_MAX; i++)
        left[i] = NULL;
    explore_assert(!prudence_hash_values_put(values, KEY, made_item((void *)0), NULL));
}

static void puts_value(void *number)
{
    explore_assert(
        !prudence_hash_values_put(values, KEY, made_item(number), &left[explore_self()]));
}

static void exchanges_value(void *number)
{
    if (!prudence_hash_values_replace(values, KEY, &items[0], made_item(number)))
        left[explore_self()] = &items[0];
}

static void erases_value(void *unused)
{
    (void)unused;
    prudence_hash_values_erase(values, KEY, &left[explore_self()]);
}

/* Gets a value that always exists; or one that may be gone. */
static void gets_value(void *may_be_gone)
{
    const struct item *item;

    enter();
    item = prudence_hash_values_get(values, KEY);
    explore_assert(item ? item->value == MADE : may_be_gone != NULL);
    if (item != &items[0])
        explore_note();
    leave();
}

CASE_THEN("hash-values-put", values_put, no_value_is_lost, 3, 4)
{
    make_values();
    explore_thread(puts_value, (void *)1);
    explore_thread(gets_value, NULL);
}

CASE_THEN("hash-values-erased", values_erased, no_value_is_lost, 3, 4)
{
    make_values();
    explore_thread(erases_value, NULL);
    explore_thread(gets_value, (void *)1);
}

CASE_THEN("hash-values-put-and-exchanged", values_put_and_exchanged, no_value_is_lost, 3, 4)
{
    make_values();
    explore_thread(puts_value, (void *)1);
    explore_thread(exchanges_value, (void *)2);
}

CASE_THEN("hash-values-put-and-erased", values_put_and_erased, no_value_is_lost, 3, 4)
{
    make_values();
    explore_thread(puts_value, (void *)1);
    explore_thread(erases_value, NULL);
}

/* Checks that each value was taken out by one thread, or is in the table. */
static void no_value_is_lost(void)
{
    const void *there = prudence_hash_values_get(values, KEY);

    for (unsigned i = 0; i < ITEMS; i++) {
        unsigned seen = there == &items[i];

        for (unsigned thread = 0; thread < EXPLORE_THREADS_MAX; thread++)
            seen += left[thread] == &items[i];
        explore_assert(seen <= 1 && (i > 0 || seen == 1));
    }
    explore_assert(prudence_hash_values_count(values) == (there != NULL));
    if (there != &items[0])
        explore_note();
}
