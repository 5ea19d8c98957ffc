/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Creates and destroys slab caches.
 *
 * Sizes follow proven heuristics. A slab is the smallest power of two of pages, from
 * OS_SLAB_BYTES_MIN to OS_SLAB_BYTES_MAX, that holds OS_SLAB_OBJECTS, or at least 8 large ones (4
 * of more than 32 KiB); a node keeps 5 to 10 free slabs. If the system's pages are larger, or the
 * cache is roomy (ADR 150), slabs of small objects are larger too, and a node keeps as many free
 * bytes of them (ADR 9). A dense cache takes the number of pages that leaves the least over (ADR
 * 10), and so does a roomy one that would leave much. Strides that would crowd few sets of a
 * first-level cache are avoided (ADR 3).
 */
#include "slab/cache.h"

#include "base/name.h"
#include "gp/gp_wait.h"
#include "os/os.h"
#include "slab/all_caches.h"
#include "slab/cpu_cache.h"
#include "slab/extension.h"
#include "slab/latent_cache.h"
#include "slab/node.h"
#include "slab/object_cache.h"
#include "slab/preflush.h"
#include "slab/reclaim/budget_share.h"
#include "slab/reclaim/decay.h"
#include "slab/reclaim/hollow.h"

/* Policy: how large are a cache's slabs, and how many objects may it keep? */
#define SLAB_OBJECTS_MIN 8 /* objects; the last of as many does not give way to colors */
#define BIG_OBJECT       ((size_t)32 << 10) /* bytes; of larger ones, fewer share a slab */
#define BIG_OBJECTS_MIN  4                  /* objects; one that stays holds half of what 8 would */
#define DENSE_BYTES_MIN  ((size_t)32 << 10) /* bytes; keeps a slab's metadata small in comparison */
#define ROOMY_BYTES_MIN  ((size_t)16 << 10) /* bytes; bounds the pages kept for one object */
#define ROOMY_LEFT_OVER  32                 /* part; the most bytes that a roomy slab leaves over */
#define COLORS_MAX       64                /* slabs; differ by lines, as many as a cache has sets */
#define WINDOW_CROWDED   ((size_t)1024)    /* bytes; its multiples keep their colors */
#define SKEW_GRAIN       ((size_t)512)     /* bytes; its multiples share few sets of a cache */
#define SKEW_MIN         ((size_t)1024)    /* bytes; smaller objects would pay too much */
#define SKEW_END         ((size_t)8192)    /* bytes; larger objects fill enough sets */
#define BUDGET_BYTES     ((size_t)1 << 20) /* bytes; least budget of a cache on one CPU */
#define BUDGET_OBJECTS   ((size_t)1024)    /* objects; of large objects, up to BUDGET_BYTES_MAX */
#define BUDGET_BYTES_MAX ((size_t)4 << 20) /* bytes; most budget of a cache on one CPU */

size_t slab_redzone READ_MOSTLY = 0;
size_t slab_margin READ_MOSTLY = 0;

/* Returns whether a lone object would need more pages when contiguous pages are short; see
 * round_up_to_power_of_two(). */
static bool needs_more_pages(size_t stride, size_t before)
{
    return OS_SLAB_MAY_BE_LESS && round_up_to_power_of_two(max_size(stride, os_page_size)) >
                                      round_up_to_power_of_two(max_size(before, os_page_size));
}

static size_t alignment_of(const struct cache_layout *layout)
{
    return layout->alignment ? layout->alignment : layout->object_size < 16 ? 8 : 16;
}

/*
 * Returns the stride, plus one cache line if it is a multiple of SKEW_GRAIN. The first lines of
 * such objects share at most eight sets of a first-level cache, which do not hold a batch of them;
 * with one line more they use all 64. Smaller objects would pay too much memory for it, a slab
 * holds few larger ones, and some alignments do not allow it.
 */
