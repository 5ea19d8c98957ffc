/* SPDX-License-Identifier: MIT */
/*
 * The extension instruments zeroes the memory of free objects, and informs tools about objects.
 *
 *   allocate   checks that the object is still zero (if states are kept); informs the tools
 *   free       zeroes; informs the tools
 *   defer      informs the tools. The memory is neither written nor closed ...
 *   safe       ... before the grace period is over; then zeroes and informs the tools
 *
 * A lone object is neither zeroed nor closed here: guard.c closes the page of a guarded one, and
 * profile.c zeroes the pages of a sampled one.
 */
#include "guard/instruments.h"

#include <string.h>

#include "guard/annotate.h"
#include "guard/check.h"
#include "guard/faults.h"
#include "guard/guard.h"
#include "guard/large_guard.h"
#include "guard/red_zones.h"
#include "guard/stack_depot.h"
#include "race_detector.h"
#include "slab/cache.h"
#include "slab/misuse.h"

COLD static enum extension_wish instruments_wants(const struct cache_layout *layout)
{
    (void)layout;
    return extension_wanted_if(zero_on_free || annotate_on || race_detector_on);
}

/* ------------------------------------------------------------------------------------- zeroing */

/* Freed objects of other caches may be read, as constructed or type-safe, or cannot be accessed. */
static bool is_zeroed(const struct prudence_cache *cache)
{
    return zero_on_free && !cache->body->constructor &&
           !(cache->flags & (CACHE_TYPESAFE | CACHE_CLOSED));
}

/* Zeroes the bytes that the user may have written; with notes, these are the bytes asked for. */
static void zero(const struct slab *slab, void *object)
{
    size_t size = annotate_size(slab, object);

    if (slab->cache->percpu && is_zeroed(slab->cache))
        memset(object, 0, size ? size : slab_usable_bytes(slab));
}

/* Returns whether all bytes are zero. Avoids the C library's functions, because ThreadSanitizer
 * sees those and would take this for a read by the program. */
static bool are_zero(const char *bytes, size_t size)
{
    typedef uint64_t two_words __attribute__((vector_size(16)));
    two_words one, other, sum = {0}; /* vectors, because the check is a large part of a free */
    uint64_t word, all;

    for (; size >= 2 * sizeof one; bytes += 2 * sizeof one, size -= 2 * sizeof one) {
        __builtin_memcpy(&one, bytes, sizeof one);
        __builtin_memcpy(&other, bytes + sizeof one, sizeof other);
        sum |= one | other;
    }
    all = sum[0] | sum[1];
    for (; size >= sizeof word; bytes += sizeof word, size -= sizeof word) {
        __builtin_memcpy(&word, bytes, sizeof word);
        all |= word;
    }
    while (size-- > 0)
        all |= (unsigned char)*bytes++;
    return !all;
}

/* Checks before an object is handed out that freed memory is still zero. If a tool watches, it saw
 * the write itself. */
void instruments_check_zero(const struct slab *slab, const void *object)
{
    const char *byte = object;

    if (!object_words(slab) || annotate_on || !slab->cache->percpu || !is_zeroed(slab->cache))
        return;
    if (likely(are_zero(byte, slab_usable_bytes(slab))))
        return;
    while (!*byte)
        byte++;
    os_report(
        "write after free: byte %zu of %p of cache '%s' was written after the object was freed",
        (size_t)(byte - (const char *)object), object, slab->cache->name);
    misuse_explain_and_abort(slab, object);
}

/* ----------------------------------------------------------- the life of a cache and of a slab */

static bool instruments_cache_made(struct prudence_cache *cache)
{
    if (cache->body->context)
        annotate_root_begins(&cache->body->context, sizeof cache->body->context);
    return true;
}

static void instruments_cache_going(struct prudence_cache *cache)
{
    if (cache->body->context)
        annotate_root_ends(&cache->body->context, sizeof cache->body->context);
}

static bool instruments_made(struct slab *slab)
{
    if (slab->alone) {
        annotate_root_begins(slab->pages, slab->bytes);
        return true;
    }
    annotate_pages_taken();
    if (object_words(slab) && slab->cache->percpu && is_zeroed(slab->cache))
        memset(slab->pages, 0, slab->bytes); /* because instruments_check_zero() expects zeros */
    return annotate_made(slab);
}

static void instruments_ready(struct slab *slab)
{
    annotate_all_pass(slab);
}

static void instruments_going(struct slab *slab)
{
    if (slab->alone) {
        annotate_root_ends(slab->pages, slab->bytes);
        return;
    }
    if (!slab->cache->percpu && is_zeroed(slab->cache) &&
        !slab->cache->body->margin) { /* a large block, zeroed here because no caller waits */
        annotate_open(slab);
        memset(slab->base, 0, slab_usable_bytes(slab));
    }
    annotate_pages_pass(slab);
    annotate_going(slab);
}

/* ---------------------------------------------------------------------------- an object's life */

static void instruments_allocated(struct slab *slab, void *object, size_t size, bool zeroed)
{
    annotate_taken(slab, object);
    if (slab->alone)
        return;
    instruments_check_zero(slab, object);
    annotate_allocated(slab, object, size, zeroed);
}

static void instruments_deferred(struct slab *slab, void *object, const char *what)
{
    (void)what;
    annotate_passes(slab, object);
    if (!slab->alone)
        annotate_held(slab, object);
}

static bool instruments_safe(struct slab *slab, void *object)
{
    annotate_safe(slab, object);
    annotate_passes(slab, object);
    return true;
}

static bool instruments_released(struct slab *slab, void *object, bool may_keep)
{
    (void)may_keep;
    if (!slab->alone) {
        zero(slab, object);
        annotate_released(slab, object);
    }
    annotate_passes(slab, object);
    return false;
}

/* Returns whether the slab is a large block that gives pages back when it shrinks. One with margins
 * keeps its pages. */
static bool gives_pages_back(const struct slab *slab)
{
    return !slab->cache->percpu && !slab->cache->body->margin;
}

/* Bounds stay exact, and no old byte survives. Red zones follow the size and zero the bytes that
 * are given up, unless their pages are gone by then. */
static bool instruments_must_move(const struct slab *slab)
{
    return annotate_on || (zero_on_free && (!has_red_zones(slab) || gives_pages_back(slab)));
}

static size_t instruments_size_asked(const struct slab *slab, const void *object)
{
    return slab->alone ? 0 : annotate_size(slab, object);
}

const struct slab_extension instruments_extension = {.wants = instruments_wants,
                                                     .cache_made = instruments_cache_made,
                                                     .cache_going = instruments_cache_going,
                                                     .made = instruments_made,
                                                     .ready = instruments_ready,
                                                     .going = instruments_going,
                                                     .allocated = instruments_allocated,
                                                     .deferred = instruments_deferred,
                                                     .safe = instruments_safe,
                                                     .released = instruments_released,
                                                     .size_asked = instruments_size_asked,
                                                     .must_move = instruments_must_move};

/* --------------------------------------------------------------------------------- the process */

COLD void instruments_start(void)
{
    annotate_start();
    guard_start();
    slab_redzone = annotate_on ? ANNOTATE_REDZONE : red_zones_wanted ? RED_ZONE : 0;
    red_zones_start();
    large_guard_start();
    if (slab_margin)
        faults_watch();
}

COLD void instruments_prime(void)
{
    if ((load_relaxed(&check_wanted) || load_relaxed(&guard_interval)) &&
        load_relaxed(&stack_depot_frames))
        os_trace_prime();
}
