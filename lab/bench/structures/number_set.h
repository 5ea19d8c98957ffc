/* SPDX-License-Identifier: MIT */
/* A set of numbers other than 0, by open addressing: keeps the elements of an input unique. */
#ifndef BENCH_STRUCTURES_NUMBER_SET_H
#define BENCH_STRUCTURES_NUMBER_SET_H

#include <stdbool.h>
#include <stdlib.h>

#include "subject.h"

struct number_set {
    uint64_t *slots; /* 0 if empty; the caller frees the array */
    uint64_t mask;
};

/* Makes room for `most` numbers. */
static inline struct number_set number_set_make(uint64_t most)
{
    struct number_set set = {.mask = 63};

    while (set.mask + 1 < 2 * most)
        set.mask = 2 * set.mask + 1;
    set.slots = calloc(set.mask + 1, sizeof *set.slots);
    if (!set.slots)
        abort();
    return set;
}

/* Adds a number. Returns false if it was present. */
static inline bool number_set_add(const struct number_set *set, uint64_t number)
{
    uint64_t at = hash_of(number) & set->mask;

    for (; set->slots[at]; at = (at + 1) & set->mask)
        if (set->slots[at] == number)
            return false;
    set->slots[at] = number;
    return true;
}

#endif /* BENCH_STRUCTURES_NUMBER_SET_H */
