/* SPDX-License-Identifier: MIT */
/*
 * The structures of caches that begin cold (cold.c). There may be tens of thousands, so their
 * memory goes back to the system when the caches are destroyed, which the metadata of other caches
 * does not.
 *
 * A chunk is a mapping of its own, or lies in the library's first metadata if the system refuses
 * one. It has pages, each with a head that leads to the first page's, which stands for the chunk.
 * Free structures are linked by their first words. All of this is protected by heap_lock.
 */
#include "heap/cold_structures.h"

#include "base/list.h"
#include "os/os.h"
#include "slab/cache_type.h"

#define CHUNK ((size_t)64 << 10)

_Static_assert(CHUNK > OS_META_LOCK_FREE, "a chunk is unmapped when it is freed");

struct structure_page {
    struct structure_page *chunk; /* first page */
    struct list link;             /* of a chunk, in `chunks`, while a structure is free */
    struct prudence_cache *first; /* free structures of a chunk */
    unsigned used;
} __attribute__((aligned(CACHE_LINE)));

static struct list chunks = {&chunks, &chunks};

static struct structure_page *structure_chunk_of(struct prudence_cache *structure)
{
    uintptr_t page = (uintptr_t)structure & ~(uintptr_t)(OS_PAGE_SIZE - 1);

    return ((struct structure_page *)page)->chunk;
}

static void put_first(struct structure_page *chunk, struct prudence_cache *structure)
{
    *(struct prudence_cache **)structure = chunk->first;
    chunk->first = structure;
}

static void cut_page(struct structure_page *chunk, struct structure_page *page)
{
    struct prudence_cache *structures = (struct prudence_cache *)(page + 1);

    page->chunk = chunk;
    for (size_t i = (OS_PAGE_SIZE - sizeof *page) / sizeof *structures; i-- > 0;)
        put_first(chunk, &structures[i]);
}

/* Cuts the last page first, so that the first pages are used first. */
static struct structure_page *structure_chunk_make(void)
{
    char *chunk = os_meta_alloc(CHUNK);

    if (!chunk)
        return NULL;
    for (size_t at = CHUNK; at > 0; at -= OS_PAGE_SIZE)
        cut_page((struct structure_page *)chunk,
                 (struct structure_page *)(chunk + at - OS_PAGE_SIZE));
    list_append(&chunks, &((struct structure_page *)chunk)->link);
    return (struct structure_page *)chunk;
}

struct prudence_cache *cold_structures_take(void)
{
    struct structure_page *chunk = list_is_empty(&chunks)
                                       ? structure_chunk_make()
                                       : list_entry(chunks.next, struct structure_page, link);
    struct prudence_cache *structure;

    if (!chunk)
        return NULL;
    structure = chunk->first;
    chunk->first = *(struct prudence_cache **)structure;
    chunk->used++;
    if (!chunk->first)
        list_remove(&chunk->link);
    __builtin_memset(structure, 0, sizeof *structure);
    return structure;
}

void cold_structures_give(struct prudence_cache *structure)
{
    struct structure_page *chunk = structure_chunk_of(structure);

    if (!chunk->first)
        list_append(&chunks, &chunk->link);
    put_first(chunk, structure);
    if (--chunk->used)
        return;
    list_remove(&chunk->link);
    os_meta_free(chunk, CHUNK);
}
