/* SPDX-License-Identifier: MIT */
/*
 * The regions of a node, by slots. A new region gets the lowest free slot, and a run is taken from
 * the first slot that has room. So low slots stay full and high ones drain, and the high ones lose
 * their dirty pages first. The search for a slot uses `longest` of all slots and the maxima over 64
 * and over 4,096 slots.
 *
 * Slots come in groups of 4,096 (256 GiB of regions of 64 MiB). Groups are made when needed and
 * never unmade, so a process that locks memory pays only for the groups in use. Groups are entered
 * without the lock, by compare-and-swap; everything else is protected by pages_lock.
 *
 * Invariant: a region's slot is in `dirty` of the group exactly when the region has dirty pages.
 */
#include "pages/page_source.h"

#define FANOUT      64u
#define GROUP_SLOTS (FANOUT * FANOUT)
#define GROUPS      FANOUT /* 16 TiB a node; further memory gets huge mappings */

struct group {
    uint16_t longest[GROUP_SLOTS], longest_of_64[FANOUT];
    uint64_t used[GROUP_SLOTS / BITS_PER_WORD], dirty[GROUP_SLOTS / BITS_PER_WORD];
    struct region *regions[GROUP_SLOTS];
};

struct arena {
    unsigned slots; /* every slot in use is below this */
    size_t bytes;   /* of all regions except windows; atomic, read without the lock */
    uint16_t longest_of_4096[GROUPS];
    struct group *groups[GROUPS]; /* atomic; existing groups come first */
};

static struct arena arenas[POSIX_NODES_MAX];

static struct group *group_of(struct arena *arena, unsigned slot)
{
    return load_acquire(&arena->groups[slot / GROUP_SLOTS]);
}

/* Makes the first group that does not exist yet. Two threads that do so at the same time may make
 * one each; the second is address space that is not touched. */
bool arena_prepare(unsigned node)
{
    size_t bytes = round_up(sizeof(struct group), os_page_size);
    struct group *none = NULL, *group;
    unsigned i = 0;

    while (i < GROUPS && load_acquire(&arenas[node].groups[i]))
        i++;
    if (i == GROUPS)
        return false;
    group = metadata_map(bytes);
    if (group && !compare_exchange(&arenas[node].groups[i], &none, group))
        mapping_unmake_own(group, bytes);
    return group != NULL;
}

size_t arena_bytes(unsigned node)
{
    return load_relaxed(&arenas[node].bytes);
}

/* ------------------------------------------------------------------------- the longest free run */

static unsigned largest_of(const uint16_t *values)
{
    unsigned largest = 0;

    for (unsigned i = 0; i < FANOUT; i++)
        largest = values[i] > largest ? values[i] : largest;
    return largest;
}

/* Updates *maximum, the maximum of `values`, after one value went from `before` to `now`. Returns
 * whether the maximum has changed. */
static bool maximum_follows(uint16_t *maximum, const uint16_t *values, unsigned before,
                            unsigned now)
{
    unsigned largest = *maximum;

    if (now >= largest)
        largest = now;
    else if (before == largest)
        largest = largest_of(values);
    if (largest == *maximum)
        return false;
    *maximum = narrow(uint16_t, largest);
    return true;
}

void arena_note_longest(const struct region *region)
{
    struct arena *arena = &arenas[region->node];
    struct group *group = group_of(arena, region->slot);
    size_t slot = region->slot % GROUP_SLOTS, of_64 = slot / FANOUT;
    unsigned before = group->longest[slot], before_64 = group->longest_of_64[of_64];

    group->longest[slot] = narrow(uint16_t, region->longest);
    if (maximum_follows(&group->longest_of_64[of_64], &group->longest[of_64 * FANOUT], before,
                        region->longest))
        maximum_follows(&arena->longest_of_4096[region->slot / GROUP_SLOTS], group->longest_of_64,
                        before_64, group->longest_of_64[of_64]);
}

/* Returns arena->slots if no slot has room. */
static unsigned slot_find(struct arena *arena, unsigned slot, unsigned pages)
{
    while (slot < arena->slots) {
        const struct group *group = group_of(arena, slot);

        if (slot % GROUP_SLOTS == 0 && arena->longest_of_4096[slot / GROUP_SLOTS] < pages)
            slot += GROUP_SLOTS;
        else if (slot % FANOUT == 0 && group->longest_of_64[slot % GROUP_SLOTS / FANOUT] < pages)
            slot += FANOUT;
        else if (group->longest[slot % GROUP_SLOTS] < pages)
            slot++;
        else
            return slot;
    }
    return arena->slots;
}

