/* SPDX-License-Identifier: MIT */
/*
 * Implements the functions of os/os.h with runs and huge mappings (page_source.h names the parts).
 *
 * Invariant: used + dirty bytes bound the resident bytes of the pages, and stay within the option
 * limit. Pages of huge mappings count as asked for before the system is asked, and as used when it
 * has given them; pages of runs count as used when taken. Freed pages count as dirty until purged.
 */
#include "pages/page_source.h"
#include "pages/pages.h"

/* Most excess (an eighth) that may be dirty in a huge mapping; more is cut off. */
#define SLACK_SHIFT 3

/* Least bytes worth a separate mapping; below this, the user better moves to a run. */
#define HUGE_MAPPING_SHRUNK_MIN ((size_t)512 << 10)

/* Largest run that stays a run when it cannot grow in place. A larger one becomes a huge mapping,
 * so its memory moves and need not be copied, now or later. */
#define RUN_GROWN_MAX HUGE_MAPPING_ALIGNMENT

/* Clean bytes handed out since the last check of the system's limits, protected by pages_lock. */
#define UNCHECKED_MAX ((size_t)4 << 20)
static size_t unchecked;

static void purge_excess(bool all_of_it)
{
    struct excess excess;
    bool any;

    os_lock_take(&pages_lock);
    any = working_set_excess(&excess, all_of_it);
    os_lock_release(&pages_lock);
    if (any)
        purge(&excess);
}

/* ----------------------------------------------------------------------------------------- runs */

void run_count(unsigned pages, unsigned dirty)
{
    working_set_took(RUNS, pages * OS_PAGE_SIZE, dirty * OS_PAGE_SIZE);
    unchecked += (pages - dirty) * OS_PAGE_SIZE;
}

static void *run_take_and_count(unsigned node, unsigned pages, unsigned step, bool *clean)
{
    unsigned dirty = 0;
    void *run = run_take(node, pages, step, &dirty);

    if (run)
        run_count(pages, dirty);
    *clean = dirty == 0;
    return run;
}

bool region_append_made(struct region *region)
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
static bool region_append(unsigned node, size_t bytes, size_t alignment)
{
    struct region *region = region_make(node, bytes, alignment);
    bool added = region && region_append_made(region);

    if (region && !added)
        region_unmake(region);
    return added;
}

/* Returns the bytes to check for before they are touched, or 0 as long as few were handed out
 * clean. Called under the lock. */
size_t unchecked_take(void)
{
    size_t bytes = unchecked;

    if (bytes < UNCHECKED_MAX)
        return 0;
    unchecked = 0;
    return bytes;
}

static void *run_alloc(size_t bytes, size_t alignment, unsigned node, bool *clean)
{
    for (;;) {
        void *run = NULL;
        size_t check;
        bool fits;

        os_lock_take(&pages_lock);
        fits = working_set_fits(bytes);
        if (fits)
            run = run_take_and_count(node, (unsigned)(bytes / OS_PAGE_SIZE),
                                     (unsigned)(alignment / OS_PAGE_SIZE), clean);
        check = unchecked_take();
        os_lock_release(&pages_lock);
        if (check)
            posix_pressure_check(check);
        if (run || !fits || !region_append(node, bytes, alignment))
            return run;
    }
}

static unsigned page_in_region(const struct region *region, const char *pages)
{
    return (unsigned)((size_t)(pages - region->base) / OS_PAGE_SIZE);
}

/* Grows a run into the free pages after it. They are in the region, so the page map has their
 * leaf. */
static bool run_grow(struct region *region, char *run, size_t bytes, size_t wanted, void *owner)
{
    size_t more = wanted - bytes;
    unsigned dirty;
    bool grown;

    os_lock_take(&pages_lock);
    grown = more <= REGION_SIZE && working_set_fits(more) &&
            run_extend(region, page_in_region(region, run + bytes), (unsigned)(more / OS_PAGE_SIZE),
                       &dirty);
    if (grown)
        working_set_took(RUNS, more, dirty * OS_PAGE_SIZE);
    os_lock_release(&pages_lock);
    if (grown)
        os_page_owner_set(run + bytes, more, owner);
    return grown;
}

