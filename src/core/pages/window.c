/* SPDX-License-Identifier: MIT */
/*
 * Windows are address ranges that only one cache's slabs use, so that inlined code can decide by
 * the address alone whether an object belongs to the cache (docs/adr/0050).
 *
 * A window is a region from which only one cache takes runs, in places of one slab each, the lowest
 * first. At first all of the window is reserved and none of it mapped. The used part is opened from
 * the start, doubling like the first regions of a node. In all other respects the pages are like
 * those in other regions: counted under `limit`, dirty when freed, and purged in time. The
 * addresses go back when the cache is destroyed.
 *
 * Invariants, all under pages_lock: a place is live exactly from the note that a slab is in the
 * page map to the note that the slab is about to leave it; all places below `prefix` are live, and
 * the one at `prefix` is not; the words that inlined code reads never cover a place that is not
 * live. Once the cache has initialised the words, only this file writes them. They are read without
 * the lock. That is safe, because a thread that has an object got it by a way that orders the note
 * of the slab before, and at all other places the words are right or cover nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "pages/page_source.h"
#include "pages/run.h"

#define OPENED_FIRST ((size_t)256 << 10)

/* Most slabs beyond the prefix while the prefix is shown, as a part (an eighth) of all slabs of the
 * cache. Slabs outside of the window count, too. With more, the check that an object takes would
 * vary from one object to the next, and the processor would predict it wrong. */
#define BEYOND_SHIFT 3

unsigned windows_max READ_MOSTLY = 1024; /* each is a mapping and some 12 KiB; tests change it */
static unsigned windows;                 /* number of existing windows; atomic */

struct os_window {
    struct region *region;
    struct os_window_words *words;
    unsigned place_pages, places;
    unsigned live, prefix; /* places */
    uint64_t live_places[];
};

static size_t window_bytes(unsigned places)
{
    return sizeof(struct os_window) + bits_words(places) * sizeof(uint64_t);
}

/* --------------------------------------------------------------------------------------- making */

/* Returns whether the process's addresses are limited, because then none are reserved. */
static bool addresses_are_limited(void)
{
    struct rlimit limit;
    int saved_errno = errno;
    bool limited = getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;

    errno = saved_errno;
    return limited;
}

static bool may_make(void)
{
    if (os_node_count() > 1 || injected_failure() || addresses_are_limited() || mapping_is_locked())
        return false;
    if (add_relaxed(&windows, 1) < windows_max)
        return true;
    sub_relaxed(&windows, 1);
    return false;
}

static struct region *space_make(void)
{
    struct region *region = os_meta_alloc(sizeof *region);

    if (!region)
        return NULL;
    region->window = true;
    region->base = mapping_reserve(REGION_SIZE, HUGE_MAPPING_ALIGNMENT);
    if (region->base && page_index_prepare(region->base, REGION_SIZE)) {
        bits_set_range(region->used, 0, REGION_PAGES);
        if (run_append_region(region))
            return region;
    }
    if (region->base)
        mapping_unmake(region->base, REGION_SIZE);
    os_meta_free(region, sizeof *region);
    return NULL;
}

struct os_window *os_window_make(size_t bytes, struct os_window_words *words)
{
    unsigned places = (unsigned)(REGION_SIZE / bytes);
    struct os_window *window;

    if (!may_make())
        return NULL;
    window = os_meta_alloc(window_bytes(places));
    if (window)
        window->region = space_make();
    if (!window || !window->region) {
        if (window)
            os_meta_free(window, window_bytes(places));
        sub_relaxed(&windows, 1);
        return NULL;
    }
    window->words = words;
    window->places = places;
    window->place_pages = (unsigned)(bytes / OS_PAGE_SIZE);
    return window;
}

/* Unmakes a window of which nothing is used. If threads are purging some of its pages, the last of
 * them unmaps the window. If pages are missing, it stays, because other mappings may have their
 * addresses; no run is taken from it any more, and dirty pages are purged in time. */
