/* SPDX-License-Identifier: MIT */
/*
 * Guard pages around large blocks. The pages before and after each block (the slab's margins) may
 * not be touched. When a block is freed, or safe if deferred, the block too becomes inaccessible,
 * and rests until some more blocks have been freed. So an overflow, an underflow and a use after
 * free fault, and a second free finds no block. A block of up to KEPT_MOST bytes keeps its memory
 * while resting, because the system takes thirty times as long to provide a page as this file takes
 * to zero one; a larger block loses the memory at once. If the system refuses to close pages, they
 * stay accessible and the block does not rest.
 *
 * Without the option guard_large, only the first large blocks of a process are guarded (option
 * guard_first): that number of blocks made first have margins, and that number freed first rest, up
 * to FIRST_BYTES in all. These rest until memory is short, and have no memory, so the cost is
 * constant. Their pages are closed by protection, because mlockall() populates a mapping only up to
 * the first guard marker. A resized block loses the margins instead of being copied, and a block
 * that replaces a smaller one gets none.
 *
 * Page jobs close a freed block, and open a block that has rested, because a slab goes while a
 * thread carries it. The notes of a block lie in the memory that was the slab's.
 *
 * Locks: one (OS_RANK_DEBUG) for the queue of resting blocks; no system call is made under it.
 * Reports, which a signal handler may make, read the queue without the lock.
 */
#include "guard/large_guard.h"

#include <string.h>

#include "fork_part.h"
#include "guard/annotate.h"
#include "guard/page_jobs.h"
#include "mapping.h"
#include "slab/cache.h"

#define REST_BLOCKS 256
#define REST_BYTES  ((size_t)64 << 20) /* limit of addresses at rest */
#define KEPT_BYTES  ((size_t)4 << 20)  /* limit of memory at rest */
#define KEPT_MOST   ((size_t)1 << 20)
#define FIRST_BYTES ((size_t)288 << 10) /* pages that the program will fault in again */
#define FIRST_LEAST ((size_t)36 << 10)  /* least size of a large block */

/* A block on its way to rest, or back to the page source. */
struct leaver {
    struct page_job job;
    struct rest rest;
    size_t memory;
};
_Static_assert(sizeof(struct leaver) <= sizeof(struct slab), "there is room for it");

static struct os_lock large_guard_lock = OS_LOCK_INIT(OS_RANK_DEBUG);
static struct rest first_rests[LARGE_GUARD_FIRST_MOST];
struct rest *large_guard_rests = first_rests; /* replaced by a larger queue with the option */
unsigned large_guard_room = LARGE_GUARD_FIRST_MOST;
static unsigned oldest_block, count;
static size_t guarded_bytes, kept_bytes;

/* Number and bytes of the first blocks that may still rest. */
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

COLD void large_guard_start(void)
{
    bool wanted = large_guard_wanted && !annotate_on;
    struct rest *more = wanted && large_guard_room < REST_BLOCKS
                            ? os_meta_alloc(REST_BLOCKS * sizeof *large_guard_rests)
                            : NULL;

    if (more) {
        large_guard_rests = more;
        large_guard_room = REST_BLOCKS;
    }
    if (wanted && large_guard_room < REST_BLOCKS)
        os_report("option 'guard_large': no memory; large blocks are not guarded");
    slab_margin = wanted && large_guard_room == REST_BLOCKS ? os_page_size : 0;
    start_first(slab_margin || annotate_on ? 0 : narrow(unsigned, large_guard_first));
}

COLD static enum extension_wish large_guard_wants(const struct cache_layout *layout)
{
    return extension_wanted_if(layout->no_cpu_caches && slab_margin);
}

/* Ends the first blocks; no further block is one. */
static void end_first(void)
{
    store_relaxed(&slab_first.margins, 0);
    store_relaxed(&slab_first.kept, false);
}

