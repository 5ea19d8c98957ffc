/* SPDX-License-Identifier: MIT */
/*
 * Runs as the functions of os/os.h use them: takes runs from regions (region.c, arena.c), and adds
 * a region when none has room; grows and shrinks them in place; moves the memory of one that cannot
 * grow to a huge mapping. Accounts for their pages (working_set.c).
 *
 * pages_lock protects `unchecked`, and is taken here unless run.h says otherwise. It is held during
 * no system call. A run belongs to the thread that took it until it is put back.
 */
#include "pages/run.h"

#include "pages/page_source.h"

/* Clean bytes handed out since the last check of the system's limits, protected by pages_lock. */
#define UNCHECKED_MAX ((size_t)4 << 20)
static size_t unchecked;

void run_count(unsigned pages, unsigned dirty)
{
    working_set_took(RUNS, pages * OS_PAGE_SIZE, dirty * OS_PAGE_SIZE);
    unchecked += (pages - dirty) * OS_PAGE_SIZE;
}

static void *run_take_and_count(unsigned node, unsigned pages, unsigned step, bool *clean)
{
    unsigned dirty = 0;
    void *run = region_take(node, pages, step, &dirty);

    if (run)
        run_count(pages, dirty);
    *clean = dirty == 0;
    return run;
}

bool run_append_region(struct region *region)
{
    bool added;

    do {
        os_lock_take(&pages_lock);
        added = region_add(region);
        os_lock_release(&pages_lock);
    } while (!added && arena_prepare(region->node));
    return added;
}

/* Adds a region that has room for a run of `bytes`. */
static bool append_region(unsigned node, size_t bytes, size_t alignment)
{
    struct region *region = region_make(node, bytes, alignment);
    bool added = region && run_append_region(region);

    if (region && !added)
        region_unmake(region);
    return added;
}

/* Returns the bytes to check for before they are touched, or 0 as long as few were handed out
 * clean. Called under the lock. */
size_t run_take_unchecked(void)
{
    size_t bytes = unchecked;

    if (bytes < UNCHECKED_MAX)
        return 0;
    unchecked = 0;
    return bytes;
}

void *run_alloc(size_t bytes, size_t alignment, unsigned node, bool *clean)
{
    for (;;) {
        void *run = NULL;
        size_t check;
        bool fits;

        os_lock_take(&pages_lock);
        fits = working_set_fits(bytes);
        if (fits)
            run = run_take_and_count(node, narrow(unsigned, bytes / OS_PAGE_SIZE),
                                     narrow(unsigned, alignment / OS_PAGE_SIZE), clean);
        check = run_take_unchecked();
        os_lock_release(&pages_lock);
        if (check)
            posix_pressure_check(check);
        if (run || !fits || !append_region(node, bytes, alignment))
            return run;
    }
}

static unsigned page_in_region(const struct region *region, const char *pages)
{
    return narrow(unsigned, (size_t)(pages - region->base) / OS_PAGE_SIZE);
}

/* Grows a run into the free pages after it. A small region may lie in two leaves of the page
 * map. */
bool run_grow(struct region *region, char *run, size_t bytes, size_t wanted, void *owner)
{
    size_t more = wanted - bytes;
    unsigned dirty;
    bool grown;

    if (!os_page_owner_prepare(run, wanted))
        return false;
    os_lock_take(&pages_lock);
    grown = more <= REGION_SIZE && working_set_fits(more) &&
            region_extend(region, page_in_region(region, run + bytes),
                          narrow(unsigned, more / OS_PAGE_SIZE), &dirty);
    if (grown)
        working_set_took(RUNS, more, dirty * OS_PAGE_SIZE);
    os_lock_release(&pages_lock);
    if (grown)
        os_page_owner_resize(run, bytes, run, wanted, owner);
    return grown;
}

void run_put(struct region *region, const char *pages, size_t bytes)
{
    unsigned start = page_in_region(region, pages), count = narrow(unsigned, bytes / OS_PAGE_SIZE);

    if (unlikely(region->advice) && advice_owe(region, start, count))
        return;
    region_free(region, start, count);
    working_set_freed(RUNS, bytes);
}

void run_put_clean(struct region *region, const char *pages, size_t bytes)
{
    unsigned start = page_in_region(region, pages), count = narrow(unsigned, bytes / OS_PAGE_SIZE);

    if (unlikely(region->advice) && advice_owe(region, start, count))
        working_set_took(RUNS, bytes, 0); /* they come back by run_put() */
    else
        region_free_clean(region, start, count);
}

void run_shrink(struct region *region, char *run, size_t bytes, size_t wanted, void *owner)
{
    os_page_owner_resize(run, bytes, run, wanted, owner);
    os_lock_take(&pages_lock);
    run_put(region, run + wanted, bytes - wanted);
    os_lock_release(&pages_lock);
}

/* Moves a run's memory to a huge mapping that has room for `wanted` bytes. Returns NULL with
 * nothing changed if that is impossible. Another thread can get the old addresses as soon as the
 * run is free, so the entries there are cleared before. */
char *run_move_to_huge_mapping(struct region *region, char *run, size_t bytes, size_t wanted,
                               void *owner)
{
    struct huge_mapping *huge = huge_mapping_fresh(wanted, os_page_size, region->node);
    bool lost = false;

    if (!huge)
        return NULL;
    if (!os_page_owner_prepare(huge->base, wanted) ||
        !mapping_move_out(run, bytes, huge->base, &lost)) {
        if (lost)
            huge_mapping_drop(huge, bytes);
        else
            huge_mapping_give_up(huge);
        return NULL;
    }
    os_page_owner_set(run, bytes, NULL);
    huge_mapping_weld(huge, bytes);
    os_page_owner_set(huge->base, wanted, owner);
    os_lock_take(&pages_lock);
    huge->advised = advice_given(region, page_in_region(region, run),
                                 narrow(unsigned, bytes / OS_PAGE_SIZE)); /* it moves, too */
    run_put_clean(region, run, bytes);
    working_set_freed(RUNS, bytes);
    working_set_purged(RUNS, bytes);
    os_lock_release(&pages_lock);
    return huge->base;
}
