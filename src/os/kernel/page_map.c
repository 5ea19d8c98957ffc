// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* The page map's slow side: making tables and entering owners (see os_page_map.h). */
#include "os_kernel.h"

void ***os_page_map[PAGE_MAP_ROOT];
static uint64_t tables;

/* A table in *place. NULL when it cannot be had. */
static void *table_at(void *place)
{
    void **slot = place, *table = load_acquire(slot), *none = NULL;

    if (table)
        return table;
    table = (void *)__get_free_page(GFP_NOWAIT | __GFP_ZERO | __GFP_NOWARN | __GFP_HIGH);
    if (!table)
        return NULL;
    if (compare_exchange(slot, &none, table)) {
        add_relaxed(&tables, 1);
        return table;
    }
    free_page((unsigned long)table); /* another was first */
    return none;
}

static void **leaf_of(unsigned long page)
{
    void ***middle = table_at(&os_page_map[page >> (2 * PAGE_MAP_BITS)]);

    return middle ? table_at(&middle[page >> PAGE_MAP_BITS & (PAGE_MAP_SLOTS - 1)]) : NULL;
}

bool os_page_owner_set(void *pages, size_t bytes, void *owner)
{
    unsigned long first = ((unsigned long)pages - PAGE_OFFSET) >> PAGE_SHIFT;
    unsigned long end = first + (bytes >> PAGE_SHIFT);

    if (end > PAGE_MAP_ROOT << (2 * PAGE_MAP_BITS))
        return false;
    for (unsigned long page = first; page < end; page += PAGE_MAP_SLOTS)
        if (!leaf_of(page))
            return false;
    if (!leaf_of(end - 1))
        return false;
    for (unsigned long page = first; page < end; page++)
        store_relaxed(&leaf_of(page)[page & (PAGE_MAP_SLOTS - 1)], owner);
    return true;
}

uint64_t os_page_map_bytes(void)
{
    return load_relaxed(&tables) * PAGE_SIZE;
}

void os_page_map_release(void)
{
    for (unsigned long i = 0; i < PAGE_MAP_ROOT; i++) {
        void ***middle = os_page_map[i];

        for (unsigned long j = 0; middle && j < PAGE_MAP_SLOTS; j++)
            free_page((unsigned long)middle[j]);
        free_page((unsigned long)middle);
    }
}
