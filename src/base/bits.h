/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Bitmaps in arrays of 64-bit words. Not atomic: the owner of the bitmap serializes.
 */
#ifndef BASE_BITS_H
#define BASE_BITS_H

#include "base/base.h"

#define BITS_PER_WORD 64

static inline unsigned bits_words(unsigned bits)
{
    return (bits + BITS_PER_WORD - 1) / BITS_PER_WORD;
}

static inline bool bits_test(const uint64_t *bits, unsigned i)
{
    return bits[i / BITS_PER_WORD] >> (i % BITS_PER_WORD) & 1;
}

static inline void bits_set(uint64_t *bits, unsigned i)
{
    bits[i / BITS_PER_WORD] |= UINT64_C(1) << (i % BITS_PER_WORD);
}

static inline void bits_clear(uint64_t *bits, unsigned i)
{
    bits[i / BITS_PER_WORD] &= ~(UINT64_C(1) << (i % BITS_PER_WORD));
}

/* Sets the first `count` bits and clears the rest of the last word. */
static inline void bits_fill(uint64_t *bits, unsigned count)
{
    for (unsigned w = 0; w < bits_words(count); w++)
        bits[w] = ~UINT64_C(0);
    if (count % BITS_PER_WORD)
        bits[count / BITS_PER_WORD] = (UINT64_C(1) << (count % BITS_PER_WORD)) - 1;
}

/* Moves every bit of `from` into `to`, whose bits must be disjoint from them. */
static inline void bits_move(uint64_t *to, uint64_t *from, unsigned words)
{
    for (unsigned w = 0; w < words; w++) {
        to[w] |= from[w];
        from[w] = 0;
    }
}

#endif /* BASE_BITS_H */
