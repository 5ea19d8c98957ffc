/* SPDX-License-Identifier: MIT */
/*
 * Bursts of small objects of which a fifth is needed for one burst more: freed one by one, given
 * dates one by one, and allocated in two regions for each burst. Public benchmarks of allocators
 * are programs of this kind, and the public implementation of short-term memory runs one with
 * regions.
 */
#include <stdlib.h>

#include <prudence/scm.h>

#include "scm.h"
#include "statistics.h"

#define LARGEST 1000
#define KEPT    (BURST_OBJECTS / 5)
#define WARM_UP 50

const char *const scm_burst_ways[BURST_WAYS] = {"malloc and free", "regions",
                                                "a date for each object"};

static size_t sizes[BURST_OBJECTS];
static char *objects[2][BURST_OBJECTS]; /* of this burst, and of the one before */

/* Draws sizes from LARGEST down to a few bytes; small ones are more frequent. */
static void draw_sizes(void)
{
    unsigned seed = 1;

    for (unsigned i = 0; i < BURST_OBJECTS; i++) {
        unsigned a = (unsigned)rand_r(&seed) % 9, b = (unsigned)rand_r(&seed) % 9;
        size_t most = LARGEST >> (a > b ? a : b);

        sizes[i] = most / 2 + 1 + (size_t)rand_r(&seed) % (most / 2 + 1);
    }
}

static bool write_to(char *object)
{
    if (object)
        *(volatile char *)object = 1;
    return object;
}

static bool burst_by_free(char **now, char **before)
{
    bool good = true;

    for (unsigned i = 0; i < BURST_OBJECTS; i++) {
        now[i] = prudence_malloc(sizes[i]);
        good &= write_to(now[i]);
    }
    for (unsigned i = 0; i < KEPT; i++)
        prudence_free(before[i]);
    for (unsigned i = BURST_OBJECTS; i-- > KEPT;)
        prudence_free(now[i]);
    return good;
}

static bool burst_by_dates(char **now)
{
    bool good = true;

    for (unsigned i = 0; i < BURST_OBJECTS; i++) {
        now[i] = scm_malloc(sizes[i]);
        good &= write_to(now[i]) && !scm_refresh(now[i], i < KEPT);
    }
    return good & !scm_tick();
}

static bool burst_in_regions(char **now)
{
    struct scm_region *kept = scm_region_create(), *others = scm_region_create();
    bool good = kept && others && !scm_region_refresh(kept, 1) && !scm_region_refresh(others, 0);

    for (unsigned i = 0; good && i < BURST_OBJECTS; i++) {
        now[i] = scm_region_alloc(i < KEPT ? kept : others, sizes[i]);
        good = write_to(now[i]);
    }
    return good && !scm_region_unregister(kept) && !scm_region_unregister(others) && !scm_tick();
}

static bool burst(enum burst_way way, uint64_t round)
{
    char **now = objects[round % 2], **before = objects[(round + 1) % 2];

    if (way == BURSTS_BY_FREE)
        return burst_by_free(now, before);
    return way == BURSTS_BY_DATES ? burst_by_dates(now) : burst_in_regions(now);
}

/* Ends the remaining objects of the last two bursts. */
static void end_bursts(enum burst_way way, uint64_t rounds)
{
    for (unsigned i = 0; way == BURSTS_BY_FREE && i < KEPT; i++)
        prudence_free(objects[(rounds + 1) % 2][i]);
    for (unsigned i = 0; i < BURST_OBJECTS; i++)
        objects[0][i] = objects[1][i] = NULL;
    scm_tick();
    scm_tick();
    scm_collect();
}

static bool run(enum burst_way way, uint64_t rounds, double *samples)
{
    bool good = true;

    for (uint64_t round = 0; good && round < WARM_UP + rounds; round++) {
        uint64_t began = cycles();

        good = burst(way, round);
        if (round >= WARM_UP)
            samples[round - WARM_UP] = (double)(cycles() - began) / BURST_OBJECTS;
    }
    end_bursts(way, WARM_UP + rounds);
    return good;
}

/* Measures cycles per object, including its end, as medians of the rounds. Frees come first,
 * because slabs that had objects with dates are slower to free to. Returns false if memory ran
 * out. */
bool scm_bursts(uint64_t rounds, double results[BURST_WAYS])
{
    double *samples = calloc(rounds, sizeof *samples);
    bool good = samples && !scm_register_thread();

    draw_sizes();
    for (unsigned way = 0; good && way < BURST_WAYS; way++) {
        good = run(way, rounds, samples);
        results[way] = numbers_median(samples, rounds);
    }
    free(samples);
    return good && !scm_unregister_thread();
}