static size_t skewed(const struct prudence_cache *cache, size_t stride)
{
    if (stride % SKEW_GRAIN || stride < SKEW_MIN || stride >= SKEW_END ||
        cache->alignment > CACHE_LINE || needs_more_pages(stride + CACHE_LINE, stride))
        return stride;
    return stride + CACHE_LINE;
}

/* Returns `line_objects` of a cache. Objects that are not aligned to 8 bytes count as large. */
static unsigned line_objects(size_t stride)
{
    size_t divisor = min_size(stride & -stride, CACHE_LINE);

    return stride < CACHE_LINE && divisor >= 8 ? (unsigned)(CACHE_LINE / divisor) : 1;
}

/* Bytes from one color to the next. */
static size_t color_step(const struct prudence_cache *cache)
{
    return max_size(cache->alignment, CACHE_LINE);
}

/*
 * Returns the bytes that a slab keeps free for colors, so that the bytes read of many objects do
 * not share a few cache sets (ADR 3). Without colors, objects begin in each set that is a multiple
 * of the largest power of two that divides the stride. Colors fill the sets between two of these.
 * Small objects do without, and so do aligned ones, because the alignment is the smallest step
 * (with red zones: because their slabs are dense).
 */
static size_t color_room(const struct prudence_cache *cache, const struct cache_body *body)
{
    size_t wanted = min_size(body->stride & -body->stride, OS_PAGE_SIZE);

    if (wanted <= color_step(cache) || body->stride <= (size_t)2 * CACHE_LINE ||
        (cache->flags & CACHE_DENSE))
        return 0;
    return wanted - color_step(cache);
}

/* Returns the fewest objects that a slab has. */
static size_t objects_min(size_t stride)
{
    return stride > BIG_OBJECT ? BIG_OBJECTS_MIN : SLAB_OBJECTS_MIN;
}

/* Returns the number of objects in a slab of `bytes`. The last of objects_min() does not give way
 * to colors. */
static unsigned objects_in(const struct prudence_cache *cache, const struct cache_body *body,
                           size_t bytes)
{
    size_t room = color_room(cache, body),
           colored = bytes > room ? (bytes - room) / body->stride : 0;

    return narrow(unsigned,
                  max_size(colored, min_size(bytes / body->stride, objects_min(body->stride))));
}

/* Returns the bytes that the objects of a slab of `bytes` leave over. */
static size_t left_over(const struct prudence_cache *cache, const struct cache_body *body,
                        size_t bytes)
{
    return bytes - objects_in(cache, body, bytes) * body->stride;
}

/* Returns whether a slab of `bytes` leaves less over, for each byte, than one of `other`. */
static bool is_denser(const struct prudence_cache *cache, const struct cache_body *body,
                      size_t bytes, size_t other)
{
    return left_over(cache, body, bytes) * other < left_over(cache, body, other) * bytes;
}

/* Returns whether slabs of `bytes` have at least objects_min() objects, and room for colors. */
static bool is_enough(const struct prudence_cache *cache, const struct cache_body *body,
                      size_t bytes)
{
    return bytes >= objects_min(body->stride) * body->stride + color_room(cache, body);
}

/*
 * Returns the densest size from `most` down to half of it. With larger system pages there are few
 * such sizes, and large objects may leave much over in each. So if that one still leaves more than
 * 1/64, larger sizes are tried, up to twice `most`, until one leaves less.
 */
static size_t densest(const struct prudence_cache *cache, const struct cache_body *body,
                      size_t most)
{
    size_t best = most;

    for (size_t bytes = most; bytes > most / 2; bytes -= os_page_size)
        if (is_enough(cache, body, bytes) && is_denser(cache, body, bytes, best))
            best = bytes;
    for (size_t bytes = most; bytes < 2 * most && left_over(cache, body, best) > best / 64;) {
        bytes += os_page_size;
        if (is_denser(cache, body, bytes, best))
            best = bytes;
    }
    return best;
}

