/* SPDX-License-Identifier: MIT */
/*
 * Chooses the next key. Uniform: from a random number. By Zipf's law: from a list drawn before the
 * run, because a draw costs more than a lookup; each thread has separate lists, read from
 * beginning to end, again and again. They take 4 MiB each, which pass through the caches.
 */
#ifndef BENCH_STRUCTURES_DRAWS_H
#define BENCH_STRUCTURES_DRAWS_H

#include <stdint.h>

#include "random.h"

#define DRAWS      (UINT64_C(1) << 20)
#define DRAWS_SKEW 0.99 /* theta, as in the benchmarks of key-value stores */

struct draws {
    uint32_t *ranks; /* NULL if uniform */
    uint64_t next;
};

/* Draws by Zipf's law, from 0 to bound - 1. */
struct draws draws_make(uint64_t bound, uint64_t seed);

static inline uint64_t draw(struct draws *draws, uint64_t random, uint64_t bound)
{
    return draws->ranks ? draws->ranks[draws->next++ % DRAWS] : below(random, bound);
}

#endif /* BENCH_STRUCTURES_DRAWS_H */
