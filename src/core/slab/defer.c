/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Defers the free of an object that readers may still hold: puts it into the latent cache, else
 * into the latent slab (paper, Algorithm 1, lines 34 to 51).
 *
 * The object's memory is not touched; rings and bitmaps hold all bookkeeping. A deferral never
 * fails, and waits only to keep deferred bytes under latent_limit (throttle_make_room). While it
 * waits, the object is in no account, so waiting objects do not count as deferred.
 */
#include "gp/gp_wait.h"
#include "os/os.h"
#include "slab/cache_type.h"
#include "slab/cpu_cache.h"
#include "slab/extension.h"
#include "slab/latent_cache.h"
#include "slab/misuse.h"
#include "slab/node.h"
#include "slab/object_cache.h"
#include "slab/preflush.h"
#include "slab/reclaim/budget_share.h"
#include "slab/reclaim/decay.h"
#include "slab/reclaim/abandoned.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/poll_objects.h"
#include "slab/reclaim/throttle.h"
#include "slab/reuse.h"
#include "slab/slab.h"
#include "slab/slow_path.h"

/* Policy: when does a deferral merge twice? */
#define LONG_RING 2048 /* objects; a ring does not get longer while readers answer */

/* An object to defer, and findings about it. */
struct deferral {
    struct prudence_cache *cache;
    struct slab *slab; /* may go as soon as the object is deferred */
    void *object;
    bool past_limit; /* latent_limit no longer counts */
    bool decays;     /* the thread works for decay afterwards */
    bool twice;      /* the object is the newest in the ring already */
    /* Findings of the last visit to this CPU's caches: */
    bool owned; /* no other thread owned them */
    bool no_arrays;
    bool begins; /* nothing was deferred there before */
    enum latent_room room;
    bool appended;
    bool may_drive; /* batches wait for `cookie` */
    gp_cookie cookie;
};

/* Objects taken out of the caches for the nodes. They are either free and safe (`flushed`), or
 * latent (`overflowed`), never both. */
struct hand {
    unsigned flushed, overflowed;
    gp_cookie cookie; /* of the latent objects */
    void *objects[TRANSFER_MAX];
};

/* ---------------------------------------------------------------------------------------- owned */

/* Reserves room for one object in the account. Returns false if latent_limit does not allow it. */
static bool reserve(struct deferral *deferral, struct cpu_cache *cpu)
{
    struct prudence_cache *cache = deferral->cache;

    if (latent_cache_is_full(cache, cpu)) {
        bool all_is_safe;

        latent_cache_close(cache, cpu);
        all_is_safe = latent_cache_end_at_once(cache, cpu);
        if (GP_CALLERS_DRIVE && latent_cache_merge(cache, cpu) &&
            (all_is_safe || latent_cache_count(cpu) > LONG_RING))
            latent_cache_merge(cache, cpu); /* shortens a long ring by one more batch each time */
    }
    if (cpu->reserved != load_relaxed(&cpu->line.ring_tail))
        return true; /* room was reserved, but no fast path used it, as with check=1 */
    deferral->room = latent_cache_open(cache, cpu);
    if (deferral->room == LATENT_NO_ROOM && deferral->past_limit) {
        latent_cache_open_past_limit(cache, cpu);
        deferral->room = LATENT_ROOM;
    }
    return deferral->room != LATENT_NO_ROOM;
}

static bool is_at_limit(const struct cpu_cache *cpu)
{
    return latent_cache_count(cpu) >= cpu->size;
}

/* Makes room in the ring if the oldest batch is safe. The batch is merged, after a flush if the
 * object cache has no room. Objects with a destructor go to their slabs instead (reuse.c). */
static void make_room(struct prudence_cache *cache, struct cpu_cache *cpu, struct hand *hand)
{
    if (!latent_cache_oldest_is_safe(cache, cpu))
        return;
    if (unlikely(cache->flags & CACHE_DESTRUCTED)) {
        hand->flushed = latent_cache_take_safe(cache, cpu, hand->objects, TRANSFER_MAX);
        return;
    }
    if (stack_count(&cpu->line) + batch_of(cache, cpu) > cpu->size) {
        hand->flushed = object_cache_take_coldest(
            cpu, hand->objects, (unsigned)min_size(object_cache_flush_count(cpu), TRANSFER_MAX));
        count_add(&cpu->counts.unstacked, hand->flushed);
        cpu->churned = true;
    }
    latent_cache_merge(cache, cpu);
}

/*
 * Appends the object. At the limit, when nothing is safe, a batch of the oldest latent objects goes
 * to latent slabs: they share a cookie, and a single object is not worth taking a node's lock.
 */
static void defer_append(struct deferral *deferral, struct cpu_cache *cpu, bool may_overflow,
                         struct hand *hand)
{
    struct prudence_cache *cache = deferral->cache;

    if (is_at_limit(cpu))
        make_room(cache, cpu, hand);
    if (is_at_limit(cpu) && may_overflow && !hand->flushed) {
        hand->overflowed =
            latent_cache_take_oldest(cache, cpu, hand->objects, TRANSFER_MAX, &hand->cookie);
        cpu->churned = true;
    }
    deferral->appended = latent_cache_append(cache, cpu, deferral->object);
    deferral->may_drive = latent_cache_newest_cookie(cpu, &deferral->cookie);
    if (stack_count(&cpu->line) + latent_cache_count(cpu) > cpu->size)
        preflush_schedule(cache, cpu);
}

