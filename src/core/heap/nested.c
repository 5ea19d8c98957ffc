/* SPDX-License-Identifier: MIT */
/*
 * Nested calls, that is, calls of malloc and related functions from within the library.
 *
 * The library calls the C library while it starts, in slow paths, and with locks held. A program
 * may have replaced functions of the C library (libfaketime, tracers, lock checkers), and these may
 * allocate. Such a call must not touch the structures that the library is changing. A call is
 * nested if the thread is in start(), holds a lock or a CPU's line, or is deep in slow paths
 * (NESTED_DEPTH_MOST). Nested calls
 *
 *   allocate   from the side area, which no other part of the library knows
 *   free       a block of the side area at once; an object of a slab in the next slow path of any
 *              thread that is not nested
 *   defer      likewise; a block of the side area is reused when the grace period is over
 *
 * The library itself calls functions that take no cache only with nothing held, so these calls are
 * never nested.
 *
 * The side area consists of chunks, each cut into up to 64 blocks of one size, a power of two, and
 * aligned to that size. A bitmap shows which blocks are in use. The first chunks are static, for a
 * start without memory. Others are mapped when needed, and stay. There are at most MAPPED_CHUNKS.
 *
 * Invariant of a chunk: waiting and fresh are subsets of used, and disjoint except while
 * close_fresh() moves blocks from fresh to waiting.
 *
 * Nothing here waits, because the thread may hold the lock or line that it would wait for. A chunk
 * is published by `state`. A thread takes a block by setting its bit (acquire, after all accesses
 * of the last user) and gives it back by clearing the bit (release). `merging` is a trylock, for
 * which only fork waits. The holder calls no function of the C library.
 */
#include "heap/nested.h"

#include <prudence/prudence.h>

#include "base/bits.h"
#include "gp/gp.h"
#include "gp/user/drive.h"
#include "mapping.h"
#include "vfork.h"

#define MAPPED_CHUNKS          512
#define MAPPED_CHUNKS_OF_VFORK 448 /* children of vfork make no more, because they seldom free */
#define BLOCKS_MOST            64
#define SHIFT_LEAST            6  /* smallest block, 64 bytes */
#define SHIFT_MAPPED           10 /* smallest block of mapped chunks, 1 KiB */
#define SHIFT_MOST             46
#define SHIFT_PURGED           16 /* blocks from this size on are purged when freed */
#define SHIFT_WASTE            6  /* no block is used for less than 1/64 of the bytes */
#define CHUNK_LEAST            OS_PAGE_SIZE_MOST

enum chunk_state { CHUNK_NONE, CHUNK_BEING_MADE, CHUNK_READY };

struct chunk {
    uint32_t state;   /* enum chunk_state; atomic */
    uint32_t merging; /* trylock for changes of waiting and cookie; atomic */
    char *blocks;     /* constant once ready, as are shift and count */
    uint32_t shift, count;
    uint64_t used;    /* a bit per block, as in the next two; atomic */
    uint64_t waiting; /* deferred until the grace period of `cookie`; atomic */
    uint64_t fresh;   /* deferred, no cookie yet; atomic */
    gp_cookie cookie; /* protected by `merging` */
};

static char small_blocks[64][64] __attribute__((aligned(64)));
static char middle_blocks[16][512] __attribute__((aligned(512)));
static char page_blocks[4][4096] __attribute__((aligned(4096)));

#define STATIC_CHUNK(array, bits)                                                                  \
    {                                                                                              \
        .state = CHUNK_READY, .blocks = (char *)(array), .shift = (bits),                          \
        .count = sizeof(array) >> (bits)                                                           \
    }

/* Two arrays, because the second one takes no page of the process before it is used. */
static struct chunk static_chunks[] = {
    STATIC_CHUNK(small_blocks, 6),
    STATIC_CHUNK(middle_blocks, 9),
    STATIC_CHUNK(page_blocks, 12),
};
static struct chunk mapped_chunks[MAPPED_CHUNKS];

/* ------------------------------------------------------------------------------------- chunks */

