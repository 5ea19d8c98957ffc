/* SPDX-License-Identifier: MIT */
/*
 * The page source: runs of pages cut from 4 MiB regions; what is larger is mapped on its own.
 *
 * A region belongs to one node and is one mapping for its whole life (so slabs never splinter the
 * address space into more mappings than vm.max_map_count). Two bitmaps of 1,024 pages: `used`, and
 * `dirty`: not used but perhaps still backed by memory. Dirty pages are reused first come; beyond
 * the retain limit all of them are given back with MADV_DONTNEED, and a region that became empty is
 * unmapped unless it is its node's only empty one.
 *
 * Invariants: used and dirty are disjoint; used_bytes + retained_bytes bounds what is resident; one
 * lock guards everything here. System calls are made under it: they are rare, and it keeps "was
 * given back" and "is used" from crossing.
 */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/list.h"
#include "os/os.h"
#include "posix.h"

#define REGION_SIZE  ((size_t)4 << 20)
#define REGION_PAGES (REGION_SIZE / OS_PAGE_SIZE)
#define RUN_MAX      (REGION_SIZE / 2) /* larger ones are mapped on their own */

struct region {
    struct list link; /* in `regions` */
    char *base;
    unsigned node;
    unsigned free_pages; /* not used: clean or dirty */
    unsigned longest;    /* no free run is longer; an upper bound */
    unsigned dirty_pages;
    uint64_t used[REGION_PAGES / BITS_PER_WORD];
    uint64_t dirty[REGION_PAGES / BITS_PER_WORD];
};

bool (*os_memory_fails)(void);

static struct os_lock lock = OS_LOCK_INIT(OS_RANK_PAGES);
static struct list regions = {&regions, &regions};
static uint64_t used_bytes, used_peak, retained_bytes;
static uint64_t limit_bytes;
static uint64_t retain_limit = 2 << 20;

static bool injected_failure(void)
{
    return unlikely(os_memory_fails) && os_memory_fails();
}

static void *map(size_t bytes)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return pages == MAP_FAILED ? NULL : pages;
}

static void *map_aligned(size_t bytes, size_t alignment)
{
    char *pages, *aligned;
    size_t spare = alignment > OS_PAGE_SIZE ? alignment : 0;

    if (bytes + spare < bytes)
        return NULL;
    pages = map(bytes + spare);
    if (!pages || !spare)
        return pages;
    aligned = (char *)round_up((uintptr_t)pages, alignment);
    if (aligned != pages)
        munmap(pages, (size_t)(aligned - pages));
    if (aligned + bytes != pages + bytes + spare)
        munmap(aligned + bytes, (size_t)(pages + spare - aligned));
    return aligned;
}

/* Ask for memory near the node; a wish only (MPOL_PREFERRED), so a refusal is no failure. */
static void prefer_node(void *pages, size_t bytes, unsigned node)
{
    unsigned long mask = 1ul << node;
    const int preferred = 1;

    if (os_node_count() > 1)
        syscall(SYS_mbind, pages, bytes, preferred, &mask, sizeof mask * 8, 0);
}

/* Whether a region stands at `pages`' 4 MiB boundary: then the pages were cut from it. */
static struct region *region_of(const void *pages)
{
    char *base = (char *)((uintptr_t)pages & ~(REGION_SIZE - 1));
    struct list *item;

    list_for_each(item, &regions)
    {
        struct region *region = list_entry(item, struct region, link);
        if (region->base == base)
            return region;
    }
    return NULL;
}

static struct region *region_make(unsigned node)
{
    struct region *region = os_meta_alloc(sizeof *region);

    if (!region)
        return NULL;
    region->base = map_aligned(REGION_SIZE, REGION_SIZE);
    if (!region->base) {
        os_meta_free(region, sizeof *region);
        return NULL;
    }
    prefer_node(region->base, REGION_SIZE, node);
    region->node = node;
    region->free_pages = region->longest = REGION_PAGES;
    list_add_tail(&regions, &region->link);
    return region;
}

static void region_unmake(struct region *region)
{
    list_remove(&region->link);
    munmap(region->base, REGION_SIZE);
    os_meta_free(region, sizeof *region);
}

