/* SPDX-License-Identifier: MIT */
/*
 * Cases of maps of values: updates of one key at the same time, and with a reader. Of several
 * threads that take one value out, one succeeds; no thread reads an entry whose grace period is
 * over.
 */
#include <errno.h>

#include <prudence/map_values.h>

#include "caches.h"
#include "explorer.h"
#include "tables/map.h"
#include "tables/writers.h"

#define KEY  7
#define MADE 42

static unsigned values[4]; /* plain: a thread that finds one sees earlier writes to it */
static struct prudence_map_values *map;
static void *taken_out[EXPLORE_THREADS_MAX]; /* by each thread */

static void *value(unsigned number)
{
    values[number] = MADE;
    return &values[number];
}

/* Gives the key value 0, and its neighbour another one. */
static void make_values(void)
{
    struct prudence_map *made =
        explore_alloc_aligned(sizeof *made + 2 * sizeof made->writers[0], CACHE_LINES_APART);

    map = (struct prudence_map_values *)made;
    made->writers_mask = 1;
    made->own_sections = true;
    made->owner.domain = explored_domain;
    for (unsigned kind = 0; kind < MAP_KINDS; kind++)
        made->caches[kind] = explored_cache(map_node_bytes(kind));
    made->entries = (struct entries){.classes = 1};
    made->entries.caches[0] = explored_cache(sizeof(void *) + sizeof(struct prudence_map_node));
    for (unsigned i = 0; i < EXPLORE_THREADS_MAX; i++)
        taken_out[i] = NULL;
    explore_assert(prudence_map_values_put(map, KEY, value(0), NULL) == 0);
    explore_assert(prudence_map_values_put(map, KEY + 1, value(3), NULL) == 0);
}

static void puts_one(void *number)
{
    explore_assert(prudence_map_values_put(map, KEY, value((unsigned)(uintptr_t)number),
                                           &taken_out[explore_self()]) == 0);
    explore_assert(!taken_out[explore_self()] || *(unsigned *)taken_out[explore_self()] == MADE);
}

static void exchanges(void *number)
{
    void *fresh = value((unsigned)(uintptr_t)number);
    const int error = prudence_map_values_replace(map, KEY, &values[0], fresh);

    explore_assert(error == 0 || error == ENOENT);
    if (!error)
        taken_out[explore_self()] = &values[0];
}

static void erases(void *unused)
{
    (void)unused;
    prudence_map_values_erase(map, KEY, &taken_out[explore_self()]);
    enter();
    explore_assert(prudence_map_values_get(map, KEY + 1) == &values[3]);
    leave();
}

static void inserts(void *number)
{
    void *there = NULL;
    const int error = prudence_map_values_add(map, KEY, value((unsigned)(uintptr_t)number), &there);

    explore_assert(error == (there ? EEXIST : 0) && (!there || *(unsigned *)there == MADE));
    if (!error)
        explore_note();
}

static void gets(void *unused)
{
    unsigned *found;

    (void)unused;
    enter();
    found = prudence_map_values_get(map, KEY);
    explore_assert(!found || *found == MADE);
    leave();
}

static unsigned times_taken_out(const void *of)
{
    unsigned times = 0;

    for (unsigned i = 0; i < EXPLORE_THREADS_MAX; i++)
        times += taken_out[i] == of;
    return times;
}

/* Checks that each value is in the map, or was taken out once, or was never put. */
static void each_is_in_one_place(void)
{
    const void *now = prudence_map_values_get(map, KEY);

    explore_assert(times_taken_out(&values[0]) + (now == &values[0]) == 1);
    for (unsigned i = 1; i < 3; i++)
        explore_assert(times_taken_out(&values[i]) + (now == &values[i]) <= 1);
    explore_assert(prudence_map_values_count(map) == 1 + (now != NULL));
}

CASE_THEN("values-two-exchanges", two_exchanges, each_is_in_one_place, 2, 3)
{
    make_values();
    explore_thread(exchanges, (void *)1);
    explore_thread(exchanges, (void *)2);
}

CASE_THEN("values-exchange-during-put", exchange_during_put, each_is_in_one_place, 2, 3)
{
    make_values();
    explore_thread(exchanges, (void *)1);
    explore_thread(puts_one, (void *)2);
}

CASE_THEN("values-exchange-during-erasure", exchange_during_erasure, each_is_in_one_place, 2, 3)
{
    make_values();
    explore_thread(exchanges, (void *)1);
    explore_thread(erases, NULL);
}

CASE_THEN("values-insertion-during-erasure", insertion_during_erasure, each_is_in_one_place, 2, 3)
{
    make_values();
    explore_thread(inserts, (void *)1);
    explore_thread(erases, NULL);
}

CASE_THEN("values-two-insertions", two_insertions, each_is_in_one_place, 2, 3)
{
    make_values();
    prudence_map_values_erase(map, KEY, &taken_out[0]);
    explore_thread(inserts, (void *)1);
    explore_thread(inserts, (void *)2);
}

CASE_THEN("values-put-during-get", put_during_get, each_is_in_one_place, 2, 3)
{
    make_values();
    explore_thread(puts_one, (void *)1);
    explore_thread(gets, NULL);
}

CASE_THEN("values-two-erasures", two_erasures, each_is_in_one_place, 2, 3)
{
    make_values();
    explore_thread(erases, NULL);
    explore_thread(erases, NULL);
}