static uint64_t all_blocks(const struct chunk *chunk)
{
    return ~UINT64_C(0) >> (BLOCKS_MOST - chunk->count);
}

static struct chunk *chunk_after(struct chunk *chunk)
{
    if (!chunk)
        return static_chunks;
    if (chunk == static_chunks + sizeof static_chunks / sizeof *static_chunks - 1)
        return mapped_chunks;
    return chunk == mapped_chunks + MAPPED_CHUNKS - 1 ? NULL : chunk + 1;
}

/* Returns the chunk after `chunk` (NULL for the first), or NULL at the end. Chunks are made in the
 * order of the array. */
static struct chunk *next_chunk(struct chunk *chunk)
{
    while ((chunk = chunk_after(chunk))) {
        uint32_t state = load_acquire(&chunk->state);

        if (state == CHUNK_READY)
            return chunk;
        if (state == CHUNK_NONE)
            return NULL;
    }
    return NULL;
}

static struct chunk *chunk_of(const void *object)
{
    uintptr_t address = (uintptr_t)object;

    for (struct chunk *chunk = NULL; (chunk = next_chunk(chunk));)
        if (address - (uintptr_t)chunk->blocks < (uintptr_t)chunk->count << chunk->shift)
            return chunk;
    return NULL;
}

/* Claims an unused entry for this thread alone. Returns NULL if there is none. */
static struct chunk *nested_claim(void)
{
    for (struct chunk *chunk = mapped_chunks; chunk < mapped_chunks + MAPPED_CHUNKS; chunk++) {
        uint32_t none = CHUNK_NONE;

        if (load_relaxed(&chunk->state) == CHUNK_NONE &&
            compare_exchange(&chunk->state, &none, (uint32_t)CHUNK_BEING_MADE))
            return chunk;
    }
    return NULL;
}

/* Maps memory with libc's mmap if that may be called, so that a program that replaces mmap sees the
 * mappings of malloc. */
static char *nested_map(size_t bytes)
{
    if (injected_failure())
        return NULL;
    return os_holds_nothing() ? mapping_make(bytes, bytes) : mapping_make_unseen(bytes, bytes);
}

/* Unmaps memory of nested_map() by the same way. */
static void nested_unmap(char *pages, size_t bytes)
{
    if (os_holds_nothing())
        mapping_unmake(pages, bytes);
    else
        mapping_unmake_own(pages, bytes);
}

/* Purges the pages. Skipped in a mapping call, where each purge might lead to another one. */
static void nested_purge(char *pages, size_t bytes)
{
    if (os_holds_nothing() && !os_in_mapping_call)
        mapping_purge(pages, bytes);
}

/* Makes a chunk and returns the first block to the caller. Mapped chunks stay for good, so once
 * there are MAPPED_CHUNKS, this always fails. A child of vfork then allocates as other threads
 * do. */
static void *chunk_make(unsigned shift)
{
    size_t bytes = max_size((size_t)1 << shift, CHUNK_LEAST);
    unsigned most = os_in_vfork_child ? MAPPED_CHUNKS_OF_VFORK : MAPPED_CHUNKS;
    bool room = load_acquire(&mapped_chunks[most - 1].state) == CHUNK_NONE;
    char *blocks = room ? nested_map(bytes) : NULL;
    struct chunk *chunk = blocks ? nested_claim() : NULL;

    if (blocks && !chunk)
        nested_unmap(blocks, bytes); /* others have made all chunks since */
    if (!chunk)
        return NULL;
    chunk->blocks = blocks;
    chunk->shift = shift;
    chunk->count = narrow(uint32_t, bytes >> shift);
    chunk->used = 1;
    store_release(&chunk->state, (uint32_t)CHUNK_READY);
    return blocks;
}

/* ------------------------------------------------------------------------------------- blocks */

