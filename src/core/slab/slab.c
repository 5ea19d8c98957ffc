/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A slab has pages and, apart from them, metadata. The metadata is type-stable enough for a racing
 * lookup, because a page's owner is cleared before the pages go.
 */
#include "slab/slab.h"

#include "gp/gp.h"
#include "os/os.h"
#include "slab/cache_type.h"
#include "slab/extension.h"

static size_t metadata_with(unsigned capacity, unsigned owners)
{
    size_t words = (size_t)3 * bits_words(capacity) + owners;

    return offsetof(struct slab, bits) + words * sizeof(uint64_t); /* not sizeof, which pads */
}

static size_t slab_metadata_bytes(const struct prudence_cache *cache, unsigned capacity)
{
    return metadata_with(capacity, unlikely(cache->flags & CACHE_COMMON) ? capacity : 0);
}

/* Returns the offset of a slab's first object, so that equal objects of many slabs do not all fall
 * into the same cache sets (Bonwick 1994, section 4.3). */
static size_t next_color_offset(struct prudence_cache *cache)
{
    size_t step = max_size(cache->alignment, CACHE_LINE);

    return cache->body->colors > 1
               ? add_relaxed(&cache->body->next_color, 1) % cache->body->colors * step
               : 0;
}

/* -------------------------------------------------------------------------------------- windows */

/* Returns the cache's window, made with the first slab that inlined code needed, or NULL. */
static struct os_window *window_of(struct prudence_cache *cache)
{
    struct os_window *window = load_acquire(&cache->body->window), *made;

    if (!OS_HAS_WINDOWS || window || load_relaxed(&cache->body->window_wish) != WINDOW_WANTED)
        return window;
    made = os_window_make(cache->body->slab_bytes, &cache->window_words);
    store_relaxed(&cache->body->window_wish, (uint8_t)WINDOW_NEVER);
    if (made && compare_exchange(&cache->body->window, &window, made))
        return made;
    if (made)
        os_window_unmake(made); /* another thread installed one first; use that */
    return load_acquire(&cache->body->window);
}

/* Returns the window of the slab's cache, or NULL. */
static struct os_window *window_beside(const struct slab *slab)
{
    return OS_HAS_WINDOWS ? load_acquire(&slab->cache->body->window) : (struct os_window *)NULL;
}

/* Returns the window that the slab is in, or NULL. */
static struct os_window *window_around(const struct slab *slab)
{
    struct os_window *window = window_beside(slab);

    return window && os_window_has(window, slab->pages) ? window : NULL;
}

/* Takes pages from the window or the page source. Returns false if there is no memory. */
static bool take_pages(struct slab *slab, struct prudence_cache *cache, unsigned node, size_t bytes,
                       size_t alignment, bool *zeroed, os_alloc_flags flags)
{
    struct os_window *window = bytes == cache->body->slab_bytes && alignment == OS_PAGE_SIZE
                                   ? window_of(cache)
                                   : (struct os_window *)NULL;

    slab->pages = window ? os_window_take(window, zeroed) : NULL;
    if (!slab->pages)
        slab->pages = os_pages_alloc_as(bytes, alignment, node, zeroed, flags);
    return slab->pages != NULL;
}

/* Notifies the cache's window whether addresses in the slab find it, and how many slabs there will
 * be. The latter is a hint, because slabs are counted later when they come and when they go. */
static void note_live(struct slab *slab, bool live)
{
    struct os_window *window = window_beside(slab);
    uint64_t slabs = load_relaxed(&slab->cache->body->slabs_now);

    if (window)
        os_window_note(window, slab->pages, live, live ? slabs + 1 : slabs ? slabs - 1 : 0);
}

/* --------------------------------------------------------------------------------------- making */

