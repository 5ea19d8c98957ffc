/* SPDX-License-Identifier: MIT */
/*
 * Marks record which lists of a ring are not empty, so that a ring of any length is searched in a
 * few steps. They are a tree of bitmaps in one array. The first level has a bit for each list, each
 * further level a bit for each word of the level before, and the last level is one word. A bit of a
 * further level is set exactly when the word below is not 0. Nothing is atomic, because a ring has
 * one owner at a time.
 */
#ifndef SHORTTERM_MARKS_H
#define SHORTTERM_MARKS_H

#include "base/base.h"

#define MARKS_PER_WORD 64
#define MARKS_LEVELS   6 /* 64^6 lists, more than any ring has */

static inline uint64_t marks_words_of(uint64_t bits)
{
    return (bits + MARKS_PER_WORD - 1) / MARKS_PER_WORD;
}

/* Returns the number of words of all levels. */
static inline uint64_t marks_words(uint64_t lists)
{
    uint64_t level = marks_words_of(lists), words = level;

    while (level > 1) {
        level = marks_words_of(level);
        words += level;
    }
    return words;
}

static inline uint64_t marks_bit(uint64_t i)
{
    return UINT64_C(1) << (i % MARKS_PER_WORD);
}

static inline void marks_set(uint64_t *marks, uint64_t lists, uint64_t i)
{
    for (;;) {
        uint64_t before = marks[i / MARKS_PER_WORD];

        marks[i / MARKS_PER_WORD] = before | marks_bit(i);
        if (before || lists <= MARKS_PER_WORD)
            return;
        lists = marks_words_of(lists);
        marks += lists;
        i /= MARKS_PER_WORD;
    }
}

/* Clears a bit in the levels after the first, in which a word has become 0. */
static __attribute__((noinline, unused)) void marks_clear_above(uint64_t *marks, uint64_t lists,
                                                                uint64_t i)
{
    uint64_t words = marks_words_of(lists);

    while (words > 1) {
        marks += words;
        i /= MARKS_PER_WORD;
        marks[i / MARKS_PER_WORD] &= ~marks_bit(i);
        if (marks[i / MARKS_PER_WORD])
            return;
        words = marks_words_of(words);
    }
}

static inline void marks_clear(uint64_t *marks, uint64_t lists, uint64_t i)
{
    uint64_t word = marks[i / MARKS_PER_WORD] & ~marks_bit(i);

    marks[i / MARKS_PER_WORD] = word;
    if (unlikely(!word) && lists > MARKS_PER_WORD)
        marks_clear_above(marks, lists, i);
}

/* Returns the first marked list from `from` on, or `lists` if none is marked. Goes up the levels to
 * the first word with a later bit, and down again to the first bit below that. */
static inline uint64_t marks_next(const uint64_t *marks, uint64_t lists, uint64_t from)
{
    const uint64_t *levels[MARKS_LEVELS];
    uint64_t bits = lists, i = from;
    unsigned level = 0;

    for (levels[0] = marks;; level++) {
        uint64_t words = marks_words_of(bits), word = 0;

        if (i < bits)
            word = levels[level][i / MARKS_PER_WORD] >> (i % MARKS_PER_WORD);
        if (word) {
            i += (unsigned)__builtin_ctzll(word);
            break;
        }
        if (words == 1 || i >= bits)
            return lists;
        levels[level + 1] = levels[level] + words;
        bits = words;
        i = i / MARKS_PER_WORD + 1;
    }
    while (level) {
        level--;
        i = i * MARKS_PER_WORD + (unsigned)__builtin_ctzll(levels[level][i]);
    }
    return i;
}

#endif /* SHORTTERM_MARKS_H */
