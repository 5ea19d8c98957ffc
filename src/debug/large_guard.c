/* SPDX-License-Identifier: MIT */
/*
 * Guard pages around large blocks. Before and behind each block lie pages that may not be touched (the slab's margins). When
 * a block is freed, or (a deferred one) safe, all of its pages become inaccessible, and rest until some more blocks were
 * freed after it. So an overflow, an underflow and a use after free fault, and a second free finds no block. A block of up to
 * KEPT_MOST keeps its memory while it rests, because the system takes thirty times as long to give a page as this file to
 * zero it; a larger one loses it at once. When the system refuses to close pages they stay accessible, and the block does
 * not rest.
 *
 * Without the option guard_large that is done to the first large blocks of a process (option guard_first): so many that are made
 * first have margins, and so many that are freed first rest, of at most FIRST_BYTES together. These rest until memory is short,
 * and have no memory. What that costs is a constant. Their pages are closed by their protection, because mlockall() populates a
 * mapping up to its first mark only. A block that gets another size loses its margins instead of being copied, and one that
 * takes the place of a smaller one gets none.
 *
 * A freed block is closed, and one that has rested is opened, by a page job, since slabs go in the hands of a thread that
 * carries them. Its notes lie in the memory that was the slab's.
 *
 * Locks: one (OS_RANK_DEBUG) for the queue of blocks that rest; no system call is made under it. Reports, which may be made
 * in a signal handler, read the queue without it.
 */
#include "debug/large_guard.h"

#include <string.h>

#include "debug/annotate.h"
#include "debug/page_jobs.h"
#include "mapping.h"

#define REST_BLOCKS 256
#define REST_BYTES  ((size_t)64 << 20) /* of addresses */
#define KEPT_BYTES  ((size_t)4 << 20)  /* of memory */
#define KEPT_MOST   ((size_t)1 << 20)
#define FIRST_BYTES ((size_t)288 << 10) /* pages that are to be faulted in again */
#define FIRST_LEAST ((size_t)36 << 10)  /* of a large block */

struct leaver;

struct rest {
    struct leaver *leaver; /* in the memory that was the slab's */
    char *pages;
    size_t bytes, front, size; /* of all; before the block; of the block */
    size_t kept;               /* bytes that have memory */
    bool first;                /* one of the first blocks */
    bool aside; /* all of its pages are set aside: so is each of the first that rests */
};

/* A block on its way to rest, or back to the page source. */
struct leaver {
    struct page_job job;
    struct rest rest;
    size_t memory;
};
_Static_assert(sizeof(struct leaver) <= sizeof(struct slab), "there is room for it");

static struct os_lock lock = OS_LOCK_INIT(OS_RANK_DEBUG);
static struct rest first_rests[LARGE_GUARD_FIRST_MOST];
static struct rest *rests = first_rests; /* others are made with the option */
static unsigned room = LARGE_GUARD_FIRST_MOST;
static unsigned oldest, count;
static size_t bytes, kept_bytes;

/* Of the first blocks: how many may still rest, and their bytes. */
static unsigned first_left;
static size_t first_bytes_left; /* atomic */

static void start_first(unsigned blocks)
{
    slab_first.extension = EXTENSION_BIT(LARGE_GUARD_EXTENSION);
    store_relaxed(&slab_first.margins, (int32_t)blocks);
    store_relaxed(&slab_first.kept, blocks > 0);
    first_left = blocks;
    first_bytes_left = FIRST_BYTES;
}

void large_guard_start(void)
{
    bool wanted = large_guard_wanted && !annotate_on;
    struct rest *more =
        wanted && room < REST_BLOCKS ? os_meta_alloc(REST_BLOCKS * sizeof *rests) : NULL;

    if (more) {
        rests = more;
        room = REST_BLOCKS;
    }
    if (wanted && room < REST_BLOCKS)
        os_report("option 'guard_large': no memory; large blocks are not guarded");
    slab_margin = wanted && room == REST_BLOCKS ? os_page_size : 0;
    start_first(slab_margin || annotate_on ? 0 : (unsigned)large_guard_first);
}

static bool wants(const struct cache_layout *layout)
{
    return layout->no_cpu_caches && slab_margin;
}

/* No further block is one of the first. */
static void end_first(void)
{
    store_relaxed(&slab_first.margins, 0);
    store_relaxed(&slab_first.kept, false);
}

