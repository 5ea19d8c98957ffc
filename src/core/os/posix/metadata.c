/* SPDX-License-Identifier: MIT */
/*
 * Metadata: blocks in steps of 64 bytes, cut from 256 KiB chunks that are never unmapped. Blocks of
 * an even number of steps begin at pairs of cache lines, because they may have parts for each CPU.
 * Freed blocks wait in a list per size. When all blocks of a chunk are free they leave their lists,
 * and the chunk's pages but the first go back to the system; it is cut anew when the chunk in use
 * is full. Larger blocks are mapped on their own and unmapped when freed, but arrays of CPUs stay
 * mapped. Arrays smaller than a page of the system share a page.
 *
 * The first chunk is part of the library, so that the library can start when the system refuses
 * memory: up to some 400 CPUs' arrays fit. It is never free. Larger blocks are cut from its end if
 * they cannot be mapped, and begin pages as if they were.
 *
 * Callers may hold locks, so all of this is mapped by system calls (mapping_make_own).
 */
#include "mapping.h"

#define META_CHUNK ((size_t)256 << 10)
#define META_STEP  64
#define META_MAX   OS_META_LOCK_FREE

/* A free block, in the list of its size. */
struct meta_free {
    struct meta_free *next, **link; /* what points here */
    size_t bytes;
};

/* Begins a chunk, which lies at a multiple of META_CHUNK, except the first. Gaps between blocks are
 * free blocks, so a chunk is all blocks up to `cut`. */
struct meta_chunk {
    struct meta_chunk *next; /* wholly free */
    size_t live;             /* bytes of blocks in use */
    char *cut;               /* what follows is in no block */
};
_Static_assert(sizeof(struct meta_chunk) <= META_STEP, "the first step");

static struct os_lock meta_lock = OS_LOCK_INIT(OS_RANK_META);
static struct meta_free *meta_free_lists[META_MAX / META_STEP + 1];
static struct meta_chunk *meta_chunk, *meta_free_chunks; /* the one in use, or NULL; free ones */
static union {
    struct meta_chunk chunk;
    char bytes[META_CHUNK];
} first_of_meta __attribute__((aligned(OS_PAGE_SIZE)));
static char *first_end_of_meta; /* where its larger blocks begin; NULL: it is not in use yet */
uint64_t metadata_reserved = META_CHUNK;
static uint64_t meta_untouched = META_CHUNK; /* of them; atomic */
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

static bool is_in_first_chunk(const void *meta)
{
    return (uintptr_t)meta - (uintptr_t)&first_of_meta < META_CHUNK;
}

static struct meta_chunk *meta_chunk_of(void *block)
{
    if (is_in_first_chunk(block))
        return &first_of_meta.chunk;
    return (struct meta_chunk *)((uintptr_t)block & ~(META_CHUNK - 1));
}

static void meta_put(void *block, size_t bytes)
{
    struct meta_free *put = block, **list = &meta_free_lists[bytes / META_STEP];

    *put = (struct meta_free){.next = *list, .link = list, .bytes = bytes};
    if (put->next)
        put->next->link = &put->next;
    *list = put;
}

static void meta_take(struct meta_free *taken)
{
    *taken->link = taken->next;
    if (taken->next)
        taken->next->link = taken->link;
}

static char *first_block(struct meta_chunk *chunk)
{
    return (char *)chunk + META_STEP;
}

static struct meta_chunk *chunk_map(void)
{
    char *pages = mapping_make_own(META_CHUNK), *aligned;

    if ((uintptr_t)pages % META_CHUNK == 0)
        return (struct meta_chunk *)pages;
    mapping_unmake_own(pages, META_CHUNK);
    pages = mapping_make_own(2 * META_CHUNK);
    aligned = (char *)round_up((uintptr_t)pages, META_CHUNK);
    if (!pages)
        return NULL;
    if (aligned != pages)
        mapping_unmake_own(pages, (size_t)(aligned - pages));
    mapping_unmake_own(aligned + META_CHUNK, META_CHUNK - (size_t)(aligned - pages));
    return (struct meta_chunk *)aligned;
}

static char *chunk_end(struct meta_chunk *chunk)
{
    return chunk == &first_of_meta.chunk ? first_end_of_meta : (char *)chunk + META_CHUNK;
}

static struct meta_chunk *chunk_get(void)
{
    struct meta_chunk *chunk = meta_free_chunks;

