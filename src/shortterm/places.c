/* SPDX-License-Identifier: MIT */
/* Grows the tables behind handles (places.h). */
#include "shortterm/places.h"

#include "shortterm/meta.h"

void *places_new(struct places *places, uint32_t *number)
{
    uint64_t within;
    unsigned block = places_block_of(places->used, &within);
    size_t bytes = places_block_size(block) * places->size;
    void *first = places->blocks[block];

    if (!first)
        first = scm_meta_alloc(bytes);
    if (!first || places->used == UINT32_MAX)
        return NULL;
    store_release(&places->blocks[block], first); /* makes the zeros visible first */
    *number = places->used++;
    return places_at(places, *number, places->size);
}
