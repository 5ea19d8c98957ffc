/* SPDX-License-Identifier: MIT */
/*
 * Implements the functions of os/os.h with runs (run.c) and huge mappings (huge_mapping.c);
 * page_source.h names all parts.
 *
 * Invariant: used + dirty bytes bound the resident bytes of the pages, and stay within the option
 * limit. Pages of huge mappings count as asked for before the system is asked, and as used when it
 * has given them; pages of runs count as used when taken. Freed pages count as dirty until purged.
 */
#include "pages/page_source.h"
#include "pages/pages.h"
#include "pages/run.h"

/* Least bytes worth a separate mapping; below this, the user better moves to a run. */
#define HUGE_MAPPING_SHRUNK_MIN ((size_t)512 << 10)

/* Largest run that stays a run when it cannot grow in place. A larger one becomes a huge mapping,
 * so its memory moves and need not be copied, now or later. */
#define RUN_GROWN_MAX HUGE_MAPPING_ALIGNMENT

/* The first; one after this thread has purged everything; one after it has waited for others. */
#define TRIES 3

static void purge_excess(bool all_of_it)
{
    struct excess excess;
    bool any;

    os_lock_take(&pages_lock);
    any = working_set_excess(&excess, all_of_it);
    advice_undo_request();
    os_lock_release(&pages_lock);
    if (any)
        purge(&excess);
}

/* ------------------------------------------------------------------------------ taking, freeing */

static void *pages_alloc(size_t bytes, size_t alignment, unsigned node, bool *clean)
{
    if (bytes <= RUN_MAX && alignment <= REGION_SIZE) {
        /* Runs that have grown leave free huge mappings of such sizes too. */
        struct huge_mapping *huge = bytes >= HUGE_MAPPING_ALIGNMENT
                                        ? huge_mapping_reuse(bytes, alignment, node, clean)
                                        : NULL;

        return huge ? huge->base : run_alloc(bytes, alignment, node, clean);
    }
    return huge_mapping_alloc(bytes, alignment, node, clean);
}

/* Purges everything, because our dirty pages may be the memory that the system lacks. Returns
 * whether this thread or another has purged anything since the sum was `given`. */
static bool pages_came_back(uint64_t given)
{
    purge_everything();
    return purged_ever() != given;
}

void *os_pages_alloc(size_t bytes, size_t alignment, unsigned node, bool *zeroed)
{
    unsigned tries = 0;
    bool clean = true;
    uint64_t given;
    void *pages;

    debug_assert(are_whole(NULL, bytes));
    if (injected_failure())
        return NULL;
    do {
        given = purged_ever();
        pages = pages_alloc(bytes, alignment, node, &clean);
    } while (!pages && ++tries < TRIES && pages_came_back(given));
    /* there may be no room for a region; what the system refused, it would refuse again */
    if (!pages && bytes <= RUN_MAX && !region_was_refused(max_size(bytes, HUGE_MAPPING_ALIGNMENT)))
        pages = huge_mapping_alloc(bytes, alignment, node, &clean);
    if (os_pages_decaying())
        purge_excess(false);
    if (zeroed)
        *zeroed = clean;
    return pages;
}

void *os_pages_alloc_as(size_t bytes, size_t alignment, unsigned node, bool *zeroed,
                        os_alloc_flags flags)
{
    (void)flags;
    return os_pages_alloc(bytes, alignment, node, zeroed);
}

static struct place pages_place_of(const void *pages)
{
    struct place place = page_index_find(pages);

    if (unlikely(!place.region && !place.huge))
        os_panic("pages %p do not belong to the page source", pages);
    return place;
}

void os_pages_free(void *pages, size_t bytes)
{
    struct excess excess;
    struct place place;
    bool any;

    os_lock_take(&pages_lock);
    place = pages_place_of(pages);
    debug_assert(are_whole(pages, bytes));
    if (place.region) {
        run_put(place.region, pages, bytes);
    } else {
        huge_mapping_free(place.huge);
    }
    any = working_set_excess(&excess, false);
    advice_undo_request();
    os_lock_release(&pages_lock);
    if (any)
        purge(&excess);
}

