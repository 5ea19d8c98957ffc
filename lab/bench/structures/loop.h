/* SPDX-License-Identifier: MIT */
/*
 * The loop, as a template: the file that includes this has defined
 *     read_begin, read_end             a section
 *     bool find(key, &value)           in a section
 *     bool flip(key)                   outside: removes the object, or adds one; true: added
 * and with LOOP_WALKS, if it can do so,
 *     bool walk(key, count, &sum)      in a section: visits `count` objects from the key on;
 *                                      true: there were that many
 * which the compiler inlines here.
 */
#ifndef BENCH_STRUCTURES_LOOP_H
#define BENCH_STRUCTURES_LOOP_H

#include "subject.h"

static inline void look_up(struct work *work, uint64_t random)
{
    uint64_t key =
        draw(&work->stable, random, work->size / 2) + (is_hit(work, random) ? 0 : 2 * work->size);
    uint64_t value = 0, begun = timing_begin(&work->looked_up, TIMED_LOOKUPS);

    read_begin();
#ifdef LOOP_WALKS
    work->found += work->walk ? walk(key, work->walk, &value) : find(key, &value);
#else
    work->found += find(key, &value);
#endif
    read_end();
    timing_end(&work->looked_up, begun);
    work->sum += value;
}

static inline void update(struct work *work, uint64_t random)
{
    uint64_t share = work->size / work->threads;
    uint64_t key = work->size / 2 + work->thread * share + draw(&work->passing, random, share);
    uint64_t begun = timing_begin(&work->updated, TIMED_UPDATES);

    flip(key);
    timing_end(&work->updated, begun);
}

static inline void operate(struct work *work, uint64_t random)
{
    if (is_update(work, random))
        update(work, random);
    else
        look_up(work, random);
}

static void run(struct work *work)
{
    run_operations(work, operate);
}

static inline uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* Inserts all keys once, in another order than theirs, which would be the order of addresses. */
static void fill(uint64_t size)
{
    uint64_t keys = size / 2 + size, step = keys * 5 / 8;

    while (common_divisor(step, keys) != 1)
        step++;
    for (uint64_t i = 0, key = 0; i < keys; i++, key = (key + step) % keys)
        if (key < size / 2 || key % 2)
            flip(key);
}

#endif /* BENCH_STRUCTURES_LOOP_H */