/* Returns the bytes of a slab of a power of two of pages, at least `least`. */
static size_t slab_bytes_for(size_t stride, size_t least)
{
    size_t bytes = least;

    while (bytes / stride < OS_SLAB_OBJECTS && bytes < OS_SLAB_BYTES_MAX)
        bytes *= 2;
    while (bytes / stride < objects_min(stride))
        bytes *= 2;
    return bytes;
}

static void choose_slab(const struct prudence_cache *cache, struct cache_body *body)
{
    bool dense = cache->flags & CACHE_DENSE;
    size_t least = dense                        ? DENSE_BYTES_MIN
                   : cache->flags & CACHE_ROOMY ? ROOMY_BYTES_MIN
                                                : OS_SLAB_BYTES_MIN;
    size_t kept = slab_bytes_for(body->stride, dense ? least : OS_SLAB_BYTES_MIN);

    body->slab_bytes = max_size(slab_bytes_for(body->stride, least), os_page_size);
    if (dense || ((cache->flags & CACHE_ROOMY) &&
                  left_over(cache, body, body->slab_bytes) > body->slab_bytes / ROOMY_LEFT_OVER))
        body->slab_bytes = densest(cache, body, body->slab_bytes);
    body->capacity = objects_in(cache, body, body->slab_bytes);
    /* Only slabs of few objects are larger. Walks over the heap count on it. */
    debug_assert(body->capacity * SLAB_STRIDE_MIN <= max_size(OS_SLAB_BYTES_MAX, os_page_size));
    body->colors = (unsigned)clamp_size(
        left_over(cache, body, body->slab_bytes) / color_step(cache) + 1, 1, COLORS_MAX);
    body->free_limit = (unsigned)clamp_size(64 - (size_t)__builtin_clzll(body->stride), 5, 10);
    body->free_limit = (unsigned)max_size(body->free_limit * kept / body->slab_bytes, 1);
}

/*
 * Chooses whether slabs go to a window, in which each slab has the first object in the same place.
 * Objects keep their colors instead if otherwise an object would share a few cache sets with those
 * of all slabs.
 */
static void choose_window(const struct prudence_cache *cache, struct cache_body *body)
{
    if (OS_HAS_WINDOWS && cache->named && !cache->slab_extensions && os_percpu_rseq &&
        (body->stride % WINDOW_CROWDED || body->colors == 1))
        body->window_wish = WINDOW_IF_WANTED;
}

/* Returns the most objects that an object cache begins with. */
static size_t first_size(const struct cache_body *body)
{
    return OS_CACHE_BYTES_MIN / body->stride < TRANSFER_MAX ? OS_CACHE_OBJECTS_MIN : TRANSFER_MAX;
}

static void choose_sizes(struct cache_body *body, size_t budget)
{
    bool fixed = budget > 0;

    if (!fixed)
        budget = clamp_size(BUDGET_OBJECTS * body->stride, BUDGET_BYTES, BUDGET_BYTES_MAX);
    body->batch = (unsigned)clamp_size(GP_BATCH_BYTES / body->stride, 2, GP_BATCH_OBJECTS);
    body->size_max = (unsigned)clamp_size(budget / body->stride, 4, OS_CACHE_OBJECTS_MAX);
    body->batch = (unsigned)min_size(body->batch, body->size_max / 2);
    body->size_min = (unsigned)min_size((size_t)2 * body->batch, body->size_max);
    if (!fixed || OS_CACHE_BYTES_ARE_A_LIMIT)
        body->size_min = (unsigned)min_size(body->size_min, first_size(body));
}