static void run_put(struct region *region, const char *pages, size_t bytes)
{
    run_free(region, page_in_region(region, pages), (unsigned)(bytes / OS_PAGE_SIZE));
    working_set_freed(RUNS, bytes);
}

static void run_shrink(struct region *region, char *run, size_t bytes, size_t wanted)
{
    os_page_owner_set(run + wanted, bytes - wanted, NULL);
    os_lock_take(&pages_lock);
    run_put(region, run + wanted, bytes - wanted);
    os_lock_release(&pages_lock);
}

/* -------------------------------------------------------------------------------- huge mappings */

/* Counts `bytes` as asked for, after which the system may be asked. Returns false if they exceed
 * the limit. */
static bool ask(size_t bytes)
{
    bool fits;

    os_lock_take(&pages_lock);
    fits = working_set_ask(bytes);
    os_lock_release(&pages_lock);
    if (fits)
        os_hands_full(); /* until the answer is noted */
    return fits;
}

/* Records whether the system gave the bytes that the caller asked for, for `huge`. */
static void note_answer(struct huge_mapping *huge, size_t bytes, bool got)
{
    os_lock_take(&pages_lock);
    working_set_answered(bytes);
    if (got)
        working_set_took(HUGE_MAPPINGS, bytes, 0);
    if (huge)
        index_set_huge_mapping(huge, true);
    os_lock_release(&pages_lock);
    os_hands_empty();
}

/* Counts used bytes that went straight to the system. */
static void count_back(size_t bytes)
{
    os_lock_take(&pages_lock);
    working_set_freed(HUGE_MAPPINGS, bytes);
    working_set_purged(HUGE_MAPPINGS, bytes);
    os_lock_release(&pages_lock);
}

/* Takes a free huge mapping that has room, and cuts the excess if that is large. */
static struct huge_mapping *huge_mapping_reuse(size_t bytes, size_t alignment, unsigned node,
                                               bool *clean)
{
    struct huge_mapping *huge;
    size_t dirty = 0;

    os_lock_take(&pages_lock);
    huge = huge_mapping_take(bytes, alignment, node);
    if (huge) {
        dirty = huge->bytes;
        if (working_set_fits(bytes - min_size(bytes, dirty))) {
            huge->bytes = max_size(bytes, dirty);
            working_set_took(HUGE_MAPPINGS, huge->bytes, dirty);
            index_set_huge_mapping(huge, true);
        } else {
            huge_mapping_put(huge);
            huge = NULL;
        }
    }
    os_lock_release(&pages_lock);
    *clean = dirty == 0;
    if (huge && dirty > bytes + (bytes >> SLACK_SHIFT) && huge_mapping_cut(huge, bytes)) {
        huge->bytes = bytes;
        count_back(dirty - bytes);
    }
    return huge;
}

/* Takes a smaller free huge mapping and grows it, so that the dirty pages need not be faulted in
 * again. */
static struct huge_mapping *huge_mapping_reuse_smaller(size_t bytes, unsigned node)
{
    struct huge_mapping *huge;
    size_t dirty = 0;
    bool moved;

    os_lock_take(&pages_lock);
    huge = working_set_fits(bytes) ? huge_mapping_take_smaller(bytes, node) : NULL;
    if (huge) {
        os_hands_full();
        dirty = huge->bytes;
        working_set_ask(bytes - dirty);
        working_set_in_hand(dirty, true);
    }
    os_lock_release(&pages_lock);
    if (!huge)
        return NULL;
    moved = huge_mapping_move(huge, bytes, 0, NULL, 0);
    os_lock_take(&pages_lock);
    working_set_answered(bytes - dirty);
    working_set_in_hand(dirty, false);
    if (moved) {
        huge->bytes = bytes;
        working_set_took(HUGE_MAPPINGS, bytes, dirty);
        index_set_huge_mapping(huge, true);
    } else {
        huge_mapping_put(huge);
    }
    os_lock_release(&pages_lock);
    os_hands_empty();
    return moved ? huge : NULL;
}

