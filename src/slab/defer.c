/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * An object's way in, when readers may still hold it: latent cache, else latent slab (paper,
 * Algorithm 1, lines 34 to 51).
 *
 * Its memory is not touched: all that is remembered stands in rings and bitmaps. Deferring never
 * fails, and waits only to keep garbage under latent_limit (latent_throttle).
 */
#include "slab/cache.h"

/* What a deferral found out while it owned the caches. */
struct deferral {
    bool appended;
    bool no_arrays;
    bool may_drive; /* batches wait for `cookie` */
    gp_cookie cookie;
    void *flushed[TRANSFER_MAX];
    unsigned flush_count;
};

/* Room for a batch that is safe: flush the object cache, merge, and by that room in the ring. */
static void flush_and_merge(struct prudence_cache *cache, struct cpu_cache *cpu,
                            struct deferral *deferral)
{
    unsigned have = stack_count(&cpu->line);

    if (!latent_oldest_is_safe(cache, cpu))
        return;
    if (have + cache->batch > cpu->size && !deferral->flush_count) {
        deferral->flush_count =
            object_cache_take(cpu, deferral->flushed, object_cache_flush_count(cpu));
        count_add(&cpu->counts.unstacked, deferral->flush_count);
    }
    latent_merge(cache, cpu);
}

/* False when the caches are another's. */
static bool append_here(struct prudence_cache *cache, void *object, struct deferral *deferral)
{
    struct cpu_cache *cpu = cpu_cache_take(cache, deferral);

    if (!cpu)
        return false;
    deferral->no_arrays = !cpu->slots;
    if (cpu->slots) {
        latent_close(cache, cpu);
        deferral->appended = latent_append(cache, cpu, object);
        if (!deferral->appended) {
            flush_and_merge(cache, cpu, deferral);
            deferral->appended = latent_append(cache, cpu, object);
        }
        deferral->may_drive = latent_newest_cookie(cache, cpu, &deferral->cookie);
        if (stack_count(&cpu->line) + latent_count(cpu) > cpu->size)
            preflush_schedule(cache, cpu);
    }
    cpu_cache_release(cpu);
    return true;
}

static void append_or_overflow(struct prudence_cache *cache, struct slab *slab, void *object)
{
    struct deferral deferral = {.appended = false};
    bool owned = append_here(cache, object, &deferral);

    if (owned && deferral.no_arrays && cpu_cache_grow(cache, cache->size_min)) {
        owned = append_here(cache, object, &deferral);
    } else if (owned && !deferral.appended && deferral.may_drive) {
        /* At the limit: perhaps a grace period is all that is missing. */
        gp_request(cache->domain, deferral.cookie);
        gp_drive_shared(cache->domain);
        owned = append_here(cache, object, &deferral);
    }
    if (!owned)
        node_count_bypass(cache);
    if (!deferral.appended)
        node_put_latent(slab, object);
    if (deferral.flush_count)
        node_flush(cache, deferral.flushed, deferral.flush_count);
    if (unlikely(preflush_enabled))
        os_idle_kick(preflush_work);
}

void cache_free_deferred_slow(struct slab *slab, void *object)
{
    struct prudence_cache *cache = slab->cache;

    if (unlikely(cache->checked))
        object_state_change(slab, object, OBJECT_LIVE, OBJECT_LATENT, "deferred free");
    if (cache->lines)
        append_or_overflow(cache, slab, object);
    else
        node_put_latent(slab, object);
    latent_throttle(cache);
}