struct region *arena_find(unsigned node, unsigned *slot, unsigned pages)
{
    struct arena *arena = &arenas[node];

    *slot = slot_find(arena, *slot, pages);
    return *slot < arena->slots ? group_of(arena, *slot)->regions[*slot % GROUP_SLOTS] : NULL;
}

/* ---------------------------------------------------------------------------------------- dirty */

void arena_note_dirty(const struct region *region)
{
    struct group *group = group_of(&arenas[region->node], region->slot);

    if (region->dirty_pages)
        bits_set(group->dirty, region->slot % GROUP_SLOTS);
    else
        bits_clear(group->dirty, region->slot % GROUP_SLOTS);
}

/* Returns one more than the last slot below `end` that is in use or has dirty pages; 0 if none
 * is. */
static unsigned behind_last(struct arena *arena, unsigned end, bool dirty)
{
    unsigned behind = 0;

    while (!behind && end) {
        unsigned first = (end - 1) / GROUP_SLOTS * GROUP_SLOTS;
        const struct group *group = group_of(arena, first);

        behind = bits_find_set_before(dirty ? group->dirty : group->used, end - first);
        behind += behind ? first : 0;
        end = first;
    }
    return behind;
}

struct region *arena_find_dirty_from(unsigned node, unsigned *slot, unsigned pages)
{
    struct arena *arena = &arenas[node];

    while (*slot < arena->slots) {
        const struct group *group = group_of(arena, *slot);
        unsigned first = *slot / GROUP_SLOTS * GROUP_SLOTS;

        *slot = first + bits_find_set(group->dirty, *slot % GROUP_SLOTS, GROUP_SLOTS);
        if (*slot - first < GROUP_SLOTS && group->longest[*slot - first] >= pages)
            return group->regions[*slot - first];
        *slot += *slot - first < GROUP_SLOTS;
    }
    return NULL;
}

struct region *arena_find_before(unsigned node, unsigned *slot, bool dirty)
{
    struct arena *arena = &arenas[node];
    unsigned end = *slot < arena->slots ? *slot : arena->slots;
    unsigned behind = behind_last(arena, end, dirty);

    if (!behind)
        return NULL;
    *slot = behind - 1;
    return group_of(arena, *slot)->regions[*slot % GROUP_SLOTS];
}

/* -------------------------------------------------------------------------------------- regions */

/* Returns the lowest free slot, or ARENA_FULL if no group has any. */
static unsigned free_slot(struct arena *arena)
{
    for (unsigned i = 0; i < GROUPS; i++) {
        const struct group *group = load_acquire(&arena->groups[i]);
        unsigned slot = group ? bits_find_clear(group->used, 0, GROUP_SLOTS) : 0;

        if (!group)
            return ARENA_FULL;
        if (slot < GROUP_SLOTS)
            return i * GROUP_SLOTS + slot;
    }
    return ARENA_FULL;
}

/* Adds a region in the lowest free slot. Searches find no run there until region->longest is
 * noted. */
bool arena_add(struct region *region)
{
    struct arena *arena = &arenas[region->node];
    unsigned slot = free_slot(arena);
    struct group *group;

    if (slot == ARENA_FULL)
        return false;
    group = group_of(arena, slot);
    arena->slots = slot < arena->slots ? arena->slots : slot + 1;
    group->regions[slot % GROUP_SLOTS] = region;
    bits_set(group->used, slot % GROUP_SLOTS);
    region->slot = slot;
    if (!region->window)
        store_relaxed(&arena->bytes, arena->bytes + region->pages * OS_PAGE_SIZE);
    return true;
}

/* Removes a region whose longest run and number of dirty pages are 0. */
void arena_remove(struct region *region)
{
    struct arena *arena = &arenas[region->node];
    struct group *group = group_of(arena, region->slot);

    bits_clear(group->dirty, region->slot % GROUP_SLOTS);
    bits_clear(group->used, region->slot % GROUP_SLOTS);
    arena->slots = behind_last(arena, arena->slots, false);
    if (!region->window)
        store_relaxed(&arena->bytes, arena->bytes - region->pages * OS_PAGE_SIZE);
}