/* Fills the structure of a cache, which is all 0. */
static void layout_apply(struct prudence_cache *cache, const char *name,
                         const struct cache_layout *layout)
{
    uint32_t of_slabs;

    name_copy(cache->name, CACHE_NAME_SIZE, name);
    cache->domain = layout->domain ? layout->domain : gp_default_domain();
    cache->flags = narrow(
        uint16_t, layout->flags | (gp_polls_objects(cache->domain) ? CACHE_POLLS_OBJECTS : 0) |
                      (layout->constructor ? CACHE_CONSTRUCTED : 0) |
                      (layout->destructor ? CACHE_DESTRUCTED : 0));
    cache->object_size = narrow(uint32_t, layout->object_size);
    cache->alignment = narrow(uint16_t, alignment_of(layout));
    cache->named = layout->named;
    cache->common = layout->common;
    cache->extensions = extensions_wanted(layout, &of_slabs);
    cache->slab_extensions = narrow(uint16_t, of_slabs);
    cache->fast_percpu = os_percpu_owned_lines;
    cache->page_map = os_page_map_root();
    cache->cpus = os_percpu_rseq ? os_cpu_count() : 0;
    cache->window_words.base = OS_WINDOW_NOWHERE;
}

/* Fills a body, which is all 0. */
static void body_apply(struct cache_body *body, const struct prudence_cache *cache,
                       const struct cache_layout *layout)
{
    body->constructor = layout->constructor;
    body->destructor = layout->destructor;
    body->context = layout->context;
    body->sized = layout->object_cache_bytes > 0;
    body->slab_percpu = body->aside_percpu = os_percpu_owned_lines;
    if (layout->no_cpu_caches) {
        body->capacity = 1;
        body->stride = OS_PAGE_SIZE;
        body->margin = narrow(uint32_t, slab_margin);
        return;
    }
    body->redzone =
        narrow(uint16_t, layout->flags & CACHE_CLOSED ? cache->alignment : slab_redzone);
    body->stride = round_up(layout->object_size + body->redzone, (size_t)cache->alignment);
    body->stride = max_size(skewed(cache, body->stride), SLAB_STRIDE_MIN);
    body->line_objects = line_objects(body->stride);
    choose_slab(cache, body);
    choose_window(cache, body);
    choose_sizes(body, layout->object_cache_bytes);
}

/* The nodes are behind the body. */
static size_t body_bytes(void)
{
    return sizeof(struct cache_body) + os_node_count() * sizeof(struct slab_node);
}

/* Returns NULL if there is no memory. */
static struct cache_body *body_make(const struct prudence_cache *cache,
                                    const struct cache_layout *layout)
{
    struct cache_body *body = os_meta_alloc_as(body_bytes(), OS_ALLOC_DEFAULT);

    if (!body)
        return NULL;
    body->nodes = (struct slab_node *)(void *)(body + 1);
    for (unsigned i = 0; i < os_node_count(); i++)
        node_lists_init(&body->nodes[i]);
    body_apply(body, cache, layout);
    return body;
}

/* Gives the cache a body, and the words that inlined code reads once there is a window. Release:
 * pairs with cache_body_of(). */
static void body_install(struct prudence_cache *cache, struct cache_body *body)
{
    if (body->slab_bytes) {
        cache->window_mask = body->slab_bytes - 1;
        cache->window_grid = grid_of(body->stride, body->capacity);
    }
    store_release(&cache->body, body);
}

/* Ends the nodes and the window of a body. The rest may be read until body_forget(). */
static void body_end(struct cache_body *body)
{
    struct slab_node *nodes = body->nodes;

    body->slab_percpu = body->aside_percpu = os_percpu_owned_lines;
    store_relaxed(&body->nodes, (struct slab_node *)NULL);
    if (body->window)
        os_window_unmake(body->window);
    for (unsigned i = 0; i < os_node_count(); i++)
        node_lists_end(&nodes[i], body->slab_bytes);
}

static void body_forget(struct cache_body *body)
{
    os_meta_free(body, body_bytes());
}

static void *lines_make(void)
{
    char *lines = os_meta_alloc_as(os_cpu_count() * OS_PERCPU_STRIDE, OS_ALLOC_DEFAULT);

    for (unsigned i = 0; lines && i < os_cpu_count(); i++)
        os_percpu_line_init((struct os_percpu_line *)(lines + i * OS_PERCPU_STRIDE), i);
    return lines;
}