/* The first free run of `pages` at a multiple of `step`; REGION_PAGES when there is none. */
static unsigned run_find(struct region *region, unsigned pages, unsigned step)
{
    unsigned start = 0;

    while (start + pages <= REGION_PAGES) {
        unsigned taken = start + pages;

        while (taken > start && !bits_test(region->used, taken - 1))
            taken--;
        if (taken == start)
            return start;
        start = (unsigned)round_up(taken, step); /* page taken - 1 is used: go on behind it */
    }
    return REGION_PAGES;
}

static void run_take(struct region *region, unsigned start, unsigned pages, bool *clean)
{
    for (unsigned page = start; page < start + pages; page++) {
        bits_set(region->used, page);
        if (!bits_test(region->dirty, page))
            continue;
        *clean = false;
        bits_clear(region->dirty, page);
        region->dirty_pages--;
        retained_bytes -= OS_PAGE_SIZE;
    }
    region->free_pages -= pages;
}

static void *run_alloc(unsigned pages, unsigned step, unsigned node, bool *clean)
{
    struct list *item;
    struct region *region;
    unsigned start;

    list_for_each(item, &regions)
    {
        region = list_entry(item, struct region, link);
        if (region->node != node || region->longest < pages)
            continue;
        start = run_find(region, pages, step);
        if (start != REGION_PAGES)
            goto found;
        if (step == 1)
            region->longest = pages - 1;
    }
    region = region_make(node);
    if (!region)
        return NULL;
    start = 0;
found:
    run_take(region, start, pages, clean);
    return region->base + start * OS_PAGE_SIZE;
}

static void run_free(struct region *region, void *run, unsigned pages)
{
    unsigned start = (unsigned)(((char *)run - region->base) / (long)OS_PAGE_SIZE);

    for (unsigned page = start; page < start + pages; page++) {
        bits_clear(region->used, page);
        bits_set(region->dirty, page);
    }
    region->free_pages += pages;
    region->longest = region->free_pages;
    region->dirty_pages += pages;
    retained_bytes += pages * OS_PAGE_SIZE;
}

static void region_purge(struct region *region)
{
    for (unsigned page = 0; region->dirty_pages && page < REGION_PAGES; page++) {
        unsigned start = page;

        while (page < REGION_PAGES && bits_test(region->dirty, page))
            bits_clear(region->dirty, page++);
        if (page == start)
            continue;
        madvise(region->base + start * OS_PAGE_SIZE, (page - start) * OS_PAGE_SIZE, MADV_DONTNEED);
        region->dirty_pages -= page - start;
        retained_bytes -= (page - start) * OS_PAGE_SIZE;
    }
}

/* Gives back every dirty page, and the regions left empty but for `keep` of them. */
static size_t purge_all(unsigned keep)
{
    uint64_t before = retained_bytes;
    struct list *item, *following;

    list_for_each_safe(item, following, &regions)
    {
        struct region *region = list_entry(item, struct region, link);
        region_purge(region);
        if (region->free_pages != REGION_PAGES)
            continue;
        if (keep > 0)
            keep--;
        else
            region_unmake(region);
    }
    return before - retained_bytes;
}

static bool over_limit(size_t bytes)
{
    if (!limit_bytes || used_bytes + retained_bytes + bytes <= limit_bytes)
        return false;
    purge_all(0);
    return used_bytes + bytes > limit_bytes;
}

static void *pages_alloc(size_t bytes, size_t alignment, unsigned node, bool *clean)
{
    void *pages;

    if (over_limit(bytes))
        return NULL;
    if (bytes <= RUN_MAX && alignment <= REGION_SIZE) {
        pages = run_alloc((unsigned)(bytes / OS_PAGE_SIZE), (unsigned)(alignment / OS_PAGE_SIZE),
                          node, clean);
    } else {
        pages = map_aligned(bytes, alignment);
        if (pages)
            prefer_node(pages, bytes, node);
    }
    if (!pages)
        return NULL;
    used_bytes += bytes;
    used_peak = used_bytes > used_peak ? used_bytes : used_peak;
    return pages;
}