static void slab_init(struct slab *slab, struct prudence_cache *cache, unsigned node,
                      unsigned capacity, size_t bytes)
{
    slab->cache = cache;
    slab->capacity = capacity;
    slab->bytes = bytes;
    slab->node = narrow(uint16_t, node);
    slab->grid = grid_of(capacity > 1 ? cache->body->stride : bytes, capacity);
    slab->extensions = load_acquire(&cache->slab_extensions); /* before the path that it closes */
    slab->fast_percpu = load_relaxed(&cache->body->slab_percpu);
    slab->free = capacity;
    bits_fill(slab_free_bits(slab), capacity);
    list_init(&slab->link);
    list_init(&slab->waiting_link);
}

/* Returns the page of a lone object if lookups may not find the slab there by the slab's range. */
static void *page_of_object(const struct slab *slab)
{
    size_t offset = (size_t)(slab->base - (char *)slab->pages);

    debug_assert(slab->capacity == 1 || slab->bytes < PAGE_MAP_CHUNK);
    return slab->capacity > 1 || likely(offset < OS_PAGE_SIZE)
               ? NULL
               : (char *)slab->pages + (offset & ~(OS_PAGE_SIZE - 1));
}

static bool owner_enter(struct slab *slab)
{
    void *page = page_of_object(slab);

    if (!os_page_owner_set(slab->pages, slab->bytes, slab))
        return false;
    if (unlikely(page) && !os_page_owner_set(page, OS_PAGE_SIZE, slab)) {
        os_page_owner_set(slab->pages, slab->bytes, NULL);
        return false;
    }
    return true;
}

static void owner_leave(const struct slab *slab)
{
    void *page = page_of_object(slab);

    os_page_owner_set(slab->pages, slab->bytes, NULL);
    if (unlikely(page))
        os_page_owner_set(page, OS_PAGE_SIZE, NULL);
}

/* Calls the extensions of a slab that has pages, then lets lookups find the slab. Returns false,
 * with nothing kept, if memory ran out. */
static bool slab_complete(struct slab *slab)
{
    if (unlikely(load_relaxed(&slab->extensions)) && !extensions_made(slab))
        return false;
    if (owner_enter(slab)) {
        note_live(slab, true);
        return true;
    }
    extensions_going(slab);
    return false;
}

/* Gives the pages to the page source. Returns false if an extension keeps them, such as the one
 * that keeps the first large blocks; the slab's memory then belongs to the extension, too. */
static bool give_pages(struct slab *slab)
{
    if (!slab->cache->percpu && unlikely(load_relaxed(&slab_first.kept)))
        slab->extensions |= slab_first.extension;
    if (unlikely(load_relaxed(&slab->extensions)) && extensions_keep_pages(slab))
        return false;
    os_pages_free(slab->pages, slab->bytes);
    return true;
}

size_t slab_memory(const struct slab *slab)
{
    return slab_metadata_bytes(slab->cache, slab->capacity);
}

/* Returns the number of objects in a slab of `bytes`. */
static unsigned capacity_of(const struct prudence_cache *cache, size_t bytes)
{
    return bytes == cache->body->slab_bytes || cache->body->capacity == 1
               ? cache->body->capacity
               : narrow(unsigned, bytes / cache->body->stride);
}

/* Makes a slab that is on no list yet and whose objects are all free. The `margin` bytes on both
 * sides are closed by the extension that wants them. Returns NULL, with nothing lost, if memory ran
 * out. */
struct slab *slab_make(struct prudence_cache *cache, unsigned node, size_t bytes, size_t alignment,
                       size_t margin, bool *zeroed, os_alloc_flags flags)
{
    unsigned capacity = capacity_of(cache, bytes);
    size_t front = margin ? max_size(margin, alignment) : 0;
    struct slab *slab = os_meta_alloc_as(slab_metadata_bytes(cache, capacity), flags);

    if (!slab)
        return NULL;
    bytes += front + margin;
    slab->cache = cache;
    if (!take_pages(slab, cache, node, bytes, alignment, zeroed, flags))
        goto no_pages;
    slab->base = (char *)slab->pages + front;
    if (capacity == cache->body->capacity && !window_around(slab))
        slab->base += next_color_offset(cache);
    slab_init(slab, cache, os_pages_node(slab->pages, node), capacity, bytes);
    slab->margin_pages = narrow(uint8_t, margin / OS_PAGE_SIZE);
    if (margin > cache->body->margin)
        slab->extensions |= slab_first.extension;
    if (slab_complete(slab))
        return slab;
    if (!give_pages(slab))
        return NULL;
no_pages:
    os_meta_free(slab, slab_metadata_bytes(cache, capacity));
    return NULL;
}