static void lines_free(void *lines)
{
    if (lines && lines != os_percpu_owned_lines)
        os_meta_free(lines, os_cpu_count() * OS_PERCPU_STRIDE);
}

/* Gives the cache lines, and opens the paths that none of `extensions` closes. Release: a thread
 * that finds the lines of a cache that was cold also finds them initialized. */
static void lines_install(struct prudence_cache *cache, void *lines, uint32_t extensions)
{
    store_release(&cache->percpu, lines);
    if (os_percpu_rseq && !extensions_meet_objects(cache->slab_extensions))
        store_release(&cache->body->slab_percpu, lines);
    if (os_percpu_rseq && !extensions_meet_objects(extensions))
        store_release(&cache->fast_percpu, lines);
    else if (os_percpu_rseq && cache->flags & CACHE_DESTRUCTED &&
             !extensions_meet_aside(extensions))
        store_release(&cache->body->aside_percpu, lines);
}

/* Makes a body and lines. A cold cache has none. */
static bool parts_make(struct prudence_cache *cache, const struct cache_layout *layout)
{
    struct cache_body *body;
    void *lines;

    if (layout->common) {
        cache->body = layout->common->body;
        cache->percpu = os_percpu_owned_lines;
        cache->state = CACHE_COLD;
        return true;
    }
    body = body_make(cache, layout);
    if (!body)
        return false;
    body_install(cache, body);
    if (layout->no_cpu_caches)
        return true;
    lines = lines_make();
    if (lines)
        lines_install(cache, lines, cache->extensions);
    return lines != NULL;
}

static bool has_own_body(const struct prudence_cache *cache)
{
    return cache->body && (!cache->common || cache->body != cache->common->body);
}

/* Frees all parts of the cache except the structure and the body. Fast paths are closed, so a late
 * call takes the slow paths, which see that the cache is destroyed. */
static void cache_release_parts(struct prudence_cache *cache)
{
    void *lines = cache->percpu;

    store_relaxed(&cache->fast_percpu, (void *)os_percpu_owned_lines);
    store_relaxed(&cache->state, (uint8_t)CACHE_DESTROYED);
    cache->percpu = NULL;
    if (has_own_body(cache))
        body_end(cache->body);
    lines_free(lines);
}

void cache_forget(struct prudence_cache *cache)
{
    if (has_own_body(cache))
        body_forget(cache->body);
    if (!cache->common)
        os_meta_free(cache, sizeof *cache);
}

/* Number of caches ever made; protected by slab_caches_lock. */
static uint64_t caches_made;

/* Creates a cache of a valid layout. Returns NULL if memory ran out. May sleep.
 *
 * A cold cache (ADR 148) is one of thousands that are rarely used. It takes only this structure:
 * the body is that of `layout->common`, which is never destroyed, and from which extensions
 * allocate its objects. cache_warm() makes an ordinary cache of it. */
struct prudence_cache *cache_create(const char *name, const struct cache_layout *layout)
{
    struct prudence_cache *cache =
        layout->structure ? layout->structure : os_meta_alloc_as(sizeof *cache, OS_ALLOC_DEFAULT);

    if (!cache)
        return NULL;
    layout_apply(cache, name, layout);
    if (!parts_make(cache, layout) || !extensions_cache_made(cache)) {
        cache_release_parts(cache);
        cache_forget(cache);
        return NULL;
    }
    gp_domain_get(cache->domain);
    os_lock_take(&slab_caches_lock);
    cache->number = ++caches_made;
    list_append(layout->common ? &slab_cold_caches : &slab_caches, &cache->link);
    os_lock_release(&slab_caches_lock);
    return cache;
}

/* Puts a cache that was cold on the other list, at the place of its number. */
static void list_as_warm(struct prudence_cache *cache)
{
    struct list *before = slab_caches.previous;

    all_caches_remove(cache);
    while (before != &slab_caches &&
           list_entry(before, struct prudence_cache, link)->number > cache->number)
        before = before->previous;
    list_append(before->next, &cache->link);
}

