/* SPDX-License-Identifier: MIT */
/*
 * The cost of an allocation that is a hit, that refills the object cache, that grows the slab cache
 * (section 3.3 of the paper: a refill costs 4 times a hit, a grow 14 times). Meant for an emulated
 * CPU whose time-stamp counter counts instructions, as lab/run/count-misses boots it.
 *
 *     misses SIZE OBJECTS      prints one line of JSON
 *
 * Objects are allocated from a cache without slabs (grows); then seven of eight are freed, which
 * leaves every slab with the node, and allocated again (refills). kernel/bench/misses.c does the
 * same. Each allocation is timed alone, and the cache's statistics before and after it show its
 * kind. An interruption counts in an allocation's figure, so medians are printed.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

#include <prudence/prudence.h>
#include <prudence/stats.h>

enum kind { HIT, REFILL, GROW, KINDS };

struct costs {
    uint64_t *of[KINDS]; /* instructions of each allocation, in order */
    size_t count[KINDS];
    uint64_t refilled; /* objects, in refills that did not grow */
};

static struct prudence_cache *cache;

static int compare(const void *a, const void *b)
{
    const uint64_t *one = a, *other = b;

    return (*one > *other) - (*one < *other);
}

/* Returns the median of a kind, or 0 if there was none. */
static uint64_t median(struct costs *costs, enum kind kind)
{
    if (costs->count[kind] == 0)
        return 0;
    qsort(costs->of[kind], costs->count[kind], sizeof *costs->of[kind], compare);
    return costs->of[kind][costs->count[kind] / 2];
}

/* Returns the cost of the two readings of the counter. */
static uint64_t empty_measurement(void)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < 1000; i++) {
        const uint64_t begin = __rdtsc(), end = __rdtsc();

        least = end - begin < least ? end - begin : least;
    }
    return least;
}

/* Allocates an object for each NULL. Returns false if an allocation failed. */
static bool fill(void **objects, size_t count, struct costs *costs)
{
    struct prudence_cache_stats before, after;

    if (prudence_cache_stats(cache, &before))
        return false;
    for (size_t i = 0; i < count; i++, before = after) {
        uint64_t begin, end;
        enum kind kind;

        if (objects[i]) {
            after = before;
            continue;
        }
        begin = __rdtsc();
        objects[i] = prudence_cache_alloc(cache);
        end = __rdtsc();
        if (!objects[i] || prudence_cache_stats(cache, &after))
            return false;
        kind = after.grows > before.grows ? GROW : after.refills > before.refills ? REFILL : HIT;
        costs->of[kind][costs->count[kind]++] = end - begin;
        if (kind == REFILL)
            costs->refilled += after.refilled_objects - before.refilled_objects;
    }
    return true;
}

/* Frees in the order of allocation, so that every slab stays with the node. */
static void free_seven_of_eight(void **objects, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (i % 8) {
            prudence_cache_free(cache, objects[i]);
            objects[i] = NULL;
        }
}

static bool measure(size_t count, struct costs *costs)
{
    void **objects = calloc(count, sizeof *objects);

    if (!objects)
        return false;
    for (int kind = HIT; kind < KINDS; kind++)
        if (!(costs->of[kind] = calloc(2 * count, sizeof *costs->of[kind])))
            return false;
    if (!fill(objects, count, costs))
        return false;
    free_seven_of_eight(objects, count);
    return fill(objects, count, costs);
}

int main(int argc, char **argv)
{
    const size_t size = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
    const size_t count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    struct costs costs = {.refilled = 0};
    struct prudence_stats stats;
    uint64_t empty;

    if (size == 0 || count == 0 || count > 1000000) {
        fprintf(stderr, "usage: %s SIZE OBJECTS, up to 1000000\n", argv[0]);
        return 2;
    }
    empty = empty_measurement();
    cache = prudence_cache_create("misses", size, NULL);
    if (!cache || !measure(count, &costs) || prudence_stats(&stats)) {
        perror("misses");
        return 1;
    }
    printf("MISSES {\"where\":\"a process, %s\",\"size\":%zu,\"empty\":%llu,\"refilled\":%llu",
           stats.percpu, size, (unsigned long long)empty, (unsigned long long)costs.refilled);
    for (int kind = HIT; kind < KINDS; kind++)
        printf(",\"%s\":{\"count\":%zu,\"median\":%llu}",
               (const char *const[]){"hit", "refill", "grow"}[kind], costs.count[kind],
               (unsigned long long)median(&costs, (enum kind)kind));
    printf("}\n");
    return 0;
}
