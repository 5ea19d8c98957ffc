/* SPDX-License-Identifier: MIT */
/*
 * Large blocks: those of more than 128 KiB, or aligned to more than a page; from calloc, and with
 * guard_large=1, those of more than 32 KiB. Each is a slab of one object, so a block is found,
 * checked, deferred and counted like every other object, in one cache that has no per-CPU caches. A
 * freed block goes back to the page source at once, which keeps the pages that will be wanted
 * again.
 */
#include <errno.h>

#include <prudence/structure.h>

#include "base/checked.h"
#include "heap/cache_life.h"
#include "heap/heap.h"
#include "heap/size_class.h"
#include "heap/upcalls.h"
#include "slab/cache.h"
#include "slab/large.h"
#include "slab/node.h"

/* On nearly every system the page source grows larger blocks without copying, unless they have
 * margins. */
#define GROWN_BY_COPYING ((size_t)32 << 20)

/* Most bytes that a process can address. */
#define ADDRESSES ((size_t)1 << PAGE_MAP_ADDRESS_BITS)

static struct prudence_cache *large;

static struct prudence_cache *large_cache(void)
{
    static const struct cache_layout layout = {.object_size = OS_PAGE_SIZE, .no_cpu_caches = true};
    struct prudence_cache *cache = load_acquire(&large);

    if (likely(cache != NULL))
        return cache;
    process_start();
    os_lock_take(&heap_lock);
    if (!large)
        store_release(&large, cache_create("large", &layout));
    os_lock_release(&heap_lock);
    return large;
}

/*
 * Computes the bytes of a block's pages. Returns false if there can never be memory for the block,
 * because block and alignment together exceed the addresses of a process, or the block alone
 * exceeds the option limit. So a hopeless size is refused before the system is asked, a wait begins
 * or caches are emptied.
 */
static bool large_block_bytes(size_t size, size_t alignment, size_t *bytes)
{
    uint64_t limit = os_pages_limit();
    size_t huge;

    return checked_round_up(max_size(size, 1), os_page_size, bytes) &&
           checked_add(*bytes, alignment, &huge) && huge <= ADDRESSES &&
           (!limit || *bytes <= limit);
}

static void *alloc_from(struct prudence_cache *cache, size_t size, size_t bytes, size_t alignment,
                        bool grown, bool *zeroed)
{
    struct slab *slab = slab_large_make(cache, bytes, max_size(alignment, OS_PAGE_SIZE), grown,
                                        zeroed, OS_ALLOC_DEFAULT);

    if (slab && unlikely(load_relaxed(&slab->extensions)))
        extensions_allocated(slab, slab->base, max_size(size, 1), *zeroed);
    return slab ? slab->base : NULL;
}

/* Allocates pages for `room` bytes; the caller asked for `size`. */
static void *alloc(size_t size, size_t room, size_t alignment, bool grown, bool *zeroed)
{
    struct prudence_cache *cache;
    size_t bytes;

    if (!large_block_bytes(room, alignment, &bytes))
        return NULL;
    cache = large_cache();
    return cache ? alloc_from(cache, size, bytes, alignment, grown, zeroed) : NULL;
}

/* Returns NULL when memory ran out. Sets *zeroed if the pages are known to be zero. */
void *large_alloc(size_t size, size_t alignment, bool *zeroed)
{
    return alloc(size, size, alignment, false, zeroed);
}

/* Allocates pages for `room` bytes, for an object that has grown and must be copied. Returns NULL
 * when memory ran out. */
void *large_alloc_grown(size_t size, size_t room)
{
    bool zeroed;

    return alloc(size, room, 1, true, &zeroed);
}

void *prudence_cache_alloc_block(struct prudence_cache *cache, size_t size, bool *zeroed)
{
    static const char what[] = "prudence_cache_alloc_block";
    int saved_errno = errno;
    bool unasked;
    size_t bytes;
    void *block = NULL;

    cache_require(cache, what);
    if (cache->percpu) {
        os_report("%s: cache '%s' has objects of one size; call prudence_cache_alloc", what,
                  cache->name);
        errno = EINVAL;
        return NULL;
    }
    if (large_block_bytes(size, OS_PAGE_SIZE, &bytes))
        block = alloc_from(cache, size, bytes, OS_PAGE_SIZE, false, zeroed ? zeroed : &unasked);
    errno = block ? saved_errno : ENOMEM;
    return block;
}

/* Returns the size to ask for when a block grows to `size` and must be copied. The block will grow
 * again, and then has an eighth more to grow into, so all copying together is a constant times the
 * last size. */
size_t large_growing(size_t size)
{
    size_t grown;

    return checked_add(size, size / 8, &grown) && (grown <= GROWN_BY_COPYING || slab_margin) ? grown
                                                                                             : size;
}

/*
 * Changes the size of a live block without copying, if that is possible and sensible. Under check=1
 * the block counts as free while the size changes, so when two threads resize or free the block at
 * the same time, one of them is caught for certain.
 */
bool large_resize(struct slab *slab, size_t size)
{
    size_t bytes;
    bool done;

    if (size <= max_size(size_class_most(), os_page_size) / 2 ||
        !large_block_bytes(size, 1, &bytes))
        return false;
    node_check_live(slab, "prudence_realloc");
    if (heap_upcalls.resizes)
        heap_upcalls.resizes(slab, true);
    done = bytes == slab_usable_bytes(slab) || slab_large_resize(slab, bytes);
    if (heap_upcalls.resizes)
        heap_upcalls.resizes(slab, false);
    if (done && unlikely(load_relaxed(&slab->extensions)))
        extensions_resized(slab, slab->base, size);
    return done;
}