/*
 * Makes a warm cache of a cold one. The caller holds slab_caches_lock. A thread that finds the
 * cache warm by cache_is_cold() also finds the parts, and so does a thread that finds no extension,
 * which checks no further.
 */
static void warm(struct prudence_cache *cache, struct cache_body *body, void *lines,
                 uint32_t others)
{
    body_install(cache, body);
    lines_install(cache, lines, others);
    list_as_warm(cache);
    store_release(&cache->state, (uint8_t)CACHE_WARM); /* pairs with cache_is_cold() */
    store_release(&cache->extensions, others);         /* pairs with cache_extensions() */
}

/*
 * Gives a cold cache a body and lines, takes the extension that allocated from `common`, and gives
 * it those that began since (extensions_begin). From then on the cache has slabs of its own;
 * objects in slabs of `common` stay there until they are freed. Calls on other CPUs that still find
 * the cache cold use `common`, which is as good. Does nothing if there is no memory, or another
 * thread checks the list of caches. The caller holds nothing.
 */
void cache_warm(struct prudence_cache *cache, uint32_t extension)
{
    const struct cache_layout layout = {
        .object_size = cache->object_size, .alignment = cache->alignment, .named = cache->named};
    struct cache_body *body = body_make(cache, &layout);
    void *lines = body ? lines_make() : NULL;
    uint32_t of_slabs; /* as when the cache was made */

    if (lines && os_lock_try(&slab_caches_lock)) {
        if (cache_is_cold(cache)) {
            warm(cache, body, lines,
                 (cache->extensions | extensions_wanted(&layout, &of_slabs)) & ~extension);
            body = NULL;
            lines = NULL;
        }
        os_lock_release(&slab_caches_lock);
    }
    if (body) {
        body_end(body);
        body_forget(body);
    }
    lines_free(lines);
}

/* ---------------------------------------------------------------------------------- destruction */

/* Moves all free or safe objects of a CPU to their slabs. The caller owns all CPUs. */
static void drain_owned_cpu(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    void *objects[TRANSFER_MAX];
    unsigned taken;

    if (!cpu->slots)
        return;
    do {
        /* Each time, because there may have been no place for a batch. */
        latent_cache_close(cache, cpu);
        latent_cache_take_back(cache, cpu);
        taken = object_cache_take(cpu, objects, TRANSFER_MAX);
        count_add(&cpu->counts.unstacked, taken);
        taken = taken ? taken : latent_cache_take_safe(cache, cpu, objects, TRANSFER_MAX);
        node_flush(cache, objects, taken);
    } while (taken);
}

static void drain_owned(struct prudence_cache *cache)
{
    for (unsigned i = 0; cache->percpu && i < os_cpu_count(); i++)
        drain_owned_cpu(cache, cpu_cache_of(cache, i));
    node_shrink_to(cache, 0);
}

static unsigned slabs_left(const struct prudence_cache *cache)
{
    unsigned slabs = 0;

    for (unsigned i = 0; i < os_node_count(); i++)
        slabs += cache->body->nodes[i].slabs;
    return slabs;
}

/* Returns the number of objects that slabs of a list gave out and that are not in a latent slab. */
static size_t allocated_in(struct list *slabs)
{
    struct list *item;
    size_t allocated = 0;

    list_for_each(item, slabs)
    {
        struct slab *slab = list_entry(item, struct slab, link);

        allocated += slab->capacity - slab->free - slab->latent;
    }
    return allocated;
}

/* Returns the number of live objects: those that slabs gave out, minus latent ones, which are in
 * rings (`latent`) or slabs. */
