/* SPDX-License-Identifier: MIT */
/*
 * The page source: the functions of os/os.h, made of runs and spans (page_source.h names the parts).
 *
 * Invariant: used + dirty bytes bound what is resident of its pages, and stay within the option
 * limit. Pages are counted as asked for before the system is asked, as used when it has given them,
 * and as dirty until they have been given back.
 */
#include "pages/page_source.h"
#include "pages/pages.h"

/* A span's user may have so much (an eighth) more than it wants that is dirty; else that is cut. */
#define SLACK_SHIFT 3

/* A mapping of its own is not worth less than this: its user better moves to a run. */
#define SPAN_SHRUNK_MIN ((size_t)512 << 10)

/* A run that has grown to more than this, and cannot where it is, becomes a span: its memory moves,
 * and need not be copied, now or when it grows on. */
#define RUN_GROWN_MAX SPAN_ALIGNMENT

/* Clean pages that were handed out since the system's limits were looked at last; pages_lock. */
#define UNCHECKED_MAX ((size_t)4 << 20)
static size_t unchecked;

static void give_back_excess(bool all_of_it)
{
    struct excess excess;
    bool any;

    os_lock_take(&pages_lock);
    any = demand_excess(&excess, all_of_it);
    os_lock_release(&pages_lock);
    if (any)
        give_back(&excess, false);
}

/* ------------------------------------------------------------------------------------------- runs */