    if (!first_end_of_meta) {
        chunk = &first_of_meta.chunk;
        chunk->live = META_STEP; /* for good */
        first_end_of_meta = first_of_meta.bytes + META_CHUNK;
        os_meta_note_untouched(-META_STEP);
    } else if (chunk) {
        meta_free_chunks = chunk->next;
    } else {
        chunk = chunk_map();
        if (!chunk)
            return NULL;
        add_relaxed(&metadata_reserved, META_CHUNK);
        os_meta_note_untouched((int64_t)META_CHUNK - META_STEP);
    }
    chunk->cut = first_block(chunk);
    return chunk;
}

/* Takes the blocks, which are all free, out of their lists. */
static void chunk_is_free(struct meta_chunk *chunk)
{
    const char *end = (const char *)chunk + META_CHUNK;
    char *purged = (char *)round_up((uintptr_t)first_block(chunk), os_page_size);

    for (char *at = first_block(chunk); at != chunk->cut; at += ((struct meta_free *)at)->bytes)
        meta_take((struct meta_free *)at);
    os_meta_note_untouched(chunk->cut - first_block(chunk));
    mapping_purge_own(purged, (size_t)(end - purged));
    chunk->next = meta_free_chunks;
    meta_free_chunks = chunk;
}

static char *chunk_cut(struct meta_chunk *chunk, size_t bytes)
{
    char *block = chunk->cut;

    chunk->cut += bytes;
    os_meta_note_untouched(-(int64_t)bytes);
    return block;
}

static bool meta_fits(size_t bytes)
{
    return meta_chunk && (size_t)(chunk_end(meta_chunk) - meta_chunk->cut) >= bytes;
}

static bool meta_use_another_chunk(void)
{
    struct meta_chunk *chunk = chunk_get(), *full = meta_chunk;

    if (!chunk)
        return false;
    meta_chunk = chunk;
    if (full && !full->live)
        chunk_is_free(full);
    return true;
}

static void *meta_cut(size_t bytes)
{
    if (!meta_fits(bytes + META_STEP) && !meta_use_another_chunk())
        return NULL;
    if (bytes % CACHE_LINES_APART == 0 && (uintptr_t)meta_chunk->cut % CACHE_LINES_APART)
        meta_put(chunk_cut(meta_chunk, META_STEP), META_STEP);
    return chunk_cut(meta_chunk, bytes);
}

static void *meta_alloc_small(size_t bytes)
{
    void *block;

    os_lock_take(&meta_lock);
    block = meta_free_lists[bytes / META_STEP];
    if (block)
        meta_take(block);
    else
        block = meta_cut(bytes);
    if (block)
        meta_chunk_of(block)->live += bytes;
    os_lock_release(&meta_lock);
    if (block)
        fill_unseen(block, 0, bytes);
    return block;
}

static void meta_free_small(void *block, size_t bytes)
{
    struct meta_chunk *chunk = meta_chunk_of(block);

    os_lock_take(&meta_lock);
    meta_put(block, bytes);
    chunk->live -= bytes;
    if (!chunk->live && chunk != meta_chunk)
        chunk_is_free(chunk);
    os_lock_release(&meta_lock);
}

/* Returns zeroed memory at the end of the first chunk, or NULL if there is no room. Only tries the
 * lock, because signal handlers that interrupted its holder may ask for large blocks. */
static void *meta_alloc_from_first_chunk(size_t bytes)
{
    void *block = NULL;

    if (!os_lock_try(&meta_lock))
        return NULL;
    if (!first_end_of_meta)
        meta_use_another_chunk();
    if ((size_t)(first_end_of_meta - first_of_meta.chunk.cut) >= bytes) {
        block = first_end_of_meta -= bytes;
        os_meta_note_untouched(-(int64_t)bytes);
    }
    os_lock_release(&meta_lock);
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
    if (!block)
        return meta_alloc_from_first_chunk(bytes);
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
        if (unlikely(is_in_first_chunk(meta)))
            return; /* lost; there was no memory once */
        bytes = round_up(bytes, os_page_size);
        mapping_unmake_own(meta, bytes);
        sub_relaxed(&metadata_reserved, bytes);
    } else {
        meta_free_small(meta, bytes);
    }
}

bool os_meta_purge(void *meta, size_t bytes)
{
    bytes = round_up(bytes, os_page_size);
    if (is_in_first_chunk(meta) || !mapping_purge_own(meta, bytes))
        return false;
    os_meta_note_untouched((int64_t)bytes);
    return true;
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