static void *nested_take_block(struct chunk *chunk)
{
    uint64_t used = load_relaxed(&chunk->used), free;

    do {
        free = all_blocks(chunk) & ~used;
        if (!free)
            return NULL;
    } while (!compare_exchange(&chunk->used, &used, used | (free & -free)));
    return chunk->blocks + ((size_t)__builtin_ctzll(free) << chunk->shift);
}

static void give(struct chunk *chunk, uint64_t blocks)
{
    __atomic_fetch_and(&chunk->used, ~blocks, __ATOMIC_RELEASE);
}

/* Frees one block. */
static void free_block(struct chunk *chunk, uint64_t block)
{
    size_t bytes = (size_t)1 << chunk->shift;

    if (chunk->shift >= SHIFT_PURGED)
        nested_purge(chunk->blocks + (size_t)__builtin_ctzll(block) * bytes, bytes);
    give(chunk, block);
}

/* Frees the waiting blocks if their grace period is over. The caller holds `merging`. */
static void free_safe(struct chunk *chunk, struct prudence_domain *domain)
{
    uint64_t waiting = load_relaxed(&chunk->waiting);

    if (!waiting || !gp_poll(domain, chunk->cookie))
        return;
    gp_drive_tell_over(domain);
    store_relaxed(&chunk->waiting, UINT64_C(0));
    give(chunk, waiting);
}

/* Takes a cookie for the fresh blocks, if no others wait. They are detached, then gp_snapshot()
 * fences and takes the cookie (rule 2). They enter `waiting` before they leave `fresh`, so live()
 * finds them in one of the two. */
static bool close_fresh(struct chunk *chunk, struct prudence_domain *domain)
{
    uint64_t fresh = load_acquire(&chunk->fresh);

    if (!fresh || load_relaxed(&chunk->waiting))
        return false;
    store_relaxed(&chunk->waiting, fresh);
    __atomic_fetch_and(&chunk->fresh, ~fresh, __ATOMIC_SEQ_CST);
    chunk->cookie = gp_snapshot(domain);
    return true;
}

/* Frees the safe blocks of a chunk and takes a cookie for the fresh ones, once the library has
 * started. Counts as being in the library, so that a signal handler that forks does not wait for
 * this. */
static void merge(struct chunk *chunk)
{
    struct prudence_domain *domain = gp_default_domain();
    gp_cookie cookie = {0};
    bool closed = false;

    if (!(load_relaxed(&chunk->waiting) | load_relaxed(&chunk->fresh)) ||
        !load_acquire(&process_started))
        return;
    os_hands_full();
    if (!exchange_acquire(&chunk->merging, 1u)) {
        free_safe(chunk, domain);
        closed = close_fresh(chunk, domain);
        cookie = chunk->cookie;
        store_release(&chunk->merging, 0u);
    }
    os_hands_empty();
    if (closed && call_is_nested())
        gp_request(domain, cookie);
    else if (closed)
        gp_advance(domain, cookie); /* no other thread may have a reason to drive */
}

/* Takes every `merging` before a fork, so that the child finds deferred blocks consistent. A chunk
 * that another thread was making does not exist in the child. */
void nested_fork_prepare(void)
{
    for (struct chunk *chunk = NULL; (chunk = next_chunk(chunk));)
        while (exchange_acquire(&chunk->merging, 1u))
            os_sleep_ns(1000); /* the holder may need this CPU */
}

/* Releases every `merging`, also of chunks that were made in between. No other thread has taken
 * theirs, because fork holds everything else. */
void nested_fork_done(void)
{
    for (struct chunk *chunk = NULL; (chunk = next_chunk(chunk));)
        store_release(&chunk->merging, 0u);
}

static void *take_anywhere(unsigned shift)
{
    void *block = NULL;

    for (struct chunk *chunk = NULL; !block && (chunk = next_chunk(chunk));) {
        if (chunk->shift < shift || chunk->shift > shift + SHIFT_WASTE)
            continue;
        merge(chunk);
        block = nested_take_block(chunk);
    }
    return block;
}

