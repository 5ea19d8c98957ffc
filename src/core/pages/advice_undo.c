/* SPDX-License-Identifier: MIT */
/*
 * Undoes the advice of freed pages (advice.c) and puts the pages back into circulation. That is
 * work for a thread that holds nothing (os_later), because it calls madvise. One thread at a time
 * does so. A thread that finds another at work goes on: the worker finds its pages, too, because it
 * checks again under the lock before it stops.
 *
 * A fork's child finds the owed pages as they were, and repeats the work, except for a huge mapping
 * that another thread had in hand, which is lost there. A window that ends in that time stays until
 * the run in hand is back, as with purge.c.
 *
 * Pages that had MADV_DONTFORK when the process was forked are not there in the child, and anything
 * may be mapped in their place, by the program, too. So they are lost: no longer owed and never
 * free. Fork's handler in the child looks for them, because nothing can have been mapped since. The
 * call that undoes the advice, or the end of the window, finds those of a fork that took nothing,
 * and of what the forking thread had in hand.
 */
#include "pages/page_source.h"
#include "pages/pages.h"
#include "pages/run.h"

static const void *worker;              /* the thread that undoes, or NULL */
static struct leaving_run undo_in_hand; /* the worker's; its region is NULL if there is none */

/* Returns an address that differs between threads. */
static const void *advice_undo_me(void)
{
    return &os_busy;
}

/* Finds the first owed run from page `start` of the region on. */
static bool owed_find(struct region *region, unsigned start, struct leaving_run *run)
{
    const uint64_t *owed = region->advice->owed;

    run->region = region;
    run->start = bits_find_set(owed, start, REGION_PAGES);
    run->pages = bits_find_clear(owed, run->start, REGION_PAGES) - run->start;
    return run->start < REGION_PAGES;
}

/* What to do with the owed pages from `start` up to `end`. */
typedef void owed_act(struct region *region, unsigned start, unsigned end);

static void owed_no_longer(struct region *region, unsigned start, unsigned end)
{
    struct advice *advice = region->advice;

    bits_clear_range(advice->given, start, end);
    bits_clear_range(advice->owed, start, end);
    advice->owed_pages -= end - start;
    if (!advice->owed_pages)
        list_remove(&advice->link);
}

/* Puts the pages back into circulation. */
static void owed_put(struct region *region, unsigned start, unsigned end)
{
    owed_no_longer(region, start, end);
    run_put(region, region->base + start * OS_PAGE_SIZE, (end - start) * OS_PAGE_SIZE);
}

/* Loses the pages: they stay used, and count as nothing. A window that only waited for them stays
 * as well. */
static void owed_lose(struct region *region, unsigned start, unsigned end)
{
    owed_no_longer(region, start, end);
    working_set_freed(RUNS, (end - start) * OS_PAGE_SIZE);
    working_set_purged(RUNS, (end - start) * OS_PAGE_SIZE);
    region->holed = true;
    region->ends = false;
}

static void owed_lose_missing(struct region *region, unsigned start, unsigned end)
{
    if (!mapping_is_there(region->base + start * OS_PAGE_SIZE, (end - start) * OS_PAGE_SIZE))
        owed_lose(region, start, end);
}

/* Acts on the pages of an owed run, except those in hand. The run may have grown since these were
 * taken. */
static void all_but_hand(const struct leaving_run *run, owed_act *act)
{
    unsigned end = run->start + run->pages;
    unsigned hand = undo_in_hand.region == run->region ? undo_in_hand.start : end;

    if (hand < run->start || hand >= end) {
        act(run->region, run->start, end);
        return;
    }
    if (hand > run->start)
        act(run->region, run->start, hand);
    if (end > hand + undo_in_hand.pages)
        act(run->region, hand + undo_in_hand.pages, end);
}

static void owed_each(struct region *region, owed_act *act)
{
    struct leaving_run run;

    for (unsigned at = 0; region->advice && owed_find(region, at, &run); at = run.start + run.pages)
        all_but_hand(&run, act);
}

/* Asks under the lock, as fork's handler does: that is no function of the program. */
static void owed_end(struct region *region, unsigned start, unsigned end)
{
    bool there =
        !(advice_owing.kinds & MAPPING_DONTFORK) ||
        mapping_is_there(region->base + start * OS_PAGE_SIZE, (end - start) * OS_PAGE_SIZE);

    (there ? owed_put : owed_lose)(region, start, end);
}

