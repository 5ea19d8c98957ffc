/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Slabs of one object, which pass no CPU's caches: large blocks, and objects that an extension has
 * put on pages of their own. The node gets them as allocated.
 */
#include "slab/large.h"

#include "os/os.h"
#include "slab/extension.h"
#include "slab/node.h"
#include "slab/reclaim/pressure.h"
#include "slab/reclaim/throttle.h"
#include "slab/slab.h"

/* Most bytes of a block that gets margins as one of the first. */
#define FIRST_MOST ((size_t)1 << 20)

/* Makes one of the first blocks, with margins although the cache has none. Returns NULL if it is
 * none of them, or there is no memory for block and margins. */
static struct slab *make_first(struct prudence_cache *cache, unsigned node, size_t bytes,
                               size_t alignment, bool *zeroed, os_alloc_flags flags)
{
    if (likely(load_relaxed(&slab_first.margins) <= 0) || cache->body->margin ||
        bytes > FIRST_MOST || alignment > os_page_size || sub_relaxed(&slab_first.margins, 1) <= 0)
        return NULL;
    return slab_make(cache, node, bytes, alignment, os_page_size, zeroed, flags);
}

/* Makes a slab, and waits for memory as `flags` allow. */
static struct slab *make_patiently(struct prudence_cache *cache, unsigned node, size_t bytes,
                                   size_t alignment, bool *zeroed, os_alloc_flags flags)
{
    struct reclaim reclaim = {.began = 0};
    size_t margin = cache->body->margin;
    struct slab *slab;

    do
        slab = slab_make(cache, node, bytes, alignment, margin, zeroed, os_alloc_first(flags));
    while (!slab && pressure_reclaim(cache, flags, &reclaim));
    return slab ? slab : slab_make(cache, node, bytes, alignment, margin, zeroed, flags);
}

/* Makes a large block, a slab of one object of any size, which is live on return. A `grown` block
 * replaces a smaller one and will grow on, so margins would prevent that. */
struct slab *slab_large_make(struct prudence_cache *cache, size_t bytes, size_t alignment,
                             bool grown, bool *zeroed, os_alloc_flags flags)
{
    unsigned node = os_node_of_cpu(os_cpu_current());
    struct slab *slab = NULL;

    throttle_growth(cache, flags);
    if (!grown)
        slab = make_first(cache, node, bytes, alignment, zeroed, os_alloc_first(flags));
    if (!slab)
        slab = make_patiently(cache, node, bytes, alignment, zeroed, flags);
    if (!slab)
        return NULL;
    add_relaxed(&cache->body->large_grown, slab->bytes);
    node_adopt_live(node_of(slab), slab);
    pressure_purge();
    return slab;
}

/* Marks a block, so that walks over the heap leave it out. A walk keeps carriers away, so it sees
 * no mark come or go. */
static void mark_changing(struct slab *slab, bool changing)
{
    os_in_flight_begin();
    slab->changing = changing;
    os_in_flight_end();
}

/* Opens the margins of one of the first blocks. Gives the front margin back; the back margin
 * becomes part of the block. Returns false if the block keeps margins and place; they may be open
 * then. */
static bool drop_margins(struct slab *slab)
{
    size_t front = slab_front_margin(slab);

    if (!os_pages_protect(slab->pages, slab->bytes, false))
        return false;
    os_page_owner_resize(slab->pages, slab->bytes, slab->base, slab->bytes - front, slab);
    if (!os_pages_cut(slab->pages, front)) {
        os_page_owner_resize(slab->base, slab->bytes - front, slab->pages, slab->bytes, slab);
        return false;
    }
    slab->pages = slab->base;
    slab->bytes -= front;
    slab->margin_pages = 0;
    add_relaxed(&slab->cache->body->large_shrunk, front);
    return true;
}

static bool has_no_margins(struct slab *slab)
{
    return !slab->margin_pages || (OS_HAS_MARGINS && drop_margins(slab));
}

static bool resize(struct slab *slab, size_t bytes)
{
    void *pages = os_pages_resize(slab->pages, slab->bytes, bytes, slab);

    if (!pages)
        return false;
    if (bytes > slab->bytes)
        add_relaxed(&slab->cache->body->large_grown, bytes - slab->bytes);
    else
        add_relaxed(&slab->cache->body->large_shrunk, slab->bytes - bytes);
    slab->pages = slab->base = pages;
    slab->bytes = bytes;
    return true;
}

/*
 * Resizes a live large block without copying. Returns false, with nothing changed, if the page
 * source cannot. Only the thread that frees a live block reads the size and place, so nothing is
 * held while they change, and the page source may call functions of the program. In a child of
 * fork, a block that another thread was resizing stays marked, because the place is unknown, and
 * the owner does not exist there.
 */
bool slab_large_resize(struct slab *slab, size_t bytes)
{
    bool resized;

    mark_changing(slab, true);
    resized = has_no_margins(slab) && resize(slab, bytes);
    mark_changing(slab, false);
    if (resized)
        pressure_purge();
    return resized;
}

/* Makes the slab of `object`, alone on `pages`. Returns NULL on failure, and the pages belong to
 * the caller again. Otherwise the object is live, and the pages go with the slab, to the extension
 * whose `going` knows them. */
struct slab *slab_large_make_lone(struct prudence_cache *cache, void *pages, size_t bytes,
                                  void *object, uint32_t extensions)
{
    unsigned node = os_node_of_cpu(os_cpu_current());
    struct slab *slab = slab_make_on(cache, node, pages, bytes, object, extensions);

    if (slab)
        node_adopt_live(node_of(slab), slab);
    return slab;
}
