/* SPDX-License-Identifier: MIT */
/* The bitmaps of free numbers (free_ids.h). */
#include "tables/free_ids.h"

#include <prudence/prudence.h>

/* Returns the number of words of a level. Each word of the level below has a bit there. */
static size_t words_of(unsigned order, unsigned level)
{
    unsigned bits = 6 * (level + 1);

    return order > bits ? (size_t)1 << (order - bits) : 1;
}

bool free_ids_make(struct free_ids *ids, unsigned order)
{
    uint64_t *words;
    size_t sum = 0;

    ids->count = 0;
    do
        sum += words_of(order, ids->count);
    while (words_of(order, ids->count++) > 1);
    ids->bytes = sum * sizeof *words;
    words = prudence_malloc(ids->bytes);
    if (!words)
        return false;
    __builtin_memset(words, 0xff, ids->bytes);
    for (unsigned level = 0; level < ids->count; level++) {
        ids->levels[level] = words;
        words += words_of(order, level);
    }
    /* Clear the bits of upper levels that have no word below. */
    for (unsigned level = 1; level < ids->count; level++)
        if (words_of(order, level - 1) < 64)
            ids->levels[level][0] = (UINT64_C(1) << words_of(order, level - 1)) - 1;
    return true;
}

void free_ids_unmake(const struct free_ids *ids)
{
    prudence_free(ids->levels[0]);
}

bool free_ids_lowest(const struct free_ids *ids, uint64_t *id)
{
    uint64_t word = 0;

    for (unsigned level = ids->count; level-- > 0;) {
        uint64_t bits = ids->levels[level][word];

        if (!bits)
            return false; /* only on the highest level */
        word = word * 64 + (unsigned)__builtin_ctzll(bits);
    }
    *id = word;
    return true;
}

void free_ids_take(const struct free_ids *ids, uint64_t id)
{
    for (unsigned level = 0; level < ids->count; level++, id /= 64)
        if (ids->levels[level][id / 64] &= ~(UINT64_C(1) << id % 64))
            return;
}

void free_ids_give(const struct free_ids *ids, uint64_t id)
{
    for (unsigned level = 0; level < ids->count; level++, id /= 64) {
        uint64_t before = ids->levels[level][id / 64];

        ids->levels[level][id / 64] = before | UINT64_C(1) << id % 64;
        if (before)
            return;
    }
}

void free_ids_copy(const struct free_ids *to, const struct free_ids *from)
{
    size_t words = (size_t)(from->count > 1 ? from->levels[1] - from->levels[0] : 1);

    for (size_t word = 0; word < words; word++) {
        to->levels[0][word] = from->levels[0][word];
        for (size_t above = word, level = 1; level < to->count && !to->levels[level - 1][above];
             above /= 64, level++)
            to->levels[level][above / 64] &= ~(UINT64_C(1) << above % 64);
    }
}
