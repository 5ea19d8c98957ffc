/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Bitmaps in arrays of 64-bit words. Not atomic, so the bitmap's owner serializes.
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

/* Returns a mask of the bits from `from` up to but not including `end`; 0 <= from < end <= 64. */
static inline uint64_t bits_mask(unsigned from, unsigned end)
{
    return ~UINT64_C(0) >> (BITS_PER_WORD - (end - from)) << from;
}

/* Returns the mask of the bits of word `w` that lie in [first, end), which must reach into the
 * word. */
static inline uint64_t bits_mask_of_word(unsigned w, unsigned first, unsigned end)
{
    unsigned start = w * BITS_PER_WORD;

    return bits_mask(first > start ? first - start : 0,
                     end - start < BITS_PER_WORD ? end - start : BITS_PER_WORD);
}

static inline bool bits_reach(unsigned w, unsigned first, unsigned end)
{
    return first < end && w * BITS_PER_WORD < end;
}

/* Visits each word `w` that [first, end) reaches into, with the mask of the word's bits in that
 * range. */
#define bits_for_each_word(w, mask, first, end)                                                    \
    for ((w) = (first) / BITS_PER_WORD;                                                            \
         bits_reach(w, first, end) && ((mask) = bits_mask_of_word(w, first, end), true); (w)++)

static inline void bits_set_range(uint64_t *bits, unsigned first, unsigned end)
{
    uint64_t mask;
    unsigned w;

    bits_for_each_word(w, mask, first, end)
    {
        bits[w] |= mask;
    }
}

static inline void bits_clear_range(uint64_t *bits, unsigned first, unsigned end)
{
    uint64_t mask;
    unsigned w;

    bits_for_each_word(w, mask, first, end)
    {
        bits[w] &= ~mask;
    }
}

static inline unsigned bits_count_range(const uint64_t *bits, unsigned first, unsigned end)
{
    unsigned w, count = 0;
    uint64_t mask;

    bits_for_each_word(w, mask, first, end)
    {
        count += (unsigned)__builtin_popcountll(bits[w] & mask);
    }
    return count;
}

/* Returns the first set bit of [first, end), or `end` if there is none. */
static inline unsigned bits_find_set(const uint64_t *bits, unsigned first, unsigned end)
{
    uint64_t mask;
    unsigned w;

    bits_for_each_word(w, mask, first, end)
    {
        if (bits[w] & mask)
            return w * BITS_PER_WORD + (unsigned)__builtin_ctzll(bits[w] & mask);
    }
    return end;
}

static inline unsigned bits_find_clear(const uint64_t *bits, unsigned first, unsigned end)
{
    uint64_t mask;
    unsigned w;

    bits_for_each_word(w, mask, first, end)
    {
        if (~bits[w] & mask)
            return w * BITS_PER_WORD + (unsigned)__builtin_ctzll(~bits[w] & mask);
    }
    return end;
}

/* Returns the number of the last set bit of [0, end), plus 1, or 0 if there is none. */
static inline unsigned bits_find_set_before(const uint64_t *bits, unsigned end)
{
    while (end) {
        unsigned w = (end - 1) / BITS_PER_WORD;
        uint64_t word = bits[w] & bits_mask(0, end - w * BITS_PER_WORD);

        if (word)
            return (w + 1) * BITS_PER_WORD - (unsigned)__builtin_clzll(word);
        end = w * BITS_PER_WORD;
    }
    return 0;
}

/* Moves every bit of `from` into `to`; the two must be disjoint. */
static inline void bits_move(uint64_t *to, uint64_t *from, unsigned words)
{
    for (unsigned w = 0; w < words; w++) {
        to[w] |= from[w];
        from[w] = 0;
    }
}

#endif /* BASE_BITS_H */