static struct huge_mapping *huge_mapping_fresh(size_t bytes, size_t alignment, unsigned node)
{
    struct huge_mapping *huge;

    if (!ask(bytes))
        return NULL;
    posix_pressure_check(bytes);
    huge = huge_mapping_make(bytes, alignment, node);
    note_answer(huge, bytes, huge != NULL);
    return huge;
}

static void *huge_mapping_alloc(size_t bytes, size_t alignment, unsigned node, bool *clean)
{
    struct huge_mapping *huge = huge_mapping_reuse(bytes, alignment, node, clean);

    if (!huge && alignment <= HUGE_MAPPING_ALIGNMENT) {
        huge = huge_mapping_reuse_smaller(bytes, node);
        *clean = false;
    }
    if (!huge) {
        huge = huge_mapping_fresh(bytes, alignment, node);
        *clean = true;
    }
    return huge ? huge->base : NULL;
}

/* Makes room in the reserve after the huge mapping, or in free addresses there, or moves the
 * mapping, which note_answer() enters into the index again. */
static bool huge_mapping_make_room(struct huge_mapping *huge, size_t bytes, size_t wanted,
                                   void *owner)
{
    if (wanted <= huge->mapped || huge_mapping_reserve(huge, wanted))
        return os_page_owner_prepare(huge->base, wanted);
    os_lock_take(&pages_lock);
    index_set_huge_mapping(huge, false);
    os_lock_release(&pages_lock);
    return huge_mapping_move(huge, wanted, huge_mapping_reserve_for(wanted), owner, bytes);
}

static bool huge_mapping_grow(struct huge_mapping *huge, size_t bytes, size_t wanted, void *owner)
{
    size_t more = wanted - min_size(wanted, huge->bytes);
    bool done;

    if (!ask(more))
        return false;
    posix_pressure_check(more);
    done = huge_mapping_make_room(huge, bytes, wanted, owner);
    note_answer(huge, more, done);
    if (!done)
        return false;
    huge->bytes += more;
    os_page_owner_set(huge->base + bytes, wanted - bytes, owner);
    return true;
}

/* Shrinks a huge mapping. A failure to cut leaves the mapping as it was, with more pages than the
 * user sees. */
static void huge_mapping_shrink(struct huge_mapping *huge, size_t bytes, size_t wanted)
{
    size_t before = huge->bytes;

    os_page_owner_set(huge->base + wanted, bytes - wanted, NULL);
    if (huge_mapping_cut(huge, wanted)) {
        huge->bytes = wanted;
        count_back(before - wanted);
    }
}

/* ------------------------------------------------------------------------------ taking, freeing */

/*
 * Joins the memory that came from a run and the memory after it, which are two mappings
 * (mapping_move says why that is bad), by one more move while only the first `bytes` bytes have
 * been used. After a refusal the huge mapping stays as it is, and growing on will copy it.
 */
static void huge_mapping_weld(struct huge_mapping *huge, size_t bytes)
{
    size_t wanted = huge->bytes;

    os_lock_take(&pages_lock);
    index_set_huge_mapping(huge, false);
    os_lock_release(&pages_lock);
    huge->bytes = bytes;
    huge_mapping_move(huge, wanted, huge_mapping_reserve_for(wanted), NULL, 0);
    huge->bytes = wanted;
    os_lock_take(&pages_lock);
    index_set_huge_mapping(huge, true);
    os_lock_release(&pages_lock);
}

/* Drops a used huge mapping whose first bytes may be unmapped, so that it is never handed out
 * again. */
static void huge_mapping_drop(struct huge_mapping *huge, size_t bytes)
{
    os_lock_take(&pages_lock);
    index_set_huge_mapping(huge, false);
    os_lock_release(&pages_lock);
    count_back(huge->bytes);
    huge_mapping_lose(huge, bytes);
}

/* Moves a run's memory to a huge mapping that has room for `wanted` bytes. Returns NULL with
 * nothing changed if that is impossible. Another thread can get the old addresses as soon as the
 * run is free, so the entries there are cleared before. */