/* ----------------------------------------------------------------------------- nothing owned */

static void overflow(struct prudence_cache *cache, struct hand *hand)
{
    if (unlikely(cache->flags & CACHE_POLLS_OBJECTS))
        poll_objects_of_batch(cache, hand->objects, hand->overflowed, hand->cookie);
    else
        node_overflow(cache, hand->objects, hand->overflowed, hand->cookie);
}

/* Appends to the ring of this CPU, unless another thread owns it. Objects that had to make room go
 * to the nodes. */
static void defer_on_cpu(struct deferral *deferral, bool may_overflow)
{
    struct prudence_cache *cache = deferral->cache;
    struct hand hand UNINITIALIZED;
    struct cpu_cache *cpu;

    hand.flushed = hand.overflowed = 0;
    os_in_flight_begin();
    cpu = cpu_cache_take(cache, &hand);
    deferral->owned = cpu != NULL;
    if (cpu) {
        deferral->no_arrays = !cpu->slots;
        deferral->begins = !load_relaxed(&cpu->line.ring_tail);
        deferral->twice = latent_cache_is_newest(cpu, deferral->object);
        deferral->appended = deferral->twice;
        if (cpu->slots && !deferral->twice && reserve(deferral, cpu))
            defer_append(deferral, cpu, may_overflow, &hand);
        cpu_cache_release(cpu);
    }
    if (hand.flushed)
        node_flush(cache, hand.objects, hand.flushed);
    if (hand.overflowed)
        overflow(cache, &hand);
    os_in_flight_end();
}

/* Defers into the latent cache if possible, else into the latent slab. Returns false if
 * latent_limit does not allow that and `past_limit` is not set; the object is then still in no
 * account. */
static bool defer_try(struct deferral *deferral)
{
    struct prudence_cache *cache = deferral->cache;
    bool done;

    if (!cache->percpu || unlikely(deferral->slab->alone))
        return node_put_latent(deferral->slab, deferral->object, deferral->past_limit);
    /* If another thread owns the ring, the latent slab takes the object. */
    deferral->room = LATENT_ROOM;
    deferral->appended = deferral->may_drive = deferral->begins = deferral->no_arrays = false;
    defer_on_cpu(deferral, false);
    if (deferral->owned && deferral->no_arrays && abandoned_grow(cache)) {
        defer_on_cpu(deferral, false);
    } else if (deferral->owned && !deferral->appended && deferral->room && deferral->may_drive) {
        /* At the limit. Perhaps only a grace period is missing. */
        gp_advance(cache->domain, deferral->cookie);
        defer_on_cpu(deferral, true);
    }
    deferral->decays = (deferral->owned && !deferral->no_arrays) || decay_visit_count_bypass(cache);
    done =
        deferral->appended ||
        (deferral->room && node_put_latent(deferral->slab, deferral->object, deferral->past_limit));
    if (OS_BUDGET_IS_SHARED && unlikely(deferral->begins))
        budget_share_halve(cache);
    if (deferral->room == LATENT_ROOM_CROWDED)
        throttle_take_back_here();
    if (unlikely(load_relaxed(&preflush_enabled)))
        os_idle_kick();
    return done;
}

/* Waits until an object is safe that is larger than the limit. Returns false if it must be deferred
 * past the limit. */
static bool is_safe_soon(struct prudence_cache *cache, void *object, size_t bytes)
{
    gp_cookie cookie;

    return throttle_until_safe(cache, &cookie) &&
           (likely(!(cache->flags & CACHE_POLLS_OBJECTS)) ||
            gp_poll_objects(cache->domain, cookie, &object, 1, bytes, NULL) == 1);
}

/* Frees an object whose grace period is over, to its slab if it must be made fit first. */
static void free_after_wait(struct prudence_cache *cache, struct slab *slab, void *object)
{
    bool fit = likely(!(cache->flags & CACHE_DESTRUCTED));

    if (!fit)
        reuse_upcalls.to_slabs(cache, &object, 1);
    if (unlikely(load_relaxed(&slab->extensions)))
        extensions_merged(slab, object);
    if (fit) {
        free_to_cache(slab, object);
        return;
    }
    os_in_flight_begin();
    node_put(cache, &object, 1);
    os_in_flight_end();
}

void defer_in_cache(struct slab *slab, void *object)
{
    struct prudence_cache *cache = slab->cache;
    size_t bytes = slab_object_bytes(slab);
    struct deferral deferral = {.cache = cache,
                                .slab = slab,
                                .object = object,
                                .past_limit = limit_never_fits(bytes),
                                .decays = true};
    struct throttle throttle = {.began = 0};

    if (unlikely(deferral.past_limit) && is_safe_soon(cache, object, bytes)) {
        free_after_wait(cache, slab, object);
        return;
    }
    while (unlikely(!defer_try(&deferral)))
        deferral.past_limit = !throttle_make_room(cache, bytes, &throttle);
    if (unlikely(deferral.past_limit) && !limit_fits(0, false))
        gp_overrun("latent_limit", limit_used(), limit_in_force());
    if (unlikely(deferral.twice)) {
        misuse_describe_double(slab, object, true, "deferred free");
        os_misuse();
    }
    if (deferral.decays)
        decay_visit_and_drive();
}
