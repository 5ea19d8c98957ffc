/* SPDX-License-Identifier: MIT */
/*
 * Runs of pages, cut from regions of 64 MiB. A region belongs to one node and is one mapping for its
 * whole life, so slabs never splinter the address space.
 *
 * Invariants: used and dirty are disjoint; dirty_pages = |dirty|; free_pages = REGION_PAGES - |used|;
 * a region's slot is in dirty_slots exactly when it has dirty pages. Neighbouring free runs are one,
 * since nothing but the bits tells where a run ends.
 *
 * The regions of a node have slots, the lowest free one for a new region. A run is taken from the
 * first slot that has room: so low slots stay full and high ones drain, and those lose their dirty
 * pages first. `longest` of all slots, with the maxima of 64 and of 4,096 slots, finds the slot.
 * Within a region the search for a run begins at `first` of its power of two, so that the holes that
 * are too small are passed once, and not each time.
 *
 * Everything is guarded by pages_lock but region_make and region_unmake.
 */
#include "page_source.h"

#define FANOUT 64u
#define SLOTS  (FANOUT * FANOUT * FANOUT) /* 16 TiB a node; what is beyond gets spans */

struct arena {
    unsigned slots; /* all that are in use are below */
    uint16_t longest[SLOTS], longest_of_64[SLOTS / FANOUT], longest_of_4096[FANOUT];
    uint64_t used_slots[SLOTS / BITS_PER_WORD], dirty_slots[SLOTS / BITS_PER_WORD];
    struct region *regions[SLOTS];
};

/* Made with a node's first region and never unmade; what is not touched of it costs no memory. Atomic:
 * one may lose the race to make it while another has its region in it. */
static struct arena *arenas[POSIX_NODES_MAX];

static bool arena_prepare(unsigned node)
{
    struct arena *none = NULL, *arena;

    if (load_acquire(&arenas[node]))
        return true;
    arena = metadata_map(round_up(sizeof *arena, OS_PAGE_SIZE));
    if (arena && !compare_exchange(&arenas[node], &none, arena))
        mapping_unmake(arena, round_up(sizeof *arena, OS_PAGE_SIZE));
    return arena != NULL;
}

/* -------------------------------------------------------------------------- the longest free run */

static unsigned largest_of(const uint16_t *values)
{
    unsigned largest = 0;

    for (unsigned i = 0; i < FANOUT; i++)
        largest = values[i] > largest ? values[i] : largest;
    return largest;
}

/* Whether the maximum of `values`, kept in *maximum, is another now that one of them went from
 * `before` to `now`. */
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
    *maximum = (uint16_t)largest;
    return true;
}

static void set_longest_of_slot(struct arena *arena, unsigned slot, unsigned longest)
{
    size_t group = slot / FANOUT;
    unsigned before = arena->longest[slot], group_before;

    arena->longest[slot] = (uint16_t)longest;
    group_before = arena->longest_of_64[group];
    if (maximum_follows(&arena->longest_of_64[group], &arena->longest[group * FANOUT], before,
                        longest))
        maximum_follows(&arena->longest_of_4096[group / FANOUT],
                        &arena->longest_of_64[group / FANOUT * FANOUT], group_before,
                        arena->longest_of_64[group]);
}

static void set_longest(struct region *region, unsigned longest)
{
    if (region->longest == longest)
        return;
    region->longest = longest;
    set_longest_of_slot(load_relaxed(&arenas[region->node]), region->slot, longest);
}

/* The first slot from `slot` on whose region may have a free run of `pages`; arena->slots: none. */
static unsigned slot_find(const struct arena *arena, unsigned slot, unsigned pages)
{
    while (slot < arena->slots) {
        if (slot % (FANOUT * FANOUT) == 0 && arena->longest_of_4096[slot / FANOUT / FANOUT] < pages)
            slot += FANOUT * FANOUT;
        else if (slot % FANOUT == 0 && arena->longest_of_64[slot / FANOUT] < pages)
            slot += FANOUT;
        else if (arena->longest[slot] < pages)
            slot++;
        else
            return slot;
    }
    return arena->slots;
}