/* Makes the slab of an object that is alone on pages of the caller. Returns NULL without memory. */
struct slab *slab_make_on(struct prudence_cache *cache, unsigned node, void *pages, size_t bytes,
                          void *object, uint32_t extensions)
{
    struct slab *slab = os_meta_alloc(slab_metadata_bytes(cache, 1));

    if (!slab)
        return NULL;
    slab->pages = pages;
    slab->base = object;
    slab->alone = true;
    slab_init(slab, cache, node, 1, bytes);
    slab->fast_percpu = os_percpu_owned_lines;
    slab->extensions |= extensions;
    if (slab_complete(slab))
        return slab;
    os_meta_free(slab, slab_metadata_bytes(cache, 1));
    return NULL;
}

void slab_leave_cache(struct slab *slab)
{
    note_live(slab, false);
    owner_leave(slab);
    if (unlikely(load_relaxed(&slab->extensions)))
        extensions_going(slab);
    sub_relaxed(&slab->cache->body->slabs_now, 1);
}

void slab_unmake_left(struct slab *slab)
{
    os_pages_free(slab->pages, slab->bytes);
    os_meta_free(slab, metadata_with(slab->capacity, 0));
}

void slab_unmake(struct slab *slab)
{
    struct prudence_cache *cache = slab->cache;
    size_t bytes = slab->bytes, memory = slab_memory(slab);
    bool alone = slab->alone;

    slab_leave_cache(slab);
    if (!cache->percpu)
        add_relaxed(&cache->body->large_shrunk, bytes);
    if (alone || give_pages(slab))
        os_meta_free(slab, memory);
}

/* Counts a slab together with the node, for fork. */
void slab_count(struct prudence_cache *cache)
{
    uint64_t now = add_relaxed(&cache->body->slabs_now, 1) + 1;
    uint64_t peak = load_relaxed(&cache->body->slabs_peak);

    while (now > peak && !compare_exchange(&cache->body->slabs_peak, &peak, now))
        ;
}

/* Returns the bytes of the fewest pages that hold an object, for when contiguous pages are
 * short. */
static size_t least_bytes(const struct prudence_cache *cache)
{
    return OS_SLAB_MAY_BE_LESS
               ? round_up_to_power_of_two(max_size(cache->body->stride, os_page_size))
               : cache->body->slab_bytes;
}

static struct slab *slab_make_best(struct prudence_cache *cache, unsigned node,
                                   os_alloc_flags flags)
{
    size_t bytes = cache->body->slab_bytes, least = least_bytes(cache);
    struct slab *slab = NULL;

    if (least < bytes)
        slab = slab_make(cache, node, bytes, OS_PAGE_SIZE, 0, NULL, os_alloc_larger(flags));
    return slab ? slab
                : slab_make(cache, node, min_size(least, bytes), OS_PAGE_SIZE, 0, NULL, flags);
}

static void construct_all(const struct slab *slab)
{
    const struct prudence_cache *cache = slab->cache;

    os_foreign_call("a constructor");
    for (unsigned i = 0; i < slab->capacity; i++)
        cache->body->constructor(slab_object(slab, i, cache->body->stride), cache->body->context);
}

/* Makes a new slab with constructed objects. */
struct slab *slab_grow(struct prudence_cache *cache, unsigned node, os_alloc_flags flags)
{
    struct slab *slab = slab_make_best(cache, node, flags);

    if (!slab)
        return NULL;
    os_event(grow, cache, slab->capacity);
    if (cache->body->constructor)
        construct_all(slab);
    if (unlikely(load_relaxed(&slab->extensions)))
        extensions_ready(slab);
    if (cache->flags & CACHE_TYPESAFE)
        slab->free_cookie = gp_snapshot(cache->domain);
    return slab;
}