void os_window_unmake(struct os_window *window)
{
    struct region *region = window->region;

    os_lock_take(&pages_lock);
    debug_assert(!window->live);
    advice_undo_drop(region);
    region->ends = region->leaving > 0 && !region->holed;
    if (region->leaving || region->holed)
        region = NULL;
    else
        region_remove_window(region);
    os_lock_release(&pages_lock);
    if (region)
        region_unmake_window(region);
    os_meta_free(window, window_bytes(window->places));
    sub_relaxed(&windows, 1);
}

/* --------------------------------------------------------------------------------------- places */

/* Opens at least one more place. Two threads may open the same pages; that does no harm, and one of
 * them enters the pages. */
static bool open_more(struct os_window *window)
{
    struct region *region = window->region;
    unsigned before = load_relaxed(&region->pages), more = before;

    if (before == REGION_PAGES || injected_failure())
        return false;
    if (mapping_is_locked())
        more = 0;
    more = (unsigned)max_size(more, max_size(window->place_pages, OPENED_FIRST / OS_PAGE_SIZE));
    more = (unsigned)min_size(round_up(more, window->place_pages), REGION_PAGES - before);
    if (!mapping_open(region->base + before * OS_PAGE_SIZE, more * OS_PAGE_SIZE))
        return false;
    os_lock_take(&pages_lock);
    if (region->pages == before)
        region_opened(region, more);
    os_lock_release(&pages_lock);
    return true;
}

void *os_window_take(struct os_window *window, bool *zeroed)
{
    size_t bytes = window->place_pages * OS_PAGE_SIZE;

    for (;;) {
        void *place = NULL;
        unsigned dirty = 0;
        size_t check;
        bool fits;

        os_lock_take(&pages_lock);
        fits = working_set_fits(bytes);
        if (fits)
            place =
                region_take_in(window->region, window->place_pages, window->place_pages, &dirty);
        if (place)
            run_count(window->place_pages, dirty);
        check = run_take_unchecked();
        os_lock_release(&pages_lock);
        if (check)
            posix_pressure_check(check);
        if (place && zeroed)
            *zeroed = dirty == 0;
        if (place || !fits || !open_more(window))
            return place;
    }
}

/* ---------------------------------------------------------------------------------------- words */

static void show(struct os_window *window, uint64_t slabs)
{
    struct os_window_words *words = window->words;
    uint64_t all = max_size(slabs, window->live), beyond = all - window->prefix;
    uint64_t extent =
        beyond > all >> BEYOND_SHIFT ? 0 : OS_PAGE_SIZE * window->place_pages * window->prefix;

    if (words->extent == extent)
        return;
    /* Store the base first. Before the first store it is OS_WINDOW_NOWHERE, and no address is
     * within any extent from there. */
    store_relaxed(&words->base, (uintptr_t)window->region->base);
    store_release(&words->extent, extent);
}

bool os_window_has(const struct os_window *window, const void *pages)
{
    return (size_t)((const char *)pages - window->region->base) < REGION_SIZE;
}

/* Under pages_lock. */
static void note_place(struct os_window *window, const void *pages, bool live)
{
    size_t at = (size_t)((const char *)pages - window->region->base);
    unsigned place = (unsigned)(at / (window->place_pages * OS_PAGE_SIZE));

    if (live) {
        bits_set(window->live_places, place);
        window->live++;
        if (place == window->prefix)
            window->prefix = bits_find_clear(window->live_places, place, window->places);
    } else {
        bits_clear(window->live_places, place);
        window->live--;
        if (place < window->prefix)
            window->prefix = place;
    }
}

void os_window_note(struct os_window *window, const void *pages, bool live, uint64_t slabs)
{
    os_lock_take(&pages_lock);
    if (os_window_has(window, pages))
        note_place(window, pages, live);
    show(window, slabs);
    os_lock_release(&pages_lock);
}