void advice_undo_drop(struct region *region)
{
    owed_each(region, owed_end);
}

/* Puts the run in hand back if all of it is `there`. Returns a window that only waited for it,
 * removed, or NULL. */
static struct region *run_back(bool there)
{
    struct region *region = undo_in_hand.region;
    owed_act *act = there ? owed_put : owed_lose;

    undo_in_hand.region = NULL;
    region->leaving--;
    act(region, undo_in_hand.start, undo_in_hand.start + undo_in_hand.pages);
    if (!region->ends || region->leaving)
        return NULL;
    region->ends = false;
    region_remove_window(region);
    return region;
}

/* Called under the lock, which is released for the calls. The pages stay in `owed` during them, so
 * no other thread puts them back. Returns false if there is nothing to do. */
static bool undo_run(void)
{
    const struct advice *advice = list_first(&advice_owing.runs, struct advice, link);
    unsigned kinds = advice_owing.kinds;
    struct region *ended;
    bool there;

    if (!advice)
        return false;
    owed_find(advice->region, 0, &undo_in_hand);
    undo_in_hand.region->leaving++;
    os_lock_release(&pages_lock);
    there = mapping_undo_advice(undo_in_hand.region->base + undo_in_hand.start * OS_PAGE_SIZE,
                                undo_in_hand.pages * OS_PAGE_SIZE, kinds);
    os_lock_take(&pages_lock);
    ended = run_back(there);
    if (ended) {
        os_lock_release(&pages_lock);
        region_unmake_window(ended);
        os_lock_take(&pages_lock);
    }
    return true;
}

/* Loses a huge mapping of which a part is missing. It is not unmapped. */
static void huge_lose(struct huge_mapping *huge)
{
    working_set_purged(HUGE_MAPPINGS, huge->bytes);
    os_meta_free(huge, sizeof *huge);
}

/* Like undo_run(), for a huge mapping. */
static bool undo_huge(void)
{
    struct huge_mapping *huge = list_first(&advice_owing.huge, struct huge_mapping, age);
    unsigned kinds = advice_owing.kinds;
    bool there;

    if (!huge)
        return false;
    list_remove(&huge->age);
    os_hands_full();
    working_set_in_hand(huge->bytes, true);
    os_lock_release(&pages_lock);
    there = mapping_undo_advice(huge->base, huge->mapped, kinds);
    os_lock_take(&pages_lock);
    working_set_in_hand(huge->bytes, false);
    huge->advised = false;
    if (there)
        huge_mapping_put(huge);
    else
        huge_lose(huge);
    os_hands_empty();
    return true;
}

static void undo_owed(void)
{
    os_lock_take(&pages_lock);
    if (!worker) {
        worker = advice_undo_me();
        while (undo_run() || undo_huge())
            ;
        worker = NULL;
    }
    os_lock_release(&pages_lock);
}

void advice_undo_request(void)
{
    if (unlikely(!list_is_empty(&advice_owing.runs) || !list_is_empty(&advice_owing.huge)))
        os_later(OS_LATER_ADVICE, undo_owed);
}

bool advice_undo_pages(void *pages, size_t bytes)
{
    unsigned kinds;

    os_lock_take(&pages_lock);
    kinds = advice_owing.kinds;
    os_lock_release(&pages_lock);
    return mapping_undo_advice(pages, bytes, kinds);
}

static void lose_all_missing(void)
{
    struct list *item, *following;

    list_for_each_safe(item, following, &advice_owing.runs)
    {
        owed_each(list_entry(item, struct advice, link)->region, owed_lose_missing);
    }
    list_for_each_safe(item, following, &advice_owing.huge)
    {
        struct huge_mapping *huge = list_entry(item, struct huge_mapping, age);

        if (mapping_is_there(huge->base, huge->mapped))
            continue;
        list_remove(&huge->age);
        huge_lose(huge);
    }
}

/* A thread that forks inside the undoing goes on with it in the child. The lists are sound only if
 * the fork has taken the lock. */
void advice_undo_fork_child(bool whole)
{
    if (worker != advice_undo_me()) {
        worker = NULL;
        if (undo_in_hand.region)
            undo_in_hand.region->leaving--;
        undo_in_hand.region = NULL;
    }
    if (whole && advice_owing.kinds & MAPPING_DONTFORK)
        lose_all_missing();
}