static size_t live_objects(struct prudence_cache *cache)
{
    size_t allocated = 0, latent = 0;

    for (unsigned i = 0; cache->percpu && i < os_cpu_count(); i++)
        latent += latent_cache_count(cpu_cache_of(cache, i));
    for (unsigned i = 0; i < os_node_count(); i++) {
        struct slab_node *node = &cache->body->nodes[i];

        os_lock_take(&node->lock);
        for (unsigned list = 0; list < SLAB_LISTS; list++)
            allocated += allocated_in(&node->lists[list]);
        allocated += allocated_in(&node->away);
        os_lock_release(&node->lock);
    }
    return allocated > latent ? allocated - latent : 0;
}

/*
 * Merges and empties everything. Returns true if no slab remains; then the cache is off the list,
 * so that fork, pressure and trim cannot find it, and every CPU stays owned permanently. Otherwise
 * *live is the number of live objects. The lock of the list keeps out threads that carry objects of
 * the cache, which would seem live. If CPUs cannot be fenced (ADR 123), the caller must ensure that
 * no other thread uses the cache.
 */
static bool retire(struct prudence_cache *cache, size_t *live)
{
    bool empty, fenced;

    os_lock_take(&slab_caches_lock);
    all_caches_wait_for_visitors(cache);
    decay_forget(cache);
    if (OS_BUDGET_IS_SHARED)
        budget_share_forget(cache);
    cpu_cache_claim_all(cache, &empty);
    fenced = os_percpu_fence_all();
    cpu_cache_confirm_all(cache, &empty);
    drain_owned(cache);
    if (OS_PURGES_WITHIN_SLABS)
        hollow_leave(cache);
    *live = live_objects(cache);
    empty = slabs_left(cache) == 0;
    if (empty)
        all_caches_remove(cache);
    else
        cpu_cache_release_all(cache, &empty, fenced);
    os_lock_release(&slab_caches_lock);
    return empty;
}

static void destroy_cold(struct prudence_cache *cache)
{
    os_lock_take(&slab_caches_lock);
    all_caches_remove(cache);
    os_lock_release(&slab_caches_lock);
    gp_domain_put(cache->domain);
    extensions_cache_going(cache);
    cache_release_parts(cache);
}

#define OBJECTS_PAUSE_NS 100000 /* ns; between two checks of a destruction that waits for objects */

/* Waits for a grace period, or for readers to let some objects go, if they name single ones. */
static void wait_for_readers(struct prudence_cache *cache)
{
    gp_cookie cookie = gp_snapshot(cache->domain);

    if (likely(!(cache->flags & CACHE_POLLS_OBJECTS))) {
        gp_wait(cache->domain, cookie, 0);
        return;
    }
    drain_cache(cache, false);
    if (cache->flags & CACHE_TYPESAFE) {
        gp_wait(cache->domain, cookie, os_clock_ns() + OBJECTS_PAUSE_NS);
    } else if (drain_leaves_latent(cache)) {
        gp_wait_for_sections(cache->domain, cookie, 0, false);
        os_sleep_ns(OBJECTS_PAUSE_NS);
    }
}

/*
 * Returns false while objects are live, with their number in *live. The caller has made sure that
 * no object in a slab of `common` is live or read. The cache's structure stays until
 * cache_forget(). Waits for grace periods of this cache's domain, and no other, as long as there
 * are latent objects or type-safe pages. Holds nothing while waiting.
 */
bool cache_destroy(struct prudence_cache *cache, size_t *live)
{
    if (cache_is_cold(cache)) {
        destroy_cold(cache);
        return true;
    }
    preflush_forget(cache);
    os_hands_full(); /* off the list, the cache still holds the domain */
    while (!retire(cache, live)) {
        os_hands_empty();
        if (*live)
            return false;
        wait_for_readers(cache);
        os_hands_full();
    }
    preflush_forget(cache);
    for (unsigned i = 0; cache->percpu && i < os_cpu_count(); i++)
        cpu_cache_free_arrays(cache, cpu_cache_of(cache, i));
    gp_domain_put(cache->domain);
    os_hands_empty();
    extensions_cache_going(cache);
    cache_release_parts(cache);
    return true;
}
