/* SPDX-License-Identifier: MIT */
/*
 * Runs of pages, cut from regions. A region belongs to one node and stays one mapping all its
 * life, so slabs never splinter the address space. Regions have 64 MiB, except the first ones of a
 * node (REGION_SMALL), and except when that is too much (ADR 9):
 *   - In a process that locks its memory, a mapping is resident at once, so regions follow use.
 *   - If the system refuses a region (a limit of locked memory or of address space), a smaller one
 *     is made.
 *
 * Invariants: used and dirty are disjoint; pages beyond `pages` are used; dirty_pages = |dirty|;
 * free_pages = REGION_PAGES - |used|.
 *
 * The search for a run begins at the `first` of the run's power of two, so that holes that are too
 * small are passed once, and not each time.
 *
 * Everything is protected by pages_lock, except region_make, region_unmake and
 * region_unmake_window.
 */
#include "pages/page_source.h"

size_t region_small = REGION_SMALL;

static void set_longest(struct region *region, unsigned longest)
{
    if (region->longest == longest || region->window)
        return; /* a search for runs must not find a window */
    region->longest = longest;
    arena_note_longest(region);
}

/* ---------------------------------------------------------------------------------------- pages */

static void count_dirty(struct region *region, int pages)
{
    region->dirty_pages += (unsigned)pages;
    arena_note_dirty(region);
}

/* Marks free pages as used or out of circulation. Returns the number of dirty pages among them. */
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