void run_count(unsigned pages, unsigned dirty)
{
    demand_took(RUNS, pages * OS_PAGE_SIZE, dirty * OS_PAGE_SIZE);
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

/* For a run of `bytes`. */
static bool region_append(unsigned node, size_t bytes, size_t alignment)
{
    struct region *region = region_make(node, bytes, alignment);
    bool added = region && region_append_made(region);

    if (region && !added)
        region_unmake(region);
    return added;
}

/* Before much of what was handed out clean is touched. Under the lock: what to check for; 0: yet
 * nothing. */
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
        fits = demand_fits(bytes);
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

/* Into the free pages behind it. They are in the region, so the page map has their leaf. */
static bool run_grow(struct region *region, char *run, size_t bytes, size_t wanted, void *owner)
{
    size_t more = wanted - bytes;
    unsigned dirty;
    bool grown;

    os_lock_take(&pages_lock);
    grown = more <= REGION_SIZE && demand_fits(more) &&
            run_extend(region, page_in_region(region, run + bytes), (unsigned)(more / OS_PAGE_SIZE),
                       &dirty);
    if (grown)
        demand_took(RUNS, more, dirty * OS_PAGE_SIZE);
    os_lock_release(&pages_lock);
    if (grown)
        os_page_owner_set(run + bytes, more, owner);
    return grown;
}

static void run_shrink(struct region *region, char *run, size_t bytes, size_t wanted)
{
    os_page_owner_set(run + wanted, bytes - wanted, NULL);
    os_lock_take(&pages_lock);
    run_free(region, page_in_region(region, run + wanted),
             (unsigned)((bytes - wanted) / OS_PAGE_SIZE));
    demand_freed(RUNS, bytes - wanted);
    os_lock_release(&pages_lock);
}

/* ------------------------------------------------------------------------------------------ spans */

/* Under the limit, or false; then the system may be asked for them. */
static bool ask(size_t bytes)
{
    bool fits;

    os_lock_take(&pages_lock);
    fits = demand_ask(bytes);
    os_lock_release(&pages_lock);
    if (fits)
        os_hands_full(); /* until the answer is noted */
    return fits;
}

/* A span of the caller's has, or has not, got the bytes that were asked for. */
static void note_answer(struct span *span, size_t bytes, bool got)
{
    os_lock_take(&pages_lock);
    demand_answered(bytes);
    if (got)
        demand_took(SPANS, bytes, 0);
    if (span)
        index_set_span(span, true);
    os_lock_release(&pages_lock);
    os_hands_empty();
}

/* Used bytes that went straight to the system. */
static void count_back(size_t bytes)
{
    os_lock_take(&pages_lock);
    demand_freed(SPANS, bytes);
    demand_gave_back(SPANS, bytes);
    os_lock_release(&pages_lock);
}

/* A free one that has room, cut to size if much of it is too much. */
static struct span *span_reuse(size_t bytes, size_t alignment, unsigned node, bool *clean)
{
    struct span *span;
    size_t dirty = 0;

    os_lock_take(&pages_lock);
    span = span_take(bytes, alignment, node);
    if (span) {
        dirty = span->bytes;
        if (demand_fits(bytes - min_size(bytes, dirty))) {
            span->bytes = max_size(bytes, dirty);
            demand_took(SPANS, span->bytes, dirty);
            index_set_span(span, true);
        } else {
            span_put(span);
            span = NULL;
        }
    }
    os_lock_release(&pages_lock);
    *clean = dirty == 0;
    if (span && dirty > bytes + (bytes >> SLACK_SHIFT) && span_cut(span, bytes)) {
        span->bytes = bytes;
        count_back(dirty - bytes);
    }
    return span;
}

/* A smaller free one, grown: what it has need not be faulted in again. */
static struct span *span_reuse_smaller(size_t bytes, unsigned node)
{
    struct span *span;
    size_t dirty = 0;
    bool moved;

    os_lock_take(&pages_lock);
    span = demand_fits(bytes) ? span_take_smaller(bytes, node) : NULL;
    if (span) {
        os_hands_full();
        dirty = span->bytes;
        demand_ask(bytes - dirty);
        demand_in_hand(dirty, true);
    }
    os_lock_release(&pages_lock);
    if (!span)
        return NULL;
    moved = span_move(span, bytes, 0, NULL, 0);
    os_lock_take(&pages_lock);
    demand_answered(bytes - dirty);
    demand_in_hand(dirty, false);
    if (moved) {
        span->bytes = bytes;
        demand_took(SPANS, bytes, dirty);
        index_set_span(span, true);
    } else {
        span_put(span);
    }
    os_lock_release(&pages_lock);
    os_hands_empty();
    return moved ? span : NULL;
}

static struct span *span_fresh(size_t bytes, size_t alignment, unsigned node)
{
    struct span *span;

    if (!ask(bytes))
        return NULL;
    posix_pressure_check(bytes);
    span = span_make(bytes, alignment, node);
    note_answer(span, bytes, span != NULL);
    return span;
}

static void *span_alloc(size_t bytes, size_t alignment, unsigned node, bool *clean)
{
    struct span *span = span_reuse(bytes, alignment, node, clean);

    if (!span && alignment <= SPAN_ALIGNMENT) {
        span = span_reuse_smaller(bytes, node);
        *clean = false;
    }
    if (!span) {
        span = span_fresh(bytes, alignment, node);
        *clean = true;
    }
    return span ? span->base : NULL;
}

/* Into what is reserved behind it, or what is free there, or to another place. The span is in the
 * index again when its answer is noted. */
static bool span_make_room(struct span *span, size_t bytes, size_t wanted, void *owner)
{
    if (wanted <= span->mapped || span_reserve(span, wanted))
        return os_page_owner_prepare(span->base, wanted);
    os_lock_take(&pages_lock);
    index_set_span(span, false);
    os_lock_release(&pages_lock);
    return span_move(span, wanted, span_reserve_for(wanted), owner, bytes);
}

static bool span_grow(struct span *span, size_t bytes, size_t wanted, void *owner)
{
    size_t more = wanted - min_size(wanted, span->bytes);
    bool done;

    if (!ask(more))
        return false;
    posix_pressure_check(more);
    done = span_make_room(span, bytes, wanted, owner);
    note_answer(span, more, done);
    if (!done)
        return false;
    span->bytes += more;
    os_page_owner_set(span->base + bytes, wanted - bytes, owner);
    return true;
}

/* A failure to cut leaves the span as it was, with more than its user sees. */
static void span_shrink(struct span *span, size_t bytes, size_t wanted)
{
    size_t before = span->bytes;

    os_page_owner_set(span->base + wanted, bytes - wanted, NULL);
    if (span_cut(span, wanted)) {
        span->bytes = wanted;
        count_back(before - wanted);
    }
}

/* -------------------------------------------------------------------------------- taking, freeing */

/*
 * What came from a run and what follows it are two mappings (mapping_move says why that is bad). So it
 * moves once more, while only its first `bytes` bytes have been used. When that is refused it stays as it
 * is: growing on will copy it.
 */
static void span_weld(struct span *span, size_t bytes)
{
    size_t wanted = span->bytes;

    os_lock_take(&pages_lock);
    index_set_span(span, false);
    os_lock_release(&pages_lock);
    span->bytes = bytes;
    span_move(span, wanted, span_reserve_for(wanted), NULL, 0);
    span->bytes = wanted;
    os_lock_take(&pages_lock);
    index_set_span(span, true);
    os_lock_release(&pages_lock);
}

/* A used span whose first bytes the system has perhaps unmapped: nobody may get it again. */
static void span_drop(struct span *span, size_t bytes)
{
    os_lock_take(&pages_lock);
    index_set_span(span, false);
    os_lock_release(&pages_lock);
    count_back(span->bytes);
    span_lose(span, bytes);
}

/* A run becomes a span that has room for `wanted` bytes: its memory moves there. NULL, with nothing
 * changed, where that cannot be. The old addresses can be another thread's as soon as the run is
 * free, so their entries are cleared before. */
static char *run_move_to_span(struct region *region, char *run, size_t bytes, size_t wanted,
                              void *owner)
{
    struct span *span = span_fresh(wanted, OS_PAGE_SIZE, region->node);
    unsigned start = page_in_region(region, run);
    bool lost = false;

    if (!span)
        return NULL;
    if (!os_page_owner_prepare(span->base, wanted) ||
        !mapping_move_out(run, bytes, span->base, &lost)) {
        if (lost)
            span_drop(span, bytes);
        else
            os_pages_free(span->base, wanted);
        return NULL;
    }
    os_page_owner_set(run, bytes, NULL);
    span_weld(span, bytes);
    os_page_owner_set(span->base, wanted, owner);
    os_lock_take(&pages_lock);
    run_free_clean(region, start, (unsigned)(bytes / OS_PAGE_SIZE));
    demand_freed(RUNS, bytes);
    demand_gave_back(RUNS, bytes);
    os_lock_release(&pages_lock);
    return span->base;
}

static void *pages_alloc(size_t bytes, size_t alignment, unsigned node, bool *clean)
{
    if (bytes <= RUN_MAX && alignment <= REGION_SIZE) {
        /* Spans are made as well of runs that have grown. */
        struct span *span =
            bytes >= SPAN_ALIGNMENT ? span_reuse(bytes, alignment, node, clean) : NULL;

        return span ? span->base : run_alloc(bytes, alignment, node, clean);
    }
    return span_alloc(bytes, alignment, node, clean);
}

void *os_pages_alloc(size_t bytes, size_t alignment, unsigned node, bool *zeroed)
{
    uint64_t given = give_back_ever();
    bool clean = true;
    void *pages;

    if (injected_failure())
        return NULL;
    pages = pages_alloc(bytes, alignment, node, &clean);
    if (!pages) {
        give_back_everything();        /* what the system lacks may lie in our dirty pages */
        if (give_back_ever() != given) /* by this thread or by another */
            pages = pages_alloc(bytes, alignment, node, &clean);
    }
    if (!pages && bytes <= RUN_MAX) /* perhaps there is no room for a region */
        pages = span_alloc(bytes, alignment, node, &clean);
    if (os_pages_decaying())
        give_back_excess(false);
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

    if (unlikely(!place.region && !place.span))
        os_panic("pages %p are not the page source's", pages);
    return place;
}

void os_pages_free(void *pages, size_t bytes)
{
    struct excess excess;
    struct place place;
    bool any;

    os_lock_take(&pages_lock);
    place = place_of(pages);
    if (place.region) {
        run_free(place.region, page_in_region(place.region, pages),
                 (unsigned)(bytes / OS_PAGE_SIZE));
        demand_freed(RUNS, bytes);
    } else {
        index_set_span(place.span, false);
        demand_freed(SPANS, place.span->bytes);
        span_put(place.span);
    }
    any = demand_excess(&excess, false);
    os_lock_release(&pages_lock);
    if (any)
        give_back(&excess, false);
}

/* -------------------------------------------------------------------------------------- resizing */

static void *grow(const struct place *place, void *pages, size_t bytes, size_t wanted, void *owner)
{
    if (place->region) {
        if (run_grow(place->region, pages, bytes, wanted, owner))
            return pages;
        return wanted > RUN_GROWN_MAX ? run_move_to_span(place->region, pages, bytes, wanted, owner)
                                      : NULL;
    }
    return span_grow(place->span, bytes, wanted, owner) ? place->span->base : NULL;
}

void *os_pages_resize(void *pages, size_t bytes, size_t wanted, void *owner)
{
    struct place place;

    if (wanted > bytes && injected_failure())
        return NULL;
    os_lock_take(&pages_lock);
    place = place_of(pages);
    os_lock_release(&pages_lock);
    if (wanted > bytes)
        return grow(&place, pages, bytes, wanted, owner);
    if (place.region)
        run_shrink(place.region, pages, bytes, wanted);
    else if (wanted >= SPAN_SHRUNK_MIN)
        span_shrink(place.span, bytes, wanted);
    else
        return NULL;
    give_back_excess(false);
    return pages;
}

/* ---------------------------------------------------------------------------------- the other calls */

bool os_pages_decay(void)
{
    if (demand_is_due())
        give_back_excess(true);
    return os_pages_decaying();
}

size_t os_pages_trim(void)
{
    return give_back_everything();
}

void os_pages_stats(struct os_pages_stats *stats)
{
    os_lock_take(&pages_lock);
    demand_stats(stats);
    os_lock_release(&pages_lock);
    stats->metadata = metadata_bytes();
}

void pages_fork_prepare(void)
{
    os_lock_take_for_fork(&give_back_lock);
    os_lock_take_for_fork(&pages_lock);
    metadata_fork_prepare();
}

void pages_fork_child(bool whole)
{
    if (whole)
        demand_fork_child();
}

void pages_fork_done(void)
{
    metadata_fork_done();
    os_lock_release_from_fork(&pages_lock);
    os_lock_release_from_fork(&give_back_lock);
}