void *os_pages_alloc(size_t bytes, size_t alignment, unsigned node, bool *zeroed)
{
    bool clean = true;
    void *pages;

    if (injected_failure())
        return NULL;
    os_lock_take(&lock);
    pages = pages_alloc(bytes, alignment, node, &clean);
    if (!pages) {
        purge_all(0); /* memory that the system lacks may lie in our dirty pages */
        pages = pages_alloc(bytes, alignment, node, &clean);
    }
    os_lock_release(&lock);
    if (zeroed)
        *zeroed = clean;
    return pages;
}

void os_pages_free(void *pages, size_t bytes)
{
    struct region *region;

    os_lock_take(&lock);
    used_bytes -= bytes;
    region = bytes <= RUN_MAX ? region_of(pages) : NULL;
    if (region)
        run_free(region, pages, (unsigned)(bytes / OS_PAGE_SIZE));
    else
        munmap(pages, bytes);
    if (retained_bytes > retain_limit)
        purge_all(1);
    os_lock_release(&lock);
}

size_t os_pages_trim(void)
{
    size_t bytes;

    os_lock_take(&lock);
    bytes = purge_all(0);
    os_lock_release(&lock);
    return bytes;
}

void os_pages_set_limit(uint64_t bytes)
{
    store_relaxed(&limit_bytes, bytes);
}

uint64_t os_pages_limit(void)
{
    return load_relaxed(&limit_bytes);
}

void os_pages_set_retain(uint64_t bytes)
{
    store_relaxed(&retain_limit, bytes);
}

/* --------------------------------------------------------------------------------- metadata */

/*
 * Blocks in steps of 64 bytes, cut from 256 KiB chunks that are never unmapped; freed blocks wait
 * in a list of their size. Larger ones are mapped on their own.
 */
#define META_CHUNK ((size_t)256 << 10)
#define META_STEP  64
#define META_MAX   OS_META_LOCK_FREE

static struct os_lock meta_lock = OS_LOCK_INIT(OS_RANK_META);
static void *meta_free_lists[META_MAX / META_STEP + 1];
static char *meta_next, *meta_end;
static uint64_t meta_bytes;

static void *meta_cut(size_t bytes)
{
    void *block;

    if ((size_t)(meta_end - meta_next) < bytes) {
        char *chunk = map(META_CHUNK);
        if (!chunk)
            return NULL;
        add_relaxed(&meta_bytes, META_CHUNK);
        meta_next = chunk;
        meta_end = chunk + META_CHUNK;
    }
    block = meta_next;
    meta_next += bytes;
    return block;
}

static void *meta_alloc_small(size_t bytes)
{
    void **block;

    os_lock_take(&meta_lock);
    block = meta_free_lists[bytes / META_STEP];
    if (block)
        meta_free_lists[bytes / META_STEP] = *block;
    else
        block = meta_cut(bytes);
    os_lock_release(&meta_lock);
    if (block)
        __builtin_memset(block, 0, bytes);
    return block;
}

void *os_meta_alloc(size_t bytes)
{
    void *block;

    if (injected_failure())
        return NULL;
    bytes = round_up(bytes, META_STEP);
    if (bytes <= META_MAX)
        return meta_alloc_small(bytes);
    bytes = round_up(bytes, OS_PAGE_SIZE);
    block = map(bytes);
    if (block)
        add_relaxed(&meta_bytes, bytes);
    return block;
}

void os_meta_free(void *meta, size_t bytes)
{
    bytes = round_up(bytes, META_STEP);
    if (bytes > META_MAX) {
        bytes = round_up(bytes, OS_PAGE_SIZE);
        munmap(meta, bytes);
        sub_relaxed(&meta_bytes, bytes);
        return;
    }
    os_lock_take(&meta_lock);
    *(void **)meta = meta_free_lists[bytes / META_STEP];
    meta_free_lists[bytes / META_STEP] = meta;
    os_lock_release(&meta_lock);
}

void os_pages_stats(struct os_pages_stats *stats)
{
    os_lock_take(&lock);
    stats->used = used_bytes;
    stats->used_peak = used_peak;
    stats->retained = retained_bytes;
    os_lock_release(&lock);
    stats->metadata = load_relaxed(&meta_bytes);
}

void posix_memory_fork_prepare(void)
{
    os_lock_take_for_fork(&lock);
    os_lock_take_for_fork(&meta_lock);
}

void posix_memory_fork_done(void)
{
    os_lock_release_from_fork(&meta_lock);
    os_lock_release_from_fork(&lock);
}