/* Frees the end of a run. Returns false for a huge mapping, which is one piece. */
bool os_pages_cut(void *pages, size_t bytes)
{
    struct place place;

    debug_assert(are_whole(pages, bytes));
    os_lock_take(&pages_lock);
    place = pages_place_of(pages);
    if (place.region)
        run_put(place.region, pages, bytes);
    advice_undo_request();
    os_lock_release(&pages_lock);
    return place.region != NULL;
}

/* Returns whether the pages are of a run, and not of a huge mapping. */
bool os_pages_may_empty(const void *pages)
{
    struct place place;

    os_lock_take(&pages_lock);
    place = pages_place_of(pages);
    os_lock_release(&pages_lock);
    return place.region != NULL;
}

/* Purges pages of a run. Returns false for huge mappings and for locked memory. */
bool os_pages_empty(void *pages, size_t bytes)
{
    return os_pages_may_empty(pages) && mapping_purge(pages, bytes);
}

void os_pages_set_aside(size_t bytes)
{
    os_lock_take(&pages_lock);
    working_set_freed(RUNS, bytes);
    working_set_purged(RUNS, bytes);
    os_lock_release(&pages_lock);
}

void os_pages_take_back(void *pages, size_t bytes)
{
    struct place place;

    debug_assert(are_whole(pages, bytes));
    os_lock_take(&pages_lock);
    place = pages_place_of(pages);
    run_put_clean(place.region, pages, bytes);
    advice_undo_request();
    os_lock_release(&pages_lock);
}

/* ------------------------------------------------------------------------------------- resizing */

static void *pages_grow(const struct place *place, void *pages, size_t bytes, size_t wanted,
                        void *owner)
{
    void *moved;

    if (place->region) {
        if (run_grow(place->region, pages, bytes, wanted, owner))
            return pages;
        if (wanted <= RUN_GROWN_MAX)
            return NULL;
        moved = run_move_to_huge_mapping(place->region, pages, bytes, wanted, owner);
        purge_excess(false);
        return moved;
    }
    return huge_mapping_grow(place->huge, bytes, wanted, owner) ? place->huge->base : NULL;
}

void *os_pages_resize(void *pages, size_t bytes, size_t wanted, void *owner)
{
    struct place place;

    debug_assert(are_whole(pages, bytes | wanted));
    if (wanted > bytes && injected_failure())
        return NULL;
    os_lock_take(&pages_lock);
    place = pages_place_of(pages);
    os_lock_release(&pages_lock);
    if (wanted > bytes)
        return pages_grow(&place, pages, bytes, wanted, owner);
    if (place.region)
        run_shrink(place.region, pages, bytes, wanted, owner);
    else if (wanted >= HUGE_MAPPING_SHRUNK_MIN && os_page_owner_prepare(pages, wanted))
        huge_mapping_shrink(place.huge, bytes, wanted, owner);
    else
        return NULL;
    purge_excess(false);
    return pages;
}

/* ------------------------------------------------------------------------------ the other calls */

bool os_pages_decay(void)
{
    os_later_check();
    if (working_set_is_due())
        purge_excess(true);
    return os_pages_decaying();
}

size_t os_pages_trim(void)
{
    os_later_check();
    return purge_everything();
}

void os_pages_stats(struct os_pages_stats *stats)
{
    os_lock_take(&pages_lock);
    working_set_stats(stats);
    os_lock_release(&pages_lock);
    stats->metadata = metadata_bytes();
}

bool pages_try_stats(struct os_pages_stats *stats)
{
    if (!os_lock_try(&pages_lock))
        return false;
    working_set_stats(stats);
    os_lock_release(&pages_lock);
    stats->metadata = metadata_bytes();
    return true;
}

void pages_fork_prepare(void)
{
    os_lock_take_for_fork(&pages_lock);
    metadata_fork_prepare();
}

void pages_fork_child(bool whole)
{
    if (whole)
        working_set_fork_child();
    advice_undo_fork_child(whole);
    purge_fork_child(whole);
}

void pages_fork_done(void)
{
    metadata_fork_done();
    os_lock_release_from_fork(&pages_lock);
}