/* Asks once whether memory is locked. If so, untouched pages have memory too, so no further block
 * is one of the first. */
static bool memory_is_locked(void)
{
    static uint32_t asked; /* atomic */

    if (exchange_relaxed(&asked, 1) || !mapping_is_locked())
        return false;
    end_first();
    return true;
}

static bool large_guard_made(struct slab *slab)
{
    size_t front = slab_front_margin(slab), behind = slab_back_margin(slab);
    char *back = (char *)slab->pages + slab->bytes - behind;

    if (slab->cache->body->margin) {
        os_pages_guard(slab->pages, front);
        os_pages_guard(back, behind);
    } else if (!memory_is_locked()) {
        os_pages_protect(slab->pages, front, true);
        os_pages_protect(back, behind, true);
    }
    return true;
}

/* ------------------------------------------------------------------------------------- resting */

/* Takes the oldest block if the queue, with `more`, would exceed a limit, or in any case if `more`
 * is NULL. */
static bool large_guard_take_oldest(const struct rest *more, struct rest *rest)
{
    bool taken;

    os_lock_take(&large_guard_lock);
    taken =
        count && (!more || count == large_guard_room || guarded_bytes + more->bytes > REST_BYTES ||
                  kept_bytes + more->kept > KEPT_BYTES);
    if (taken) {
        *rest = large_guard_rests[oldest_block];
        oldest_block = (oldest_block + 1) % large_guard_room;
        count--;
        guarded_bytes -= rest->bytes;
        kept_bytes -= rest->kept;
    }
    os_lock_release(&large_guard_lock);
    return taken;
}

static bool large_guard_put(const struct rest *rest)
{
    bool fits;

    os_lock_take(&large_guard_lock);
    fits = count < large_guard_room;
    if (fits) {
        large_guard_rests[(oldest_block + count) % large_guard_room] = *rest;
        count++;
        guarded_bytes += rest->bytes;
        kept_bytes += rest->kept;
    }
    os_lock_release(&large_guard_lock);
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

/* Returns the pages to the page source, which loses pages that the system refuses to open. */
static void large_guard_opened(struct page_job *job, bool done)
{
    struct leaver *leaver = leaver_of(job);
    const struct rest *rest = &leaver->rest;

    if (done && rest->aside)
        os_pages_take_back(rest->pages, rest->bytes);
    else if (done)
        os_pages_free(rest->pages, rest->bytes);
    os_meta_free(leaver, leaver->memory);
}

static void large_guard_give_back(struct leaver *leaver)
{
    page_job_queue(&leaver->job, open_block, large_guard_opened);
}

/* Gives the oldest blocks back. Each is carried on the way, when neither queue has the block. */
static void large_guard_let_go(const struct rest *more)
{
    struct rest rest;
    bool taken;

    do {
        os_in_flight_begin();
        taken = large_guard_take_oldest(more, &rest);
        if (taken)
            large_guard_give_back(rest.leaver);
        os_in_flight_end();
    } while (taken);
}

/* ------------------------------------------------------------------------------------- to rest */

static bool close_first(struct rest *rest)
{
    return os_pages_protect(rest->pages, rest->bytes, true) &&
           os_pages_empty(rest->pages, rest->bytes);
}

/* Closes a freed block. Returns false if the system refuses. */
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

/* Lets a closed block rest, or gives it back. If a first block could not be closed, memory is
 * locked or there are too many mappings, so no further block is a first one. The queue has room for
 * all first blocks. */
static void large_guard_closed(struct page_job *job, bool done)
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
        large_guard_let_go(rest);
    }
    if (!may_rest || !large_guard_put(rest))
        large_guard_give_back(leaver);
}

/* Decides whether a freed block of `size` bytes is one of the first that rest, and counts the
 * block. */
