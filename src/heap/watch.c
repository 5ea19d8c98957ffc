/* SPDX-License-Identifier: MIT */
/*
 * The watched path. Caches made while an option that looks for bugs is on, or a tool that watches
 * memory is here, are `watched`: no fast path serves them, every call arrives here, and is served by
 * the same restartable sequences where its state is not checked.
 *
 *   allocate   guarded, if it is this one's turn; else as ever; told to the tools
 *   free       the state is checked; zeroed; told to the tools; rests in quarantine; as ever
 *   defer      the state is checked; as ever. Its memory is neither written nor closed ...
 *   safe       ... before its grace period is over: zeroed; told to the tools
 *
 * A guarded object (guard.c) goes its own way: it is a slab of its own.
 */
#include <string.h>

#include "heap/annotate.h"
#include "heap/depot.h"
#include "heap/destruct.h"
#include "heap/guard.h"
#include "heap/quarantine.h"
#include "heap/watch.h"
#include "race_detector.h"
#include "slab/terms.h"

bool zero_on_free;

/* Whether the sequences may serve a cache in spite of its closed fast paths. */
static bool has_sequences(const struct prudence_cache *cache)
{
    return os_percpu_rseq && cache->lines;
}

/* ------------------------------------------------------------------------------------- zeroing */

/* Freed objects of the others may be looked at: as constructed, or type-safe. */
static bool is_zeroed(const struct prudence_cache *cache)
{
    return zero_on_free && !cache->constructor && !(cache->flags & CACHE_TYPESAFE);
}

/* The whole of what it takes, if it has not been given back to the tools yet. */
static void zero(const struct slab *slab, void *object)
{
    size_t size = annotate_size(slab, object);

    if (slab->cache->lines && is_zeroed(slab->cache))
        memset(object, 0, size ? size : slab_object_bytes(slab));
}

/* With check=1 a freed object is looked at before it is handed out: it must still be zero. Where a
 * tool watches, it saw the write itself. */
static void check_zero(const struct slab *slab, const void *object)
{
    const char *byte = object, *end = byte + slab_object_bytes(slab);

    if (!slab->states || annotate_on || !is_zeroed(slab->cache))
        return;
    while (byte < end && !*byte)
        byte++;
    if (byte == end)
        return;
    os_report("write after free: byte %zu of %p of cache '%s' was written after it was freed",
              (size_t)(byte - (const char *)object), object, slab->cache->name);
    slab_watch.explain(slab, object);
    os_abort();
}

/* --------------------------------------------------------------------------- what slab/ tells us */

static bool made(struct slab *slab)
{
    if (slab->guarded)
        return true;
    annotate_pages_taken();
    if (slab->states && slab->cache->lines && is_zeroed(slab->cache))
        memset(slab->pages, 0, slab->bytes); /* for check_zero */
    return annotate_made(slab);
}

static void ready(struct slab *slab)
{
    annotate_all_pass(slab);
}

static void going(struct slab *slab)
{
    if (slab->guarded) {
        guard_going(slab);
        return;
    }
    if (!slab->cache->lines &&
        is_zeroed(slab->cache)) { /* a large block: nobody waits for it here */
        annotate_open(slab);
        memset(slab->pages, 0, slab->bytes);
    }
    annotate_pages_pass(slab);
    annotate_going(slab);
}

static void safe(struct slab *slab, void *object)
{
    annotate_safe(slab, object);
    if (!slab->guarded && !slab->cache->destructor) {
        zero(slab, object);
        annotate_released(slab, object);
    }
    annotate_passes(slab, object);
}

static void explain(const struct slab *slab, const void *pointer)
{
    uint32_t here = depot_here();

    if (here)
        depot_print("called by:", here);
    if (guard_has(pointer))
        guard_explain(pointer);
    else if (slab && slab->states && slab_has(slab, pointer))
        depot_print_word(object_state_word(slab, pointer));
}

void watch_start(void)
{
    annotate_start();
    guard_start();
    slab_watch = (struct slab_watch){
        .wanted =
            zero_on_free || guard_interval || quarantine_limit || annotate_on || race_detector_on,
        .states =
            quarantine_limit > 0, /* what rests looks live to the slab: only its state says more */
        .redzone = annotate_on ? ANNOTATE_REDZONE : 0,
        .made = made,
        .ready = ready,
        .going = going,
        .safe = safe,
        .trace = slab_check || guard_interval ? depot_here : NULL,
        .explain = explain,
        .pressure = quarantine_limit ? watch_flush : NULL,
        .destruct = destruct_kick,
    };
}