/* Notes that a free run begins at `start`. */
static void note_first(struct region *region, unsigned start, unsigned pages)
{
    for (unsigned order = 0; order < RUN_ORDERS && pages >> order; order++)
        if (start < region->first[order])
            region->first[order] = narrow(uint16_t, start);
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

/* Returns the first free run of `pages` at an address that is a multiple of `step` pages. If
 * there is none, returns REGION_PAGES and makes `longest` as good a bound as the pages read
 * allow. */
static unsigned run_find(struct region *region, unsigned pages, unsigned step)
{
    unsigned order = 31 - (unsigned)__builtin_clz(pages), begin = region->first[order];
    size_t base = (uintptr_t)region->base / OS_PAGE_SIZE;
    unsigned start = bits_find_clear(region->used, begin, REGION_PAGES), longest = 0;

    region->first[order] = REGION_PAGES; /* unless the search meets a run of that order */
    while (start < REGION_PAGES) {
        unsigned end = bits_find_set(region->used, start, REGION_PAGES);
        unsigned first = (unsigned)(round_up(base + start, step) - base);

        if ((end - start) >> order && start < region->first[order])
            region->first[order] = narrow(uint16_t, start);
        if (first + pages <= end)
            return first;
        longest = end - start > longest ? end - start : longest;
        start = bits_find_clear(region->used, end, REGION_PAGES);
    }
    if (begin > 0 && longest < (1u << order) - 1)
        longest = (1u << order) - 1; /* runs before `begin` may be as long */
    if (longest < region->longest)
        set_longest(region, longest);
    return REGION_PAGES;
}

static void *take_at(struct region *region, unsigned start, unsigned pages, unsigned *dirty)
{
    *dirty = pages_take(region, start, start + pages);
    return region->base + start * OS_PAGE_SIZE;
}

#define DIRTY_LOOKS 8

/* Takes a run with dirty pages, of one of the first regions that have any. */
static void *take_dirty(unsigned node, unsigned pages, unsigned step, unsigned *dirty)
{
    struct region *region;
    unsigned slot = 0;

    for (unsigned looks = 0;
         looks < DIRTY_LOOKS && (region = arena_find_dirty_from(node, &slot, pages)); looks++) {
        unsigned start = run_find(region, pages, step);

        if (start < REGION_PAGES && bits_count_range(region->dirty, start, start + pages))
            return take_at(region, start, pages, dirty);
        slot++;
    }
    return NULL;
}

void *region_take(unsigned node, unsigned pages, unsigned step, unsigned *dirty)
{
    struct region *region;
    void *run = take_dirty(node, pages, step, dirty);

    if (run)
        return run;
    for (unsigned slot = 0; (region = arena_find(node, &slot, pages)); slot++) {
        run = region_take_in(region, pages, step, dirty);
        if (run)
            return run;
    }
    return NULL;
}

void *region_take_in(struct region *region, unsigned pages, unsigned step, unsigned *dirty)
{
    unsigned start = run_find(region, pages, step);

    return start < REGION_PAGES ? take_at(region, start, pages, dirty) : NULL;
}

unsigned region_take_all(struct region *region)
{
    return pages_take(region, 0, region->pages);
}

void region_free(struct region *region, unsigned start, unsigned pages)
{
    pages_put(region, start, start + pages, true);
}

void region_free_clean(struct region *region, unsigned start, unsigned pages)
{
    pages_put(region, start, start + pages, false);
}

bool region_extend(struct region *region, unsigned start, unsigned pages, unsigned *dirty)
{
    if (start + pages > REGION_PAGES ||
        bits_find_set(region->used, start, start + pages) < start + pages)
        return false;
    *dirty = pages_take(region, start, start + pages);
    return true;
}

/* -------------------------------------------------------------------------------------- regions */

static size_t region_bytes(const struct region *region)
{
    return region->pages * OS_PAGE_SIZE;
}

/* Returns a sensible size for the node's next region, for a run of `bytes`. */
static size_t sensible_bytes(unsigned node, size_t bytes)
{
    size_t have = arena_bytes(node), like_all = max_size(have, REGION_FIRST);

    if (have < region_small && bytes <= like_all)
        return like_all; /* it may be locked later */
    if (!mapping_is_locked())
        return REGION_SIZE;
    return clamp_size(round_up(have / 2, REGION_FIRST), max_size(bytes, REGION_FIRST), REGION_SIZE);
}

/*
 * The least bytes that the system refused to a region, remembered for a moment. A program that goes
 * on without memory would else ask the system a dozen times for each NULL. The least size is still
 * asked for, so no allocation fails that the system would serve.
 *
 * Both words are atomic and read without a lock. A thread that reads one of them late asks once too
 * often, or makes a small region.
 */
#define REFUSED_NS 1000000
static struct {
    uint64_t bytes, until;
} region_refused;

bool region_was_refused(size_t bytes)
{
    uint64_t least = load_relaxed(&region_refused.bytes);

    return unlikely(least) && least <= bytes && os_clock_ns() < load_relaxed(&region_refused.until);
}

static void note_refusal(size_t bytes)
{
    store_relaxed(&region_refused.until, os_clock_ns() + REFUSED_NS);
    store_relaxed(&region_refused.bytes, (uint64_t)bytes);
}

/* Maps as much of `wanted` bytes as the system allows, at least `least`. Small regions lie close
 * together, so that they need few leaves of the page map. */
static bool region_map(struct region *region, size_t wanted, size_t least, size_t alignment)
{
    for (;;) {
        region->base = mapping_make_on_node(
            wanted,
            wanted == REGION_SIZE ? REGION_SIZE : max_size(alignment, HUGE_MAPPING_ALIGNMENT),
            region->node);
        region->pages = (unsigned)(wanted / OS_PAGE_SIZE);
        if (region->base)
            return true;
        if (wanted == least)
            break;
        wanted = max_size(round_up(wanted / 4, os_page_size), least);
    }
    note_refusal(least);
    return false;
}

/* Returns NULL if there is no memory. */
struct region *region_make(unsigned node, size_t bytes, size_t alignment)
{
    struct region *region = os_meta_alloc(sizeof *region);
    size_t least = max_size(bytes, REGION_LEAST);
    size_t wanted =
        region_was_refused(REGION_FIRST) ? least : max_size(sensible_bytes(node, bytes), least);

    if (!region)
        return NULL;
    region->node = node;
    if (!region_map(region, wanted, least, alignment))
        goto no_pages;
    if (!page_index_prepare(region->base, region_bytes(region)))
        goto no_index;
    if (region_bytes(region) == REGION_SIZE) /* small regions are for small heaps */
        mapping_wish_huge(region->base, REGION_SIZE);
    region->free_pages = region->pages;
    bits_set_range(region->used, region->pages, REGION_PAGES);
    return region;

no_index:
    mapping_unmake(region->base, region_bytes(region));
no_pages:
    os_meta_free(region, sizeof *region);
    return NULL;
}

bool region_unmake(struct region *region)
{
    if (!mapping_unmake(region->base, region_bytes(region)))
        return false;
    advice_free(region);
    os_meta_free(region, sizeof *region);
    return true;
}

bool region_add(struct region *region)
{
    region->longest = 0;
    if (!arena_add(region))
        return false;
    page_index_set_region(region, true);
    set_longest(region, bits_find_set(region->used, 0, REGION_PAGES));
    return true;
}

void region_remove(struct region *region)
{
    set_longest(region, 0);
    arena_remove(region);
    page_index_set_region(region, false);
}

void region_remove_window(struct region *region)
{
    debug_assert(region->free_pages == region->pages);
    working_set_purged(RUNS, region_take_all(region) * OS_PAGE_SIZE);
    region_remove(region);
}

void region_unmake_window(struct region *region)
{
    mapping_unmake(region->base, REGION_SIZE);
    advice_free(region);
    os_meta_free(region, sizeof *region);
}

void region_opened(struct region *region, unsigned pages)
{
    unsigned before = region->pages;

    store_relaxed(&region->pages, before + pages);
    pages_put(region, before, before + pages, false);
}

/* ---------------------------------------------------------------------------------- giving back */

/* Takes the last dirty run of the region below page `end`, at most `pages` long, with the clean
 * free pages in it, because one system call purges all of it. Returns false if there is none. */
static bool run_leaves(struct region *region, unsigned end, unsigned pages, struct leaving_run *run)
{
    unsigned behind = bits_find_set_before(region->dirty, end), first;

    if (!behind)
        return false;
    first = bits_find_set_before(region->used, behind);
    first = bits_find_set(region->dirty, first, behind);
    if (behind - first > pages) /* align to whole pages of the system */
        first = (behind - pages) & ~(unsigned)(os_page_size / OS_PAGE_SIZE - 1);
    *run = (struct leaving_run){.region = region, .start = first, .pages = behind - first};
    run->dirty = pages_take(region, first, behind);
    region->leaving++;
    return true;
}

/* Takes an empty region out as a whole. */
static void region_leaves(struct region *region, struct leaving_run *run)
{
    *run = (struct leaving_run){.region = region, .pages = region->pages, .whole = true};
    region->leaving++;
    run->dirty = pages_take(region, 0, region->pages);
    region_remove(region);
}

static unsigned runs_of_one_leave(struct region *region, unsigned *pages, struct leaving_run *runs,
                                  unsigned count)
{
    unsigned taken = 0, end = REGION_PAGES;

    if (region->free_pages == region->pages && *pages >= region->dirty_pages && !region->window) {
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

unsigned region_runs_leave(unsigned pages, struct leaving_run *runs, unsigned count)
{
    unsigned taken = 0;

    for (unsigned node = 0; node < os_node_count(); node++) {
        unsigned slot = ARENA_FULL;
        struct region *region;

        while (pages && taken < count && (region = arena_find_before(node, &slot, true)))
            taken += runs_of_one_leave(region, &pages, runs + taken, count - taken);
    }
    return taken;
}

bool region_empty_leaves(unsigned node, unsigned *slot, struct leaving_run *run)
{
    struct region *region;

    while ((region = arena_find_before(node, slot, false)))
        if (region->free_pages == region->pages && !region->dirty_pages && !region->window) {
            region_leaves(region, run);
            return true;
        }
    return false;
}

void region_run_return(const struct leaving_run *run, bool clean)
{
    run->region->leaving--;
    pages_put(run->region, run->start, run->start + run->pages, !clean);
}