/* ----------------------------------------------------------------------------------------- pages */

static void count_dirty(struct region *region, int pages)
{
    struct arena *arena = load_relaxed(&arenas[region->node]);

    region->dirty_pages += (unsigned)pages;
    if (region->dirty_pages)
        bits_set(arena->dirty_slots, region->slot);
    else
        bits_clear(arena->dirty_slots, region->slot);
}

/* Free pages become used, or leave circulation; returns how many of them were dirty. */
static unsigned pages_take(struct region *region, unsigned start, unsigned end)
{
    unsigned dirty = region->dirty_pages ? bits_count_range(region->dirty, start, end) : 0;

    bits_set_range(region->used, start, end);
    region->free_pages -= end - start;
    if (dirty) {
        bits_clear_range(region->dirty, start, end);
        count_dirty(region, -(int)dirty);
    }
    return dirty;
}

/* A free run begins at `start`. */
static void note_first(struct region *region, unsigned start, unsigned pages)
{
    for (unsigned order = 0; order < RUN_ORDERS && pages >> order; order++)
        if (start < region->first[order])
            region->first[order] = (uint16_t)start;
}

static void pages_put(struct region *region, unsigned start, unsigned end, bool dirty)
{
    unsigned first, behind;

    debug_assert(bits_count_range(region->used, start, end) == end - start);
    bits_clear_range(region->used, start, end);
    region->free_pages += end - start;
    if (dirty) {
        bits_set_range(region->dirty, start, end);
        count_dirty(region, (int)(end - start));
    }
    first = bits_find_set_before(region->used, start);
    behind = bits_find_set(region->used, end, REGION_PAGES);
    note_first(region, first, behind - first);
    if (behind - first > region->longest)
        set_longest(region, behind - first);
}

/* The first free run of `pages` at a multiple of `step`; REGION_PAGES when there is none, and then
 * `longest` has become as good a bound as what was looked at allows. */
static unsigned run_find(struct region *region, unsigned pages, unsigned step)
{
    unsigned order = 31 - (unsigned)__builtin_clz(pages), begin = region->first[order];
    unsigned start = bits_find_clear(region->used, begin, REGION_PAGES), longest = 0;

    region->first[order] = REGION_PAGES; /* unless a run of that order is met */
    while (start < REGION_PAGES) {
        unsigned end = bits_find_set(region->used, start, REGION_PAGES);
        unsigned first = (unsigned)round_up(start, step);

        if ((end - start) >> order && start < region->first[order])
            region->first[order] = (uint16_t)start;
        if (first + pages <= end)
            return first;
        longest = end - start > longest ? end - start : longest;
        start = bits_find_clear(region->used, end, REGION_PAGES);
    }
    if (begin > 0 && longest < (1u << order) - 1)
        longest = (1u << order) - 1; /* what lies before may be as long */
    if (longest < region->longest)
        set_longest(region, longest);
    return REGION_PAGES;
}

void *run_take(unsigned node, unsigned pages, unsigned step, unsigned *dirty)
{
    struct arena *arena = load_acquire(&arenas[node]);

    if (!arena)
        return NULL;
    for (unsigned slot = 0; (slot = slot_find(arena, slot, pages)) < arena->slots; slot++) {
        struct region *region = arena->regions[slot];
        unsigned start = run_find(region, pages, step);

        if (start == REGION_PAGES)
            continue;
        *dirty = pages_take(region, start, start + pages);
        return region->base + start * OS_PAGE_SIZE;
    }
    return NULL;
}

void run_free(struct region *region, unsigned start, unsigned pages)
{
    pages_put(region, start, start + pages, true);
}

void run_free_clean(struct region *region, unsigned start, unsigned pages)
{
    pages_put(region, start, start + pages, false);
}

bool run_extend(struct region *region, unsigned start, unsigned pages, unsigned *dirty)
{
    if (start + pages > REGION_PAGES ||
        bits_find_set(region->used, start, start + pages) < start + pages)
        return false;
    *dirty = pages_take(region, start, start + pages);
    return true;
}

/* --------------------------------------------------------------------------------------- regions */

