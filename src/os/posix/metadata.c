/* SPDX-License-Identifier: MIT */
/*
 * Metadata: blocks in steps of 64 bytes, cut from 256 KiB chunks that are never unmapped. Blocks of
 * an even number of steps begin at pairs of cache lines, because they may have parts for each CPU.
 * Freed blocks wait in a list per size. Larger blocks are mapped on their own and unmapped when
 * freed, but arrays of CPUs stay mapped. Arrays smaller than a page of the system share a page.
 *
 * Callers may hold locks, so all of this is mapped by system calls (mapping_make_own).
 */
#include "mapping.h"

#define META_CHUNK ((size_t)256 << 10)
#define META_STEP  64
#define META_MAX   OS_META_LOCK_FREE

static struct os_lock meta_lock = OS_LOCK_INIT(OS_RANK_META);
static void *meta_free_lists[META_MAX / META_STEP + 1];
static char *meta_next, *meta_end;
uint64_t metadata_reserved;
static uint64_t meta_untouched; /* of them; atomic */
/* Lists of free arrays, by the logarithm of their room. Each array begins with the next one's
 * address. */
static void *free_arrays[64];

void os_meta_note_untouched(int64_t bytes)
{
    add_relaxed(&meta_untouched, (uint64_t)bytes);
}

uint64_t os_meta_touched(void)
{
    uint64_t untouched = load_relaxed(&meta_untouched), all = load_relaxed(&metadata_reserved);

    return all > untouched ? all - untouched : 0;
}

static void *meta_cut(size_t bytes)
{
    void *block;

    if (bytes % CACHE_LINES_APART == 0 && meta_next)
        meta_next += -(uintptr_t)meta_next % CACHE_LINES_APART;
    if (meta_end - meta_next < (ptrdiff_t)bytes) {
        char *chunk = mapping_make_own(META_CHUNK);
        if (!chunk)
            return NULL;
        add_relaxed(&metadata_reserved, META_CHUNK);
        os_meta_note_untouched((int64_t)META_CHUNK);
        meta_next = chunk;
        meta_end = chunk + META_CHUNK;
    }
    block = meta_next;
    meta_next += bytes;
    os_meta_note_untouched(-(int64_t)bytes);
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
        fill_unseen(block, 0, bytes);
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
    bytes = round_up(bytes, os_page_size);
    block = mapping_make_own(bytes);
    if (block)
        add_relaxed(&metadata_reserved, bytes);
    return block;
}

void *os_meta_alloc_as(size_t bytes, os_alloc_flags flags)
{
    (void)flags;
    return os_meta_alloc(bytes);
}

void os_meta_free(void *meta, size_t bytes)
{
    bytes = round_up(bytes, META_STEP);
    if (bytes > META_MAX) {
        bytes = round_up(bytes, os_page_size);
        mapping_unmake_own(meta, bytes);
        sub_relaxed(&metadata_reserved, bytes);
        return;
    }
    os_lock_take(&meta_lock);
    *(void **)meta = meta_free_lists[bytes / META_STEP];
    meta_free_lists[bytes / META_STEP] = meta;
    os_lock_release(&meta_lock);
}

/* ------------------------------------------------------------------------------- arrays of CPUs */

/* Returns the same room for arrays of about the same size, so that one can replace another. */
static size_t arrays_room(size_t bytes)
{
    return round_up_to_power_of_two(bytes);
}

static void **arrays_like(size_t bytes)
{
    return &free_arrays[__builtin_ctzl(arrays_room(bytes))];
}

static bool arrays_share_a_page(size_t bytes)
{
    return arrays_room(bytes) < os_page_size;
}

static size_t arrays_counted(size_t bytes)
{
    return arrays_share_a_page(bytes) ? arrays_room(bytes) : round_up(bytes, os_page_size);
}

static void arrays_keep(void *arrays, size_t bytes)
{
    void **list = arrays_like(bytes);

    os_lock_take(&meta_lock);
    *(void **)arrays = *list;
    *list = arrays;
    os_lock_release(&meta_lock);
}

static void *arrays_reuse(size_t bytes)
{
    void **list = arrays_like(bytes), **arrays;

    os_lock_take(&meta_lock);
    arrays = *list;
    if (arrays)
        *list = *arrays;
    os_lock_release(&meta_lock);
    if (arrays)
        *arrays = NULL;
    return arrays;
}

static void *arrays_make(size_t bytes)
{
    size_t room = arrays_room(bytes), mapped = max_size(room, os_page_size);
    char *arrays = mapping_make_own(mapped);

    for (size_t at = room; arrays && at < mapped; at += room)
        arrays_keep(arrays + at, bytes);
    return arrays;
}

void *os_arrays_alloc(size_t bytes)
{
    void *arrays;

    if (bytes <= META_MAX)
        return os_meta_alloc(bytes);
    if (injected_failure())
        return NULL;
    arrays = arrays_reuse(bytes);
    if (!arrays)
        arrays = arrays_make(bytes);
    if (arrays)
        add_relaxed(&metadata_reserved, arrays_counted(bytes));
    return arrays;
}

/*
 * Purges the arrays, except the page with the list's link, and keeps the mapping. Arrays that share
 * a page are only zeroed. A thread that was interrupted in a restartable sequence restarts it
 * before it touches arrays that another thread has replaced. But if the interruption was a page
 * fault, the kernel serves that fault first, and on unmapped pages it would end the process.
 */
void os_arrays_free(void *arrays, size_t bytes)
{
    if (bytes <= META_MAX) {
        os_meta_free(arrays, bytes);
        return;
    }
    if (arrays_share_a_page(bytes) || !mapping_purge_own(arrays, round_up(bytes, os_page_size)))
        fill_unseen(arrays, 0, bytes);
    sub_relaxed(&metadata_reserved, arrays_counted(bytes));
    arrays_keep(arrays, bytes);
}

/* Maps a table that stays mostly untouched. The bytes are not counted. */
void *metadata_map(size_t bytes)
{
    return injected_failure() ? NULL : mapping_make_own(bytes);
}

uint64_t metadata_bytes(void)
{
    return load_relaxed(&metadata_reserved);
}

void metadata_fork_prepare(void)
{
    os_lock_take_for_fork(&meta_lock);
}

void metadata_fork_done(void)
{
    os_lock_release_from_fork(&meta_lock);
}
