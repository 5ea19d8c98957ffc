/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Pseudo-random numbers, whose order no program repeats by chance. Not for secrets, because one
 * number reveals all that follow. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include "base/base.h"

/* Returns the number after `word` (Marsaglia's xorshift, 64 bits). Neither may be 0. */
static inline uint64_t random_behind(uint64_t word)
{
    word ^= word << 13;
    word ^= word >> 7;
    return word ^ word << 17;
}

#endif /* BASE_RANDOM_H */