/* NULL: no memory. */
struct region *region_make(unsigned node)
{
    struct region *region = os_meta_alloc(sizeof *region);

    if (!region)
        return NULL;
    region->base = mapping_make_on_node(REGION_SIZE, REGION_SIZE, node);
    if (!region->base)
        goto no_pages;
    if (!arena_prepare(node) || !index_prepare(region->base, REGION_SIZE))
        goto no_metadata;
    region->node = node;
    region->free_pages = REGION_PAGES;
    return region;

no_metadata:
    mapping_unmake(region->base, REGION_SIZE);
no_pages:
    os_meta_free(region, sizeof *region);
    return NULL;
}

bool region_unmake(struct region *region)
{
    if (!mapping_unmake(region->base, REGION_SIZE))
        return false;
    os_meta_free(region, sizeof *region);
    return true;
}

/* In the lowest free slot. */
bool region_add(struct region *region)
{
    struct arena *arena = load_relaxed(&arenas[region->node]);
    unsigned slot = bits_find_clear(arena->used_slots, 0, SLOTS);

    if (slot == SLOTS)
        return false;
    arena->slots = slot < arena->slots ? arena->slots : slot + 1;
    arena->regions[slot] = region;
    bits_set(arena->used_slots, slot);
    region->slot = slot;
    region->longest = 0;
    index_set_region(region, true);
    set_longest(region, bits_find_set(region->used, 0, REGION_PAGES));
    return true;
}

void region_remove(struct region *region)
{
    struct arena *arena = load_relaxed(&arenas[region->node]);

    set_longest(region, 0);
    bits_clear(arena->dirty_slots, region->slot);
    bits_clear(arena->used_slots, region->slot);
    arena->slots = bits_find_set_before(arena->used_slots, arena->slots);
    index_set_region(region, false);
}

/* ----------------------------------------------------------------------------------- giving back */

/* The region's last dirty run below page `end`, with the clean free pages in it: one system call
 * does for all of it. At most `pages`. False when there is none. */
static bool run_leaves(struct region *region, unsigned end, unsigned pages, struct leaving_run *run)
{
    unsigned behind = bits_find_set_before(region->dirty, end), first;

    if (!behind)
        return false;
    first = bits_find_set_before(region->used, behind);
    first = bits_find_set(region->dirty, first, behind);
    if (behind - first > pages)
        first = behind - pages;
    *run = (struct leaving_run){.region = region, .start = first, .pages = behind - first};
    run->dirty = pages_take(region, first, behind);
    return true;
}

/* An empty region goes as a whole. */
static void region_leaves(struct region *region, struct leaving_run *run)
{
    *run = (struct leaving_run){.region = region, .pages = REGION_PAGES};
    run->dirty = pages_take(region, 0, REGION_PAGES);
    region_remove(region);
}

static unsigned region_runs_leave(struct region *region, unsigned *pages, struct leaving_run *runs,
                                  unsigned count)
{
    unsigned taken = 0, end = REGION_PAGES;

    if (region->free_pages == REGION_PAGES && *pages >= region->dirty_pages) {
        region_leaves(region, &runs[taken++]);
        *pages -= (unsigned)min_size(*pages, runs[0].dirty);
        return taken;
    }
    while (taken < count && *pages && run_leaves(region, end, *pages, &runs[taken])) {
        end = runs[taken].start;
        *pages -= (unsigned)min_size(*pages, runs[taken++].dirty);
    }
    return taken;
}

unsigned runs_leave(unsigned pages, struct leaving_run *runs, unsigned count)
{
    unsigned taken = 0;

    for (unsigned node = 0; node < os_node_count(); node++) {
        struct arena *arena = load_acquire(&arenas[node]);
        unsigned slot;

        if (!arena)
            continue;
        slot = arena->slots;
        while (pages && taken < count &&
               (slot = bits_find_set_before(arena->dirty_slots, slot)) > 0) {
            slot--;
            taken += region_runs_leave(arena->regions[slot], &pages, runs + taken, count - taken);
        }
    }
    return taken;
}

void run_return(const struct leaving_run *run, bool clean)
{
    pages_put(run->region, run->start, run->start + run->pages, !clean);
}