/* Pages that nobody touches have memory as well, so that the first blocks are as all others. Asked once. */
static bool memory_is_locked(void)
{
    static uint32_t asked; /* atomic */

    if (exchange_relaxed(&asked, 1) || !mapping_is_locked())
        return false;
    end_first();
    return true;
}

static bool made(struct slab *slab)
{
    size_t front = slab_front_margin(slab), behind = slab_back_margin(slab);
    char *back = (char *)slab->pages + slab->bytes - behind;

    if (slab->cache->margin) {
        os_pages_guard(slab->pages, front);
        os_pages_guard(back, behind);
    } else if (!memory_is_locked()) {
        os_pages_protect(slab->pages, front, true);
        os_pages_protect(back, behind, true);
    }
    return true;
}

static bool open_all(struct slab *slab)
{
    return os_pages_protect(slab->pages, slab->bytes, false);
}

/* The one before goes back, the one behind becomes part of the block. Refused, they may be open. */
static bool drop_margins(struct slab *slab)
{
    size_t front = slab_front_margin(slab);

    if (!open_all(slab))
        return false;
    os_page_owner_set(slab->pages, front, NULL);
    if (!os_pages_cut(slab->pages, front)) {
        os_page_owner_set(slab->pages, front, slab);
        return false;
    }
    slab->pages = slab->base;
    slab->bytes -= front;
    slab->margin_pages = 0;
    add_relaxed(&slab->cache->large_shrunk, front);
    return true;
}

/* ------------------------------------------------------------------------------------- resting */

/* If with `more` there are too many; NULL: each is one too many. */
static bool take_oldest(const struct rest *more, struct rest *rest)
{
    bool taken;

    os_lock_take(&lock);
    taken = count && (!more || count == room || bytes + more->bytes > REST_BYTES ||
                      kept_bytes + more->kept > KEPT_BYTES);
    if (taken) {
        *rest = rests[oldest];
        oldest = (oldest + 1) % room;
        count--;
        bytes -= rest->bytes;
        kept_bytes -= rest->kept;
    }
    os_lock_release(&lock);
    return taken;
}

static bool put(const struct rest *rest)
{
    bool fits;

    os_lock_take(&lock);
    fits = count < room;
    if (fits) {
        rests[(oldest + count) % room] = *rest;
        count++;
        bytes += rest->bytes;
        kept_bytes += rest->kept;
    }
    os_lock_release(&lock);
    return fits;
}

static struct leaver *leaver_of(struct page_job *job)
{
    return (struct leaver *)job;
}

/* --------------------------------------------------------------------- back to the page source */

static bool open_block(struct page_job *job)
{
    const struct rest *rest = &leaver_of(job)->rest;

    if (rest->first)
        return os_pages_protect(rest->pages, rest->bytes, false);
    if (rest->kept && !os_pages_protect(rest->pages + rest->front, rest->size, false))
        return false;
    if (rest->kept && zero_on_free)
        memset(rest->pages + rest->front, 0, rest->size);
    return os_pages_unguard(rest->pages, rest->bytes);
}

/* Pages that the system does not open again are lost to the page source. */
static void opened(struct page_job *job, bool done)
{
    struct leaver *leaver = leaver_of(job);
    const struct rest *rest = &leaver->rest;

    if (done && rest->aside)
        os_pages_take_back(rest->pages, rest->bytes);
    else if (done)
        os_pages_free(rest->pages, rest->bytes);
    slab_forget_memory(leaver, leaver->memory);
}

static void give_back(struct leaver *leaver)
{
    page_job_queue(&leaver->job, open_block, opened);
}

/* The oldest are carried meanwhile: neither in the one queue nor in the other. */
static void let_go(const struct rest *more)
{
    struct rest rest;
    bool taken;

    do {
        os_carry_begin();
        taken = take_oldest(more, &rest);
        if (taken)
            give_back(rest.leaver);
        os_carry_end();
    } while (taken);
}

/* ------------------------------------------------------------------------------------- to rest */

static bool close_first(struct rest *rest)
{
    return os_pages_protect(rest->pages, rest->bytes, true) &&
           os_pages_empty(rest->pages, rest->bytes);
}

/* Nobody may touch it any more. False: the system refuses. */
static bool close_block(struct page_job *job)
{
    struct rest *rest = &leaver_of(job)->rest;
    char *block = rest->pages + rest->front;

    if (rest->first)
        return close_first(rest);
    if (rest->size <= KEPT_MOST && os_pages_protect(block, rest->size, true)) {
        rest->kept = rest->size;
        return true;
    }
    if (os_pages_guard(block, rest->size))
        return true;
    if (zero_on_free)
        memset(block, 0, rest->size);
    return false;
}