static char *run_move_to_huge_mapping(struct region *region, char *run, size_t bytes, size_t wanted,
                                      void *owner)
{
    struct huge_mapping *huge = huge_mapping_fresh(wanted, os_page_size, region->node);
    unsigned start = page_in_region(region, run);
    bool lost = false;

    if (!huge)
        return NULL;
    if (!os_page_owner_prepare(huge->base, wanted) ||
        !mapping_move_out(run, bytes, huge->base, &lost)) {
        if (lost)
            huge_mapping_drop(huge, bytes);
        else
            os_pages_free(huge->base, wanted);
        return NULL;
    }
    os_page_owner_set(run, bytes, NULL);
    huge_mapping_weld(huge, bytes);
    os_page_owner_set(huge->base, wanted, owner);
    os_lock_take(&pages_lock);
    run_free_clean(region, start, (unsigned)(bytes / OS_PAGE_SIZE));
    working_set_freed(RUNS, bytes);
    working_set_purged(RUNS, bytes);
    os_lock_release(&pages_lock);
    return huge->base;
}

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

void *os_pages_alloc(size_t bytes, size_t alignment, unsigned node, bool *zeroed)
{
    uint64_t given = purged_ever();
    bool clean = true;
    void *pages;

    debug_assert(are_whole(NULL, bytes));
    if (injected_failure())
        return NULL;
    pages = pages_alloc(bytes, alignment, node, &clean);
    if (!pages) {
        purge_everything();         /* our dirty pages may be the memory that the system lacks */
        if (purged_ever() != given) /* by this thread or another */
            pages = pages_alloc(bytes, alignment, node, &clean);
    }
    if (!pages && bytes <= RUN_MAX) /* there may be no room for a region */
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

static struct place place_of(const void *pages)
{
    struct place place = index_find(pages);

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
    place = place_of(pages);
    debug_assert(are_whole(pages, bytes));
    if (place.region) {
        run_put(place.region, pages, bytes);
    } else {
        index_set_huge_mapping(place.huge, false);
        working_set_freed(HUGE_MAPPINGS, place.huge->bytes);
        huge_mapping_put(place.huge);
    }
    any = working_set_excess(&excess, false);
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
    place = place_of(pages);
    if (place.region)
        run_put(place.region, pages, bytes);
    os_lock_release(&pages_lock);
    return place.region != NULL;
}

/* Purges pages of a run. Returns false for huge mappings and for locked memory. */
bool os_pages_empty(void *pages, size_t bytes)
{
    struct place place;

    os_lock_take(&pages_lock);
    place = place_of(pages);
    os_lock_release(&pages_lock);
    return place.region && mapping_purge(pages, bytes);
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
    place = place_of(pages);
    run_free_clean(place.region, page_in_region(place.region, pages),
                   (unsigned)(bytes / OS_PAGE_SIZE));
    os_lock_release(&pages_lock);
}

/* ------------------------------------------------------------------------------------- resizing */

static void *grow(const struct place *place, void *pages, size_t bytes, size_t wanted, void *owner)
{
    if (place->region) {
        if (run_grow(place->region, pages, bytes, wanted, owner))
            return pages;
        return wanted > RUN_GROWN_MAX
                   ? run_move_to_huge_mapping(place->region, pages, bytes, wanted, owner)
                   : NULL;
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
    place = place_of(pages);
    os_lock_release(&pages_lock);
    if (wanted > bytes)
        return grow(&place, pages, bytes, wanted, owner);
    if (place.region)
        run_shrink(place.region, pages, bytes, wanted);
    else if (wanted >= HUGE_MAPPING_SHRUNK_MIN)
        huge_mapping_shrink(place.huge, bytes, wanted);
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

void pages_words(struct pages_words *words)
{
    working_set_words(words);
    words->metadata = metadata_word();
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
    purge_fork_child(whole);
}

void pages_fork_done(void)
{
    metadata_fork_done();
    os_lock_release_from_fork(&pages_lock);
}
