/* SPDX-License-Identifier: MIT */
/*
 * Shuffled reuse. A freed object takes a random place among up to PLACES of the cache and CPU; the
 * object that was there leaves, and is free. So on average an object rests for as many frees as
 * there are places, and the last object freed is not the next one allocated. What leaves is checked
 * for writes after its free. Deferred objects do not rest here, because they have waited for their
 * grace period.
 *
 * For the slab layer, a resting object is still allocated, so the slab stays.
 *
 * No locks. A place changes only by an atomic exchange, so a thread that takes an object out owns
 * the object. A thread that flushes holds the lock of the list of caches, so that no cache is
 * destroyed in between; a cache's own users have ended when it is destroyed. A flush carries the
 * objects that it takes out (os_lock.h), so fork finds each object in a place or in the cache. A
 * thread that frees can lose one object to fork, either the new one or the one that leaves.
 */
#include "guard/shuffle.h"

#include "base/random.h"
#include "guard/instruments.h"
#include "slab/all_caches.h"
#include "slab/gate.h"
#include "slab/slab.h"

#define PLACES ((size_t)64)
#define BYTES  ((size_t)16 << 10) /* limit for a cache and CPU; but at least LEAST objects */
#define LEAST  ((size_t)4)

struct shelf {
    uint64_t randomness; /* for all CPUs; atomic, and only a hint: two threads may draw the same */
    uint32_t places;     /* places of each CPU */
    void *objects[];
};

static struct shelf *shelf_of(const struct prudence_cache *cache)
{
    return cache->body->shelf;
}

static size_t places_of(const struct prudence_cache *cache)
{
    return clamp_size(BYTES / cache->body->stride, LEAST, PLACES);
}

static size_t shelf_bytes(const struct prudence_cache *cache)
{
    return sizeof(struct shelf) + os_cpu_count() * places_of(cache) * sizeof(void *);
}

/* Excludes quarantine, where objects rest in the order of frees. */
COLD static enum extension_wish shuffle_wants(const struct cache_layout *layout)
{
    return extension_wanted_if(shuffle_wanted && !quarantine_limit && !layout->no_cpu_caches);
}

static bool shuffle_cache_made(struct prudence_cache *cache)
{
    struct shelf *shelf = os_meta_alloc(shelf_bytes(cache));
    uint64_t secret[2];

    if (!shelf)
        return false;
    os_secret(secret);
    shelf->randomness = secret[0] | 1;
    shelf->places = narrow(uint32_t, places_of(cache));
    cache->body->shelf = shelf;
    return true;
}

static void shuffle_cache_going(struct prudence_cache *cache)
{
    os_meta_free(shelf_of(cache), shelf_bytes(cache));
    cache->body->shelf = NULL;
}

/* Draws a number below `limit`, by a product, which takes a fraction of a division's time. */
static uint32_t shuffle_draw(struct shelf *shelf, uint32_t limit)
{
    uint64_t word = random_behind(load_relaxed(&shelf->randomness));

    store_relaxed(&shelf->randomness, word);
    return (uint32_t)((word >> 32) * limit >> 32);
}

/* Exchanges an object. Acquire and release order the work of the thread that put the old object
 * before the object's next use. */
static void *exchange_place(void **place, void *object)
{
    return __atomic_exchange_n(place, object, __ATOMIC_ACQ_REL);
}

/* Checks the object here, because it may lie free for long, or on another CPU than its writer's. */
static void shuffle_let_leave(void *object)
{
    struct slab *slab = slab_known(object);

    instruments_check_zero(slab, object);
    gate_put_kept(slab, object);
}

static bool shuffle_released(struct slab *slab, void *object, bool may_keep)
{
    struct shelf *shelf = shelf_of(slab->cache);
    void *other;

    if (slab->alone || !may_keep)
        return false;
    other = exchange_place(
        &shelf->objects[os_cpu_current() * shelf->places + shuffle_draw(shelf, shelf->places)],
        object);
    if (other)
        shuffle_let_leave(other);
    return true;
}

static void shuffle_flush(struct prudence_cache *cache)
{
    struct shelf *shelf = shelf_of(cache);

    for (size_t i = 0; shelf && i < (size_t)shelf->places * os_cpu_count(); i++) {
        void *object;

        if (!load_relaxed(&shelf->objects[i]))
            continue;
        os_in_flight_begin();
        object = exchange_place(&shelf->objects[i], NULL);
        if (object)
            shuffle_let_leave(object);
        os_in_flight_end();
    }
}

COLD void shuffle_flush_all(void)
{
    struct list *item;

    if (!shuffle_wanted)
        return;
    os_lock_take(&slab_caches_lock);
    list_for_each(item, &slab_caches)
    {
        shuffle_flush(list_entry(item, struct prudence_cache, link));
    }
    os_lock_release(&slab_caches_lock);
}

const struct slab_extension shuffle_extension = {.wants = shuffle_wants,
                                                 .cache_made = shuffle_cache_made,
                                                 .cache_going = shuffle_cache_going,
                                                 .released = shuffle_released,
                                                 .flush = shuffle_flush,
                                                 .empty = shuffle_flush,
                                                 .pressure = shuffle_flush_all};