/* The memory of the first blocks is locked, or there are too many mappings: no further block is one of them. There is room
 * for all that are. */
static void closed(struct page_job *job, bool done)
{
    struct leaver *leaver = leaver_of(job);
    struct rest *rest = &leaver->rest;
    bool may_rest = done && rest->bytes <= REST_BYTES / 4;

    if (rest->first && done) {
        rest->aside = true;
        os_pages_set_aside(rest->bytes);
    } else if (rest->first) {
        end_first();
    } else if (may_rest) {
        let_go(rest);
    }
    if (!may_rest || !put(rest))
        give_back(leaver);
}

/* Whether a freed block of so many bytes is still one of the first. */
static bool take_first(size_t size)
{
    bool taken;

    if (likely(size > load_relaxed(&first_bytes_left)))
        return false;
    os_lock_take(&lock);
    taken = first_left && size <= first_bytes_left;
    if (taken) {
        first_left--;
        store_relaxed(&first_bytes_left, first_bytes_left - size);
    }
    if (!first_left || first_bytes_left < round_up(FIRST_LEAST, os_page_size))
        store_relaxed(&slab_first.kept, false);
    os_lock_release(&lock);
    return taken;
}

static bool keeps_pages(struct slab *slab)
{
    struct leaver leaver = {.rest = {.pages = slab->pages,
                                     .bytes = slab->bytes,
                                     .front = slab_front_margin(slab),
                                     .size = slab_usable_bytes(slab)},
                            .memory = slab_memory(slab)};
    bool all = slab->cache->margin, may_rest;

    leaver.rest.first = !all;
    may_rest = all || take_first(leaver.rest.size);
    if (!may_rest && !slab->margin_pages)
        return false;
    leaver.rest.leaver = (struct leaver *)slab;
    *leaver.rest.leaver = leaver;
    if (may_rest)
        page_job_queue(&leaver.rest.leaver->job, close_block, closed);
    else
        give_back(leaver.rest.leaver);
    return true;
}

static void let_all_go(void)
{
    let_go(NULL);
}

/* ------------------------------------------------------------------------------------- reports */

static const struct rest *rest_at(const char *address)
{
    for (unsigned i = 0; i < room; i++)
        if (address >= rests[i].pages && address < rests[i].pages + rests[i].bytes)
            return &rests[i];
    return NULL;
}

static void explain(const struct slab *slab, const void *pointer)
{
    const struct rest *rest = slab ? NULL : rest_at(pointer);

    if (rest)
        os_report("  it lies in a large block of %zu bytes at %p that was freed", rest->size,
                  (const void *)(rest->pages + rest->front));
}

static void report_live(const struct slab *slab, const char *address)
{
    if (address < slab->base)
        os_report("underflow: access of %p, %zu bytes before the large block %p of %zu bytes",
                  (const void *)address, (size_t)(slab->base - address), (const void *)slab->base,
                  slab_usable_bytes(slab));
    else
        os_report(
            "overflow: access of %p, %zu bytes behind the start of the large block %p of %zu bytes",
            (const void *)address, (size_t)(address - slab->base), (const void *)slab->base,
            slab_usable_bytes(slab));
}

void large_guard_look_at_fault(const struct os_fault *fault)
{
    const struct slab *slab = os_page_owner(fault->address);
    const struct rest *rest = slab ? NULL : rest_at(fault->address);

    if (slab && slab->cache->flags & CACHE_CLOSED)
        os_report("access of %p, an object of no bytes (malloc(0))", fault->address);
    else if (slab && has_large_guard(slab))
        report_live(slab, fault->address);
    else if (rest)
        os_report(
            "use after free: access of %p, in a large block of %zu bytes at %p that was freed",
            fault->address, rest->size, (const void *)(rest->pages + rest->front));
}

const struct slab_extension large_guard_extension = {.wants = wants,
                                                     .made = made,
                                                     .keeps_pages = keeps_pages,
                                                     .drop_margins = drop_margins,
                                                     .explain = explain,
                                                     .pressure = let_all_go};

void large_guard_fork_prepare(void)
{
    os_lock_take_for_fork(&lock);
}

void large_guard_fork_done(void)
{
    os_lock_release_from_fork(&lock);
}