static bool large_guard_take_first(size_t size)
{
    bool taken;

    if (likely(size > load_relaxed(&first_bytes_left)))
        return false;
    os_lock_take(&large_guard_lock);
    taken = first_left && size <= first_bytes_left;
    if (taken) {
        first_left--;
        store_relaxed(&first_bytes_left, first_bytes_left - size);
    }
    if (!first_left || first_bytes_left < round_up(FIRST_LEAST, os_page_size))
        store_relaxed(&slab_first.kept, false);
    os_lock_release(&large_guard_lock);
    return taken;
}

static bool large_guard_keep_pages(struct slab *slab)
{
    struct leaver leaver = {.rest = {.pages = slab->pages,
                                     .bytes = slab->bytes,
                                     .front = slab_front_margin(slab),
                                     .size = slab_usable_bytes(slab)},
                            .memory = slab_memory(slab)};
    bool all = slab->cache->body->margin, may_rest;

    leaver.rest.first = !all;
    may_rest = all || large_guard_take_first(leaver.rest.size);
    if (!may_rest && !slab->margin_pages)
        return false;
    leaver.rest.leaver = (struct leaver *)slab;
    *leaver.rest.leaver = leaver;
    if (may_rest)
        page_job_queue(&leaver.rest.leaver->job, close_block, large_guard_closed);
    else
        large_guard_give_back(leaver.rest.leaver);
    return true;
}

static void let_all_go(void)
{
    large_guard_let_go(NULL);
}

/* ------------------------------------------------------------------------------------- reports */

static const struct rest *rest_at(const char *address)
{
    for (unsigned i = 0; i < large_guard_room; i++)
        if (address >= large_guard_rests[i].pages &&
            address < large_guard_rests[i].pages + large_guard_rests[i].bytes)
            return &large_guard_rests[i];
    return NULL;
}

static void large_guard_explain(const struct slab *slab, const void *pointer)
{
    const struct rest *rest = slab ? NULL : rest_at(pointer);

    if (rest)
        os_report("  it lies in a large block of %zu bytes at %p that was freed", rest->size,
                  (const void *)(rest->pages + rest->front));
}

static void report_live(const struct slab *slab, const char *address)
{
    if (address < slab->base)
        os_report_misuse(
            "underflow: access of %p, %zu bytes before the large block %p of %zu bytes",
            (const void *)address, (size_t)(slab->base - address), (const void *)slab->base,
            slab_usable_bytes(slab));
    else
        os_report_misuse(
            "overflow: access of %p, %zu bytes after the start of the large block %p of %zu bytes",
            (const void *)address, (size_t)(address - slab->base), (const void *)slab->base,
            slab_usable_bytes(slab));
}

void large_guard_look_at_fault(const struct fault *fault)
{
    const struct slab *slab = os_page_owner(fault->address);
    const struct rest *rest = slab ? NULL : rest_at(fault->address);

    if (slab && slab->cache->flags & CACHE_CLOSED)
        os_report_misuse("access of %p, an object of 0 bytes (malloc(0))", fault->address);
    else if (slab && has_large_guard(slab))
        report_live(slab, fault->address);
    else if (rest)
        os_report_misuse(
            "use after free: access of %p, in a large block of %zu bytes at %p that was freed",
            fault->address, rest->size, (const void *)(rest->pages + rest->front));
}

const struct slab_extension large_guard_extension = {.wants = large_guard_wants,
                                                     .made = large_guard_made,
                                                     .keep_pages = large_guard_keep_pages,
                                                     .explain = large_guard_explain,
                                                     .pressure = let_all_go};

static void large_guard_fork_prepare(void)
{
    os_lock_take_for_fork(&large_guard_lock);
}

static void large_guard_fork_done(void)
{
    os_lock_release_from_fork(&large_guard_lock);
}

const struct fork_part large_guard_fork_part = {.order = FORK_LARGE_GUARD,
                                                .name = "large blocks that rest",
                                                .prepare = large_guard_fork_prepare,
                                                .done = large_guard_fork_done};
