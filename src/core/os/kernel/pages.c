// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The page source is the kernel's page allocator, which itself keeps free pages. So nothing is
 * retained or decays here. Metadata comes from kmalloc_node, whose memory of a named node is SLUB's
 * also where kmalloc's is ours (CONFIG_PRUDENCE_KMALLOC); otherwise a refill could need a refill.
 * Both are counted.
 */
#include "os_kernel.h"

bool (*os_memory_fails)(void);

static uint64_t used, used_peak, metadata;

static bool injected_failure(void)
{
    bool (*fails)(void) = READ_ONCE(os_memory_fails);

    return unlikely(fails != NULL) && fails();
}

static void count_used(size_t bytes)
{
    uint64_t now = add_relaxed(&used, bytes) + bytes;
    uint64_t peak = load_relaxed(&used_peak);

    while (now > peak && !compare_exchange(&used_peak, &peak, now))
        ;
}

/* Flags that callers may pass on, which say how hard to try. Zones, mobility and accounting are
 * fixed because slabs are shared; kernel/objects.c zeroes objects. */
#define FLAGS_HONOURED                                                                             \
    (__GFP_RECLAIM | __GFP_HIGH | __GFP_IO | __GFP_FS | __GFP_NOWARN | __GFP_RETRY_MAYFAIL |       \
     __GFP_NOFAIL | __GFP_NORETRY | __GFP_MEMALLOC | __GFP_NOMEMALLOC | __GFP_THISNODE)

void *os_pages_alloc_as(size_t bytes, size_t alignment, unsigned node, bool *zeroed,
                        os_alloc_flags flags)
{
    unsigned order = get_order(max_size(bytes, alignment));
    struct page *page;

    if (zeroed)
        *zeroed = false;
    if (!os_may_lock() || injected_failure())
        return NULL;
    flags &= FLAGS_HONOURED;
    if (order) /* a smaller slab will do, and kernel/objects.c retries for __GFP_NOFAIL */
        flags = (flags & ~(__GFP_NOFAIL)) | __GFP_COMP | __GFP_NOWARN;
    page = alloc_pages_node((int)node, flags, order);
    if (!page)
        return NULL;
    count_used(PAGE_SIZE << order);
    return page_address(page);
}

void *os_pages_alloc(size_t bytes, size_t alignment, unsigned node, bool *zeroed)
{
    return os_pages_alloc_as(bytes, alignment, node, zeroed, OS_ALLOC_DEFAULT);
}

/* The alignment never exceeds the slab's size (kernel/caches.c), so `bytes` gives the order. */
void os_pages_free(void *pages, size_t bytes)
{
    unsigned order = get_order(bytes);

    if (unlikely(!os_may_lock())) {
        os_free_later(pages, bytes, true);
        return;
    }
    sub_relaxed(&used, PAGE_SIZE << order);
    free_pages((unsigned long)pages, order);
}

/* Pages of the linear mapping cannot be moved. */
void *os_pages_resize(void *pages, size_t bytes, size_t wanted, void *owner)
{
    return NULL;
}

struct os_window *os_window_make(size_t bytes, struct os_window_words *words)
{
    return NULL;
}

void os_window_unmake(struct os_window *window)
{
}

void *os_window_take(struct os_window *window, bool *zeroed)
{
    return NULL;
}

void os_window_note(struct os_window *window, const void *pages, bool live, uint64_t slabs)
{
}

bool os_window_has(const struct os_window *window, const void *pages)
{
    return false;
}

/* Nothing is kept; freed pages go to the kernel at once. */
uint64_t os_pages_spare(void)
{
    return U64_MAX;
}

uint64_t os_pages_kept(void)
{
    return 0;
}

bool os_pages_decay(void)
{
    return false;
}

size_t os_pages_trim(void)
{
    return 0;
}

uint64_t os_memory_allowed(void)
{
    return (uint64_t)totalram_pages() << PAGE_SHIFT;
}

/* The kernel calls the shrinker (kernel/shrinker.c), so no caller needs to ask. */
bool os_memory_is_short(void)
{
    return false;
}

void os_pages_stats(struct os_pages_stats *stats)
{
    *stats = (struct os_pages_stats){
        .used = load_relaxed(&used),
        .used_peak = load_relaxed(&used_peak),
        .metadata = load_relaxed(&metadata) + os_page_map_bytes(),
    };
}

/* Large blocks are arrays, which are not worth reclaim, and parts of caches on machines of hundreds
 * of CPUs. The latter are allocated and freed where sleeping is allowed, so they need no contiguous
 * pages. */
void *os_meta_alloc_as(size_t bytes, os_alloc_flags flags)
{
    void *meta;

    if (!os_may_lock() || injected_failure())
        return NULL;
    bytes = round_up(bytes, CACHE_LINE);
    flags = (flags & FLAGS_HONOURED & ~__GFP_THISNODE) | __GFP_ZERO | __GFP_NOWARN;
    if (bytes <= PAGE_SIZE << PAGE_ALLOC_COSTLY_ORDER)
        meta = kmalloc_node(bytes, flags, numa_mem_id());
    else if (gfpflags_allow_blocking(flags))
        meta = kvmalloc_node(bytes, flags & ~__GFP_NOFAIL, numa_mem_id());
    else
        meta = kmalloc_node(bytes, flags & ~(__GFP_RECLAIM | __GFP_NOFAIL), numa_mem_id());
    if (meta)
        add_relaxed(&metadata, bytes);
    return meta;
}

/* Any context. */
void *os_meta_alloc(size_t bytes)
{
    return os_meta_alloc_as(bytes, GFP_NOWAIT);
}

void os_meta_free(void *meta, size_t bytes)
{
    if (unlikely(!os_may_lock())) {
        os_free_later(meta, bytes, false);
        return;
    }
    sub_relaxed(&metadata, round_up(bytes, CACHE_LINE));
    kvfree(meta);
}

/* Plain metadata will do, because accesses to kernel memory do not fault. */
void *os_arrays_alloc(size_t bytes)
{
    return os_meta_alloc(bytes);
}

void os_arrays_free(void *arrays, size_t bytes)
{
    os_meta_free(arrays, bytes);
}
