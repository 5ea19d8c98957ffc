/* SPDX-License-Identifier: MIT */
/*
 * The heads of callbacks or of retired objects that wait, with check=1. A head is in the set while
 * it waits, so nothing needs to be written into the object.
 */
#include "toolkit/domains/head_set.h"

static size_t head_place(const struct head_set *set, uintptr_t head)
{
    return ((head >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (set->size - 1);
}

static size_t head_find(const struct head_set *set, uintptr_t head)
{
    size_t place = head_place(set, head);

    while (set->at[place] && set->at[place] != head)
        place = (place + 1) & (set->size - 1);
    return place;
}

static bool head_set_grow(struct head_set *set)
{
    const struct head_set old = *set;

    set->size = old.size ? 2 * old.size : 4096;
    set->at = os_meta_alloc(set->size * sizeof *set->at);
    if (!set->at) {
        *set = old;
        return false;
    }
    for (size_t i = 0; i < old.size; i++)
        if (old.at[i])
            set->at[head_find(set, old.at[i])] = old.at[i];
    if (old.at)
        os_meta_free(old.at, old.size * sizeof *old.at);
    return true;
}

/* Returns false if the head is in the set. Without memory, returns true. */
bool head_set_add(struct head_set *set, const void *head)
{
    size_t place;

    if (4 * set->used >= 3 * set->size && !head_set_grow(set) && set->used + 1 >= set->size)
        return true;
    place = head_find(set, (uintptr_t)head);
    if (set->at[place])
        return false;
    set->at[place] = (uintptr_t)head;
    store_relaxed(&set->used, set->used + 1);
    return true;
}

/* Moves later entries up into the gap, unless the gap comes before an entry's own place. */
static void head_set_close_gap(struct head_set *set, size_t gap)
{
    const size_t mask = set->size - 1;

    for (size_t place = (gap + 1) & mask; set->at[place]; place = (place + 1) & mask) {
        if (((place - head_place(set, set->at[place])) & mask) < ((place - gap) & mask))
            continue;
        set->at[gap] = set->at[place];
        gap = place;
    }
    set->at[gap] = 0;
}

void head_set_remove(struct head_set *set, const void *head)
{
    size_t place;

    if (!set->used)
        return;
    place = head_find(set, (uintptr_t)head);
    if (!set->at[place])
        return;
    head_set_close_gap(set, place);
    store_relaxed(&set->used, set->used - 1);
}
