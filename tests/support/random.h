/* SPDX-License-Identifier: MIT */
/* Random choices of a test, the same in each run: a linear congruential generator, whose upper bits
 * are good. Tests that run for long, with seeds, have another one (gp_torture.h). */
#ifndef TESTS_SUPPORT_RANDOM_H
#define TESTS_SUPPORT_RANDOM_H

#include <stdint.h>

/* Returns 31 bits. */
static inline unsigned random_next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(*state >> 33);
}

static inline unsigned random_below(uint64_t *state, uint64_t bound)
{
    return (unsigned)(random_next(state) % bound);
}

#endif /* TESTS_SUPPORT_RANDOM_H */