void watch_prime(void)
{
    if ((slab_check || guard_interval) && depot_frames)
        os_trace_prime();
}

void watch_destroyed(struct slab *slab, void *object)
{
    zero(slab, object);
    annotate_released(slab, object);
    annotate_passes(slab, object);
}

/* ----------------------------------------------------------------------------------- allocating */

static void *alloc_unguarded(struct prudence_cache *cache)
{
    void *object = !cache->checked && has_sequences(cache) ? os_percpu_pop(&cache->lines) : NULL;

    return object ? object : cache_alloc_slow(cache, OS_ALLOC_DEFAULT);
}

void *watch_alloc(struct prudence_cache *cache, size_t size)
{
    void *object = NULL;

    size = size ? size : cache->object_size;
    if (guard_interval && guard_is_due())
        object = guard_alloc(cache, size);
    if (object) {
        annotate_taken(slab_known(object), object);
        return object;
    }
    object = alloc_unguarded(cache);
    if (object && cache->destructor)
        object = destruct_before_use(cache, object);
    if (object)
        annotate_taken(slab_known(object), object);
    if (object && (cache->checked || annotate_on)) {
        struct slab *slab = slab_known(object);

        check_zero(slab, object);
        annotate_allocated(slab, object, size, false);
    }
    return object;
}

void watch_large(struct slab *slab, size_t size, bool zeroed)
{
    annotate_taken(slab, slab->base);
    if (slab->states)
        object_state_change(slab, slab->base, OBJECT_FREE, OBJECT_LIVE, "allocation");
    annotate_allocated(slab, slab->base, size, zeroed);
}

/* -------------------------------------------------------------------------------------- freeing */

static void free_for_good(struct slab *slab, void *object)
{
    struct prudence_cache *cache = slab->cache;

    if (slab->guarded || !has_sequences(cache) || !os_percpu_push(&cache->lines, object))
        cache_free_unchecked(slab, object);
}

static void leave_quarantine(struct slab *slab, void *object)
{
    if (slab->cache->lines)
        check_zero(slab, object);
    free_for_good(slab, object);
}

void watch_free(struct slab *slab, void *object, const char *what)
{
    if (slab->states)
        object_state_change(slab, object, OBJECT_LIVE, OBJECT_FREE, what);
    if (slab->cache->destructor)
        destruct_freed(slab, object);
    if (!slab->guarded) {
        zero(slab, object);
        annotate_released(slab, object);
    }
    annotate_passes(slab, object);
    if (slab->guarded || !quarantine_limit || !quarantine_put(slab, object, leave_quarantine))
        free_for_good(slab, object);
}

void watch_flush(void)
{
    if (quarantine_limit)
        quarantine_flush(leave_quarantine);
}

void watch_flush_and_wait(void)
{
    if (!quarantine_limit)
        return;
    watch_flush();
    quarantine_wait_for_leavers();
}

void watch_free_deferred(struct slab *slab, void *object)
{
    struct prudence_cache *cache = slab->cache;
    bool guarded = slab->guarded; /* once it is deferred, the slab may go at any time */

    annotate_passes(slab, object);
    if (!guarded)
        annotate_deferred(slab, object);
    if (cache->destructor)
        destruct_note(slab, object);
    if (slab->states || !has_sequences(cache) || !os_percpu_append(&cache->lines, object))
        cache_free_deferred_slow(slab, object);
    if (guarded)
        guard_deferred(cache);
}

/* ----------------------------------------------------------------------------------------- sizes */

size_t watch_usable(const struct slab *slab, const void *object)
{
    size_t noted = slab->guarded ? guard_size(slab) : annotate_size(slab, object);

    return noted ? noted : slab_usable_bytes(slab);
}

void watch_check_live(const struct slab *slab, const void *object, const char *what)
{
    if (unlikely(slab->cache->watched))
        slab_check_live(slab, object, slab_index(slab, object), what);
}

bool watch_moves(const struct slab *slab)
{
    return unlikely(slab->cache->watched) && (slab->guarded || annotate_on || zero_on_free);
}

/* ------------------------------------------------------------------------------------------ fork */

void watch_fork_prepare(void)
{
    quarantine_fork_prepare();
    guard_fork_prepare();
    annotate_fork_prepare();
}

void watch_fork_child(void)
{
    quarantine_fork_child();
}

void watch_fork_done(void)
{
    annotate_fork_done();
    guard_fork_done();
    quarantine_fork_done();
}
