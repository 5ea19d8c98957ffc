/* SPDX-License-Identifier: MIT */
/* Random numbers cheaper than the measured code: xorshift (G. Marsaglia, 2003). */
#ifndef BENCH_RANDOM_H
#define BENCH_RANDOM_H

#include <stdint.h>

/* Returns 64 random bits; `state` is not 0. */
static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Returns a number from 0 to bound - 1, from the highest 32 of those bits; bound <= 2^32. */
static inline uint64_t below(uint64_t random, uint64_t bound)
{
    return (random >> 32) * bound >> 32;
}

#endif /* BENCH_RANDOM_H */