void *nested_alloc(size_t size, size_t alignment, bool *zeroed)
{
    size_t least = max_size(max_size(size, alignment), (size_t)1 << SHIFT_LEAST);
    unsigned shift;
    void *block;

    *zeroed = false;
    if (least > (size_t)1 << SHIFT_MOST)
        return NULL;
    shift = (unsigned)__builtin_ctzll(round_up_to_power_of_two(least));
    block = take_anywhere(shift);
    if (block)
        return block;
    *zeroed = true; /* just mapped */
    return chunk_make((unsigned)max_size(shift, SHIFT_MAPPED));
}

bool nested_has(const void *object)
{
    return chunk_of(object) != NULL;
}

/* ------------------------------------------------------------------- live, and not any more */

/* Returns the bit of a live block. Reports any other pointer and ends the process. */
static uint64_t live(const struct chunk *chunk, const void *object, const char *what)
{
    uintptr_t offset = (uintptr_t)object - (uintptr_t)chunk->blocks;
    uint64_t bit = UINT64_C(1) << (offset >> chunk->shift);
    bool waits = load_acquire(&chunk->fresh) & bit; /* read before `waiting`; see close_fresh() */

    waits = load_acquire(&chunk->waiting) & bit || waits;

    if (offset & (((uintptr_t)1 << chunk->shift) - 1))
        os_report_misuse(
            "%s: %p points into a block that malloc gave to a nested call, %zu bytes after its "
            "start",
            what, object, (size_t)(offset & (((uintptr_t)1 << chunk->shift) - 1)));
    else if (waits || !(load_relaxed(&chunk->used) & bit))
        os_report_misuse("%s: %p, a block that malloc gave to a nested call, is already %s", what,
                         object, waits ? "deferred and not yet safe" : "free");
    else
        return bit;
    os_misuse();
}

size_t nested_usable(const void *object, const char *what)
{
    const struct chunk *chunk = chunk_of(object);

    live(chunk, object, what);
    return (size_t)1 << chunk->shift;
}

/* Defers a live block. If two threads do so at the same time, one finds the bit set and reports
 * that. */
static void nested_defer(struct chunk *chunk, uint64_t bit, void *object, const char *what)
{
    if (__atomic_fetch_or(&chunk->fresh, bit, __ATOMIC_RELEASE) & bit)
        live(chunk, object, what);
    merge(chunk);
}

/* ---------------------------------------------------------------------------------- put off */

__thread unsigned nested_depth;
struct put_off *nested_put_off;

/* Notes an object to free later, in a block of the side area. The compare-and-swap releases the
 * entry to the thread that takes it. Returns false, with nothing done, without such a block in a
 * child of vfork, which then frees as other threads do. */
static bool put_off(void *object, bool deferred, const char *what)
{
    bool zeroed;
    struct put_off *entry = nested_alloc(sizeof *entry, 1, &zeroed);

    if (!entry && os_in_vfork_child)
        return false;
    if (!entry)
        os_panic(
            "%s: %p cannot be freed inside the library now, and there is no memory to free it "
            "later",
            what, object);
    *entry = (struct put_off){load_relaxed(&nested_put_off), object, what, deferred};
    while (!compare_exchange(&nested_put_off, &entry->next, entry))
        ;
    return true;
}

/* Takes all entries at once, so that none can be taken and put back in between. */
struct put_off *nested_take_all(void)
{
    return exchange_acquire(&nested_put_off, NULL);
}

struct put_off nested_take(struct put_off *entry)
{
    struct put_off copy = *entry;
    struct chunk *chunk = chunk_of(entry);

    free_block(chunk, live(chunk, entry, "prudence_free"));
    return copy;
}

/* -------------------------------------------------------------------------------- the slow path */

bool nested_end(const struct slab *slab, void *object, bool nested, bool deferred, const char *what)
{
    struct chunk *chunk = slab ? NULL : chunk_of(object);

    if (slab ? !nested : !chunk)
        return false;
    if (slab)
        return put_off(object, deferred, what);
    if (deferred)
        nested_defer(chunk, live(chunk, object, what), object, what);
    else
        free_block(chunk, live(chunk, object, what));
    return true;
}
