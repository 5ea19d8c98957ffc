/* SPDX-License-Identifier: MIT */
/*
 * Destructors of deferred objects. A deferred object goes its way as ever; beside it a bit of its slab
 * says that its destructor has not run (`undone`). Who clears the bit runs it: exactly one.
 *
 *   allocate   the object's memory is about to be reused: there
 *   a slab could go back, but has undone objects: it stays, and the callback worker runs them
 *              (callback_worker.c); never the thread that happens to shrink, which has locks of its caller's
 *   DESTRUCT_SOON   the worker settles the cache as long as anything is undone, and runs them at once
 *   shrink, barrier, destroy of the cache: there, as the caller asked for it
 *
 * While a destructor runs, its object is to its slab neither free nor latent, so nobody has it.
 */
#include "heap/destruct.h"

#include "gp/callbacks.h"
#include "heap/annotate.h"
#include "heap/watch.h"

#define AT_ONCE 32

static struct prudence_cache *serving; /* by the worker; under slab_caches_lock */
static uint32_t wanted;                /* some cache wants the worker */
static uint64_t turns;                 /* the worker's */
static __thread bool serving_here;

/* -------------------------------------------------------------------------------------- one object */

static uint64_t *undone_word(struct slab *slab, const void *object, uint64_t *bit)
{
    unsigned index = slab_index(slab, object);

    *bit = UINT64_C(1) << (index % BITS_PER_WORD);
    return &slab_undone_bits(slab)[index / BITS_PER_WORD];
}

void destruct_note(struct slab *slab, void *object)
{
    struct prudence_cache *cache = slab->cache;
    uint64_t bit, *word = undone_word(slab, object, &bit);

    if (__atomic_fetch_or(word, bit, __ATOMIC_RELAXED) & bit)
        report_double(slab, object, true, "deferred free");
    add_relaxed(&slab->undone, 1);
    if (add_relaxed(&cache->undone, 1))
        return;
    /* The first: there shall be a worker before somebody with locks held wants it. */
    if (cache->flags & CACHE_DESTRUCT_SOON)
        store_release(&wanted, 1u);
    callbacks_kick();
}

/* In this order: a slab without undone objects may go, so it has them until they are done. */
void destruct_if_undone(struct slab *slab, void *object)
{
    struct prudence_cache *cache = slab->cache;
    uint64_t bit, *word = undone_word(slab, object, &bit);

    if (!(load_relaxed(word) & bit) || !(__atomic_fetch_and(word, ~bit, __ATOMIC_RELAXED) & bit))
        return;
    annotate_taken(slab, object);
    cache->destructor(object, cache->context);
    watch_destroyed(slab, object);
    __atomic_fetch_sub(&slab->undone, 1, __ATOMIC_RELEASE);
    sub_relaxed(&cache->undone, 1);
}

/* -------------------------------------------------------------------------------------- one cache */

/* Returns whether there were any. */
static bool destruct_some(struct prudence_cache *cache, bool any_slab)
{
    void *objects[AT_ONCE];
    unsigned taken = 0;

    for (unsigned node = 0; node < os_node_count() && !taken; node++)
        taken = node_take_undone(&cache->nodes[node], any_slab, objects, AT_ONCE);
    for (unsigned i = 0; i < taken; i++)
        destruct_if_undone(slab_known(objects[i]), objects[i]);
    node_put_done(cache, objects, taken);
    return taken > 0;
}

static bool is_served(const struct prudence_cache *cache)
{
    bool served;

    os_lock_take(&slab_caches_lock);
    served = serving == cache && !serving_here;
    os_lock_release(&slab_caches_lock);
    return served;
}

void destruct_all(struct prudence_cache *cache, bool any_slab)
{
    cache_settle(cache, true);
    while (destruct_some(cache, any_slab))
        ;
    while (is_served(cache))
        os_sleep_ns(20000);
}

/* ------------------------------------------------------------------------------------- the worker */

static bool wants_worker(const struct prudence_cache *cache)
{
    return cache->destructor && load_relaxed(&cache->undone) &&
           (cache->flags & CACHE_DESTRUCT_SOON || load_relaxed(&cache->destruct_wanted));
}

/* The cache that has waited longest, held against destruction; NULL: none wants anything. */
static struct prudence_cache *next_cache(void)
{
    struct prudence_cache *next = NULL;
    struct list *item;

    os_lock_take(&slab_caches_lock);
    list_for_each(item, &slab_caches)
    {
        struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        if (wants_worker(cache) && (!next || cache->destruct_turn < next->destruct_turn))
            next = cache;
    }
    serving = next;
    os_lock_release(&slab_caches_lock);
    return next;
}

static void let_go(void)
{
    os_lock_take(&slab_caches_lock);
    serving = NULL;
    os_lock_release(&slab_caches_lock);
}

/* Whatever has become safe; then starts what makes the rest safe. */
static void serve(struct prudence_cache *cache)
{
    bool soon = cache->flags & CACHE_DESTRUCT_SOON, some = false;

    store_relaxed(&cache->destruct_wanted, 0u);
    cache->destruct_turn = ++turns;
    cache_settle(cache, false);
    while (destruct_some(cache, soon))
        some = true;
    if (soon && !some && load_relaxed(&cache->undone)) {
        cache_settle(cache, true); /* what allocations took along to the object caches */
        gp_request(cache->domain, gp_snapshot(cache->domain));
        gp_drive(cache->domain);
    } else if (!soon) {
        for (unsigned node = 0; node < os_node_count(); node++)
            node_shrink(&cache->nodes[node], cache->free_limit);
    }
}

/* Between callbacks. True: come again soon. */
static bool work(void)
{
    struct prudence_cache *cache;

    if (likely(!load_acquire(&wanted)))
        return false;
    store_relaxed(&wanted, 0u);
    cache = next_cache();
    if (!cache)
        return false;
    serving_here = true;
    serve(cache);
    serving_here = false;
    let_go();
    store_relaxed(&wanted, 1u);
    return true;
}

void destruct_kick(void)
{
    store_release(&wanted, 1u);
    callbacks_nudge();
}

void destruct_start(void)
{
    callbacks_other_work = work;
}
