/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Numbers without an order that a program could meet. Not for secrets: one number tells all that follow. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include "base/base.h"

/* The number behind this one (Marsaglia's xorshift, 64 bits); neither is 0. */
static inline uint64_t random_behind(uint64_t word)
{
    word ^= word << 13;
    word ^= word >> 7;
    return word ^ word << 17;
}

#endif /* BASE_RANDOM_H */
