/* SPDX-License-Identifier: MIT */
/*
 * Guard pages around large blocks. Before and behind each block lie pages that may not be touched (the slab's margins). When
 * a block is freed, or (a deferred one) safe, all of its pages become inaccessible, and rest until some more blocks were
 * freed after it. So an overflow, an underflow and a use after free fault, and a second free finds no block. A block of up to
 * KEPT_MOST keeps its memory while it rests, because the system takes thirty times as long to give a page as this file to
 * zero it; a larger one loses it at once. When the system refuses to close pages they stay accessible, and the block does
 * not rest.
 *
 * Locks: one (OS_RANK_DEBUG) for the queue of blocks that rest; no system call is made under it. Reports, which may be made
 * in a signal handler, read the queue without it.
 */
#include "debug/large_guard.h"

#include <string.h>

#include "debug/annotate.h"

#define REST_BLOCKS 256
#define REST_BYTES  ((size_t)64 << 20) /* of addresses */
#define KEPT_BYTES  ((size_t)4 << 20)  /* of memory */
#define KEPT_MOST   ((size_t)1 << 20)

struct rest {
    char *pages;
    size_t bytes, front, size; /* of all; before the block; of the block */
    size_t kept;               /* bytes that have memory */
};

static struct os_lock lock = OS_LOCK_INIT(OS_RANK_DEBUG);
static struct rest *rests; /* made with the option */
static unsigned oldest, count;
static size_t bytes, kept_bytes;

void large_guard_start(void)
{
    bool wanted = large_guard_wanted && !annotate_on;

    if (wanted && !rests)
        rests = os_meta_alloc(REST_BLOCKS * sizeof *rests);
    if (wanted && !rests)
        os_report("option 'guard_large': no memory; large blocks are not guarded");
    slab_margin = wanted && rests ? OS_PAGE_SIZE : 0;
}

static bool wants(const struct cache_layout *layout)
{
    return layout->no_cpu_caches && slab_margin;
}

static bool made(struct slab *slab)
{
    size_t front = slab_front_margin(slab), margin = slab->cache->margin;

    os_pages_guard(slab->pages, front);
    os_pages_guard((char *)slab->pages + slab->bytes - margin, margin);
    return true;
}

/* ---------------------------------------------------------------------------------------- resting */

/* If with `more` there are too many; NULL: each is one too many. */
static bool take_oldest(const struct rest *more, struct rest *rest)
{
    bool taken;

    os_lock_take(&lock);
    taken = count && (!more || count == REST_BLOCKS || bytes + more->bytes > REST_BYTES ||
                      kept_bytes + more->kept > KEPT_BYTES);
    if (taken) {
        *rest = rests[oldest];
        oldest = (oldest + 1) % REST_BLOCKS;
        count--;
        bytes -= rest->bytes;
        kept_bytes -= rest->kept;
    }
    os_lock_release(&lock);
    return taken;
}

/* Pages that the system does not open again are lost to the page source. */
static void give_back(const struct rest *rest)
{
    char *block = rest->pages + rest->front;

    if (rest->kept && !os_pages_protect(block, rest->size, false))
        return;
    if (rest->kept && zero_on_free)
        memset(block, 0, rest->size);
    if (os_pages_unguard(rest->pages, rest->bytes))
        os_pages_free(rest->pages, rest->bytes);
}

static void let_go(const struct rest *more)
{
    struct rest rest;
    bool taken;

    do {
        os_carry_begin();
        taken = take_oldest(more, &rest);
        if (taken)
            give_back(&rest);
        os_carry_end();
    } while (taken);
}

static bool put(const struct rest *rest)
{
    bool room;

    os_lock_take(&lock);
    room = count < REST_BLOCKS;
    if (room) {
        rests[(oldest + count) % REST_BLOCKS] = *rest;
        count++;
        bytes += rest->bytes;
        kept_bytes += rest->kept;
    }
    os_lock_release(&lock);
    return room;
}

/* Nobody may touch it any more. False: the system refuses. */
static bool close_block(struct rest *rest)
{
    char *block = rest->pages + rest->front;

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

static bool keeps_pages(struct slab *slab)
{
    struct rest rest = {.pages = slab->pages,
                        .bytes = slab->bytes,
                        .front = slab_front_margin(slab),
                        .size = slab_usable_bytes(slab)};
    bool may_rest = close_block(&rest) && rest.bytes <= REST_BYTES / 4;

    if (may_rest)
        let_go(&rest);
    if (!may_rest || !put(&rest))
        give_back(&rest);
    return true;
}

static void let_all_go(void)
{
    let_go(NULL);
}

/* ---------------------------------------------------------------------------------------- reports */

static const struct rest *rest_at(const char *address)
{
    for (unsigned i = 0; rests && i < REST_BLOCKS; i++)
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
