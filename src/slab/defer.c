/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * An object's way in, when readers may still hold it: latent cache, else latent slab (paper,
 * Algorithm 1, lines 34 to 51).
 *
 * Its memory is not touched: all that is remembered stands in rings and bitmaps. Deferring never
 * fails, and waits only to keep garbage under latent_limit (latent_make_room): before the object is
 * in anybody's books, so that what waits is not yet garbage.
 */
#include "gp/gp.h"
#include "os/os.h"
#include "slab/cache.h"
#include "slab/cpu_cache.h"
#include "slab/extension.h"
#include "slab/give.h"
#include "slab/latent_account.h"
#include "slab/latent_cache.h"
#include "slab/node.h"
#include "slab/object_cache.h"
#include "slab/preflush.h"
#include "slab/slab.h"
#include "slab/slow_path.h"
#include "slab/throttle.h"
#include "slab/upkeep.h"

#define LONG_RING 2048 /* objects: longer than what waits for readers that answer */

/* What a deferral did and found out while it owned the caches. */
struct deferral {
    bool past_limit; /* in: latent_limit does not count any more */
    enum latent_room room;
    bool appended;
    bool no_arrays;
    bool begins;    /* it was the first in that ring */
    bool may_drive; /* batches wait for `cookie` */
    bool comes_by;
    gp_cookie cookie;
    /* The hand: objects taken out of the caches, on their way to the nodes. Free and safe ones
     * (`flushed`), or latent ones (`overflowed`), never both: it is filled once in a deferral, and a step
     * that finds it full takes nothing. */
    void *objects[TRANSFER_MAX];
    unsigned flushed, overflowed;
    gp_cookie overflow_cookie;
};

static bool hand_is_empty(const struct deferral *deferral)
{
    return !deferral->flushed && !deferral->overflowed;
}

static void flush_and_merge(struct prudence_cache *cache, struct cpu_cache *cpu,
                            struct deferral *deferral)
{
    if (stack_count(&cpu->line) + batch_of(cache, cpu) > cpu->size) {
        deferral->flushed = object_cache_take_coldest(
            cpu, deferral->objects,
            (unsigned)min_size(object_cache_flush_count(cpu), TRANSFER_MAX));
        count_add(&cpu->counts.unstacked, deferral->flushed);
        cpu->churned = true;
    }
    latent_merge(cache, cpu);
}

/* Room in the ring, if its oldest batch is safe: by a merge, for which a flush makes room in the object
 * cache. Objects whose destructors run soon are never merged there (latent_merge): they go to their
 * slabs. */
static void make_room(struct prudence_cache *cache, struct cpu_cache *cpu,
                      struct deferral *deferral)
{
    if (!hand_is_empty(deferral) || !latent_oldest_is_safe(cache, cpu))
        return;
    if (unlikely(cache->flags & CACHE_DESTRUCT_SOON))
        deferral->flushed = latent_take_safe(cache, cpu, deferral->objects, TRANSFER_MAX);
    else
        flush_and_merge(cache, cpu, deferral);
}

/* At the limit, with nothing that is safe: the oldest latent objects go to their latent slabs. A
 * batch of them, since they share a cookie, and a node's lock is worth more than one object. */
static void overflow(struct prudence_cache *cache, struct cpu_cache *cpu, struct deferral *deferral)
{
    if (hand_is_empty(deferral))
        deferral->overflowed = latent_take_oldest(cache, cpu, deferral->objects, TRANSFER_MAX,
                                                  &deferral->overflow_cookie);
}

/* Room for one object in the account. False: the limit on latent bytes does not allow it. */
static bool reserve(struct prudence_cache *cache, struct cpu_cache *cpu, struct deferral *deferral)
{
    if (latent_is_full(cache, cpu)) {
        bool all_is_safe;

        latent_close(cache, cpu);
        all_is_safe = latent_end_at_once(cache, cpu);
        if (GP_CALLERS_DRIVE && latent_merge(cache, cpu) &&
            (all_is_safe || latent_count(cpu) > LONG_RING))
            latent_merge(cache, cpu); /* so a long ring empties, by a batch each time */
    }
    if (cpu->reserved != load_relaxed(&cpu->line.ring_tail))
        return true; /* room yet, but no fast path: as with check=1 */
    deferral->room = latent_open(cache, cpu);
    if (deferral->room == LATENT_NO_ROOM && deferral->past_limit) {
        latent_open_past_limit(cache, cpu);
        deferral->room = LATENT_ROOM;
    }
    return deferral->room != LATENT_NO_ROOM;
}

