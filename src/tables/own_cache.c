/* SPDX-License-Identifier: MIT */
/* The caches of a table (own_cache.h). */
#include "tables/own_cache.h"

#include <prudence/heap_walk.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>
#include <prudence/structure.h>

#include "base/name.h"
#include "tables/writers.h"

void own_cache_init(struct cache_owner *owner, const char *name, struct prudence_domain *domain)
{
    name_copy(owner->name, sizeof owner->name, name);
    owner->domain = domain ? domain : prudence_default_domain();
}

bool own_cache_is_needed(const struct cache_owner *owner)
{
    return owner->domain != prudence_default_domain();
}

struct prudence_cache *own_cache_make(struct prudence_cache **place,
                                      const struct cache_owner *owner, size_t bytes,
                                      size_t alignment)
{
    const struct prudence_cache_attr attr = {.size = sizeof attr,
                                             .alignment = alignment,
                                             .flags = PRUDENCE_CACHE_HIDDEN_POINTERS,
                                             .domain = owner->domain};

    os_lock_take(&tables_lock);
    if (!*place)
        store_release(place, prudence_cache_create(owner->name, bytes, &attr));
    os_lock_release(&tables_lock);
    return load_acquire(place);
}

struct prudence_cache *own_cache_make_blocks(struct prudence_cache **place,
                                             const struct cache_owner *owner)
{
    os_lock_take(&tables_lock);
    if (!*place)
        store_release(place, prudence_cache_create_blocks(owner->name, owner->domain));
    os_lock_release(&tables_lock);
    return load_acquire(place);
}

static int free_if_live(const struct prudence_heap_slab *slab,
                        const struct prudence_heap_object *object, void *cache)
{
    (void)slab;
    if (object && object->state == PRUDENCE_OBJECT_LIVE)
        prudence_cache_free(cache, (void *)object->address);
    return 0;
}

void own_cache_destroy(struct prudence_cache *cache, const struct cache_owner *owner)
{
    if (!cache)
        return;
    if (owner->forked)
        prudence_heap_walk(cache, free_if_live, cache);
    /* Not by prudence_cache_destroy_later() alone, which also goes by hazard slots that may be
     * another thread's: the caller may destroy the domain next. */
    if (prudence_domain_may_wait(owner->domain, NULL, NULL, NULL, NULL) == 0)
        prudence_cache_destroy(cache);
    else
        prudence_cache_destroy_later(cache);
}

void own_cache_shrink(struct prudence_cache *const *place)
{
    struct prudence_cache *cache = load_acquire(place);

    if (cache)
        prudence_cache_shrink(cache);
}

void own_cache_stats(struct prudence_cache *const *place, struct prudence_cache_stats *stats)
{
    struct prudence_cache *cache = load_acquire(place);

    *stats = (struct prudence_cache_stats){.objects_live = 0};
    if (cache)
        prudence_cache_stats(cache, stats);
}