static void append(struct prudence_cache *cache, struct cpu_cache *cpu, void *object,
                   bool may_overflow, struct deferral *deferral)
{
    deferral->appended = latent_append(cache, cpu, object);
    if (!deferral->appended) {
        make_room(cache, cpu, deferral);
        deferral->appended = latent_append(cache, cpu, object);
    }
    if (!deferral->appended && may_overflow) {
        overflow(cache, cpu, deferral);
        deferral->appended = latent_append(cache, cpu, object);
    }
    deferral->may_drive = latent_newest_cookie(cpu, &deferral->cookie);
    if (stack_count(&cpu->line) + latent_count(cpu) > cpu->size)
        preflush_schedule(cache, cpu);
}

/* False when the caches are another's. */
static bool append_here(struct prudence_cache *cache, void *object, bool may_overflow,
                        struct deferral *deferral)
{
    struct cpu_cache *cpu = cpu_cache_take(cache, deferral);

    if (!cpu)
        return false;
    deferral->no_arrays = !cpu->slots;
    deferral->begins = !load_relaxed(&cpu->line.ring_tail);
    if (cpu->slots && reserve(cache, cpu, deferral))
        append(cache, cpu, object, may_overflow, deferral);
    cpu_cache_release(cpu);
    return true;
}

/* What was taken out of the caches goes to the nodes. */
static void put_away(struct prudence_cache *cache, struct deferral *deferral)
{
    if (deferral->flushed)
        node_flush(cache, deferral->objects, deferral->flushed);
    if (deferral->overflowed)
        node_overflow(cache, deferral->objects, deferral->overflowed, deferral->overflow_cookie);
    deferral->flushed = deferral->overflowed = 0;
}

static bool append_and_put_away(struct prudence_cache *cache, void *object, bool may_overflow,
                                struct deferral *deferral)
{
    bool owned;

    os_carry_begin();
    owned = append_here(cache, object, may_overflow, deferral);
    put_away(cache, deferral);
    os_carry_end();
    return owned;
}

/* Into the latent cache if that is possible; false when the object is still in nobody's books. */
static bool append_or_overflow(struct prudence_cache *cache, void *object,
                               struct deferral *deferral)
{
    bool owned = append_and_put_away(cache, object, false, deferral);

    if (owned && deferral->no_arrays && cpu_cache_grow(cache, cache->size_min)) {
        owned = append_and_put_away(cache, object, false, deferral);
    } else if (owned && !deferral->appended && deferral->room && deferral->may_drive) {
        /* At the limit: perhaps a grace period is all that is missing. */
        gp_advance(cache->domain, deferral->cookie);
        owned = append_and_put_away(cache, object, true, deferral);
    }
    deferral->comes_by = owned || count_bypass(cache);
    return deferral->appended;
}

/* False when latent_limit does not allow it, and `past_limit` does not override it. *comes_by: see count_bypass. */
static bool defer_past_ring(struct slab *slab, void *object, bool past_limit, bool *comes_by)
{
    struct prudence_cache *cache = slab->cache;
    struct deferral deferral UNINITIALIZED;
    bool done;

    deferral.past_limit = past_limit;
    deferral.room = LATENT_ROOM; /* there will be a latent slab, where the ring is another's */
    deferral.appended = deferral.may_drive = deferral.begins = false;
    deferral.flushed = deferral.overflowed = 0;
    done = append_or_overflow(cache, object, &deferral);
    *comes_by = deferral.comes_by;
    if (!done && deferral.room)
        done = node_put_latent(slab, object, past_limit);
    if (OS_CACHES_GIVE && unlikely(deferral.begins))
        give_half(cache);
    if (deferral.room == LATENT_ROOM_CROWDED)
        latent_take_back_here();
    if (unlikely(preflush_enabled))
        os_idle_kick();
    return done;
}

static bool defer(struct slab *slab, void *object, bool past_limit, bool *comes_by)
{
    return slab->cache->lines && likely(!slab->alone)
               ? defer_past_ring(slab, object, past_limit, comes_by)
               : node_put_latent(slab, object, past_limit);
}

void cache_defer(struct slab *slab, void *object)
{
    struct prudence_cache *cache = slab->cache;
    size_t bytes = slab_object_bytes(slab);
    bool past_limit = latent_never_fits(bytes), comes_by = true;
    struct throttle throttle = {.began = 0};

    if (unlikely(past_limit) && latent_wait(cache)) {
        if (unlikely(load_relaxed(&slab->extensions)))
            extensions_safe(slab, object);
        cache_put(slab, object);
        return;
    }
    while (unlikely(!defer(slab, object, past_limit, &comes_by)))
        past_limit = !latent_make_room(cache, bytes, &throttle);
    if (unlikely(past_limit) && !latent_fits(0, false))
        gp_overrun("latent_limit", latent_bytes(), load_relaxed(&slab_latent_limit));
    if (comes_by)
        come_by();
}
