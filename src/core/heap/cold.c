/* SPDX-License-Identifier: MIT */
/*
 * Cold caches (ADR 148). In a program with thousands of caches most are used rarely, and a page, a
 * node and the lines of all CPUs for each would take some 6 KB, and a dozen cache misses a call. So
 * a cache beyond the first `cold_after` begins cold: the objects lie in slabs of a *common* cache,
 * one for each size in steps of 16 bytes. The common cache is ordinary, so all that concerns CPUs,
 * latent objects, limits, pressure, decay and fork holds unchanged. The slabs note the owner of
 * each live object, by which wrong and double frees are found.
 *
 * A cold cache has an extension that allocates from the common cache instead. Slabs of the common
 * cache have that extension, too, to count frees and deferrals. So the calls of both come to the
 * gate, and no fast path has to know about cold caches.
 *
 * A cache becomes warm when it is used: COLD_ROUND allocations are a round, and if at most BUSY
 * rounds of all cold caches have begun since the last round of this one, it makes more than one
 * part in BUSY of all cold allocations. (The count of rounds may wrap, which makes one cache warm
 * too early.) The cache then gets a body and lines (cache_warm), and slabs of its own. Objects in
 * common slabs stay there until they are freed. A warm cache stays warm; decay takes slabs and
 * arrays that are not used.
 */
#include "heap/cold.h"

#include "gp/user/domain.h"
#include "heap/cold_structures.h"
#include "heap/heap.h"
#include "heap/size_class.h"
#include "heap/upcalls.h"
#include "slab/cache.h"
#include "slab/gate.h"
#include "slab/misuse.h"

/* Policy: which cache is cold? */
#define COMMON_STEP ((size_t)16)  /* bytes; between the sizes of common slabs */
#define COMMON_MAX  ((size_t)512) /* bytes; fewer of larger objects would share a page */
#define BUSY        1024 /* part; of all cold allocations, above which a cache becomes warm */

uint32_t cold_after = 256;

static struct prudence_cache *commons[COMMON_MAX / COMMON_STEP]; /* under heap_lock */
static uint32_t caches_alive;                                    /* atomic */
static uint32_t cold_rounds;                                     /* atomic */

void cold_note_made(void)
{
    add_relaxed(&caches_alive, 1u);
}

void cold_note_destroyed(void)
{
    sub_relaxed(&caches_alive, 1u);
}

/* ------------------------------------------------------------------------------- which are cold */

/* Returns whether the common cache can serve the layout. */
static bool can_be_cold(const struct cache_layout *layout)
{
    uint32_t of_slabs;

    return layout->named && !slab_redzone && !(layout->flags & ~CACHE_OWN) &&
           !layout->constructor && !layout->destructor && !layout->object_cache_bytes &&
           (!layout->domain || layout->domain == gp_default_domain()) &&
           layout->object_size <= COMMON_MAX && layout->alignment <= CACHE_LINE &&
           !(extensions_wanted(layout, &of_slabs) & ~heap_upcalls.of_cold);
}

/* Returns the number of caches after which this one begins cold. Those of tables do so sooner,
 * because programs make many small tables, and each has up to a dozen caches. */
static uint32_t cold_after_for(const struct cache_layout *layout)
{
    return layout->flags & CACHE_OWN ? cold_after / 8 : cold_after;
}

struct prudence_cache *cold_common_for(const struct cache_layout *layout)
{
    size_t size = round_up(layout->object_size, max_size(COMMON_STEP, layout->alignment));
    struct cache_layout common = {.object_size = size, .flags = CACHE_COMMON};
    struct prudence_cache **place;
    char name[CACHE_NAME_SIZE];

    if (load_relaxed(&caches_alive) < cold_after_for(layout) || !can_be_cold(layout))
        return NULL;
    place = &commons[size / COMMON_STEP - 1];
    if (!*place) {
        size_class_name(name, "common", size);
        *place = cache_create(name, &common);
    }
    return *place;
}

bool cold_give_structure(struct cache_layout *layout)
{
    layout->structure = layout->common ? cold_structures_take() : NULL;
    return layout->structure || !layout->common;
}

void cold_take_back(const struct cache_layout *layout)
{
    if (layout->structure)
        cold_structures_give(layout->structure);
}

void cold_forget(struct prudence_cache *cache)
{
    struct prudence_cache *structure = cache->common ? cache : NULL;

    cache_forget(cache);
    if (!structure)
        return;
    os_lock_take(&heap_lock);
    cold_structures_give(structure);
    os_lock_release(&heap_lock);
}

static enum extension_wish cold_wants(const struct cache_layout *layout)
{
    if (layout->flags & CACHE_COMMON)
        return EXTENSION_WANTED;
    return layout->common ? EXTENSION_INSTEAD : EXTENSION_UNWANTED;
}

/* ------------------------------------------------------------------------------------- objects */

static struct prudence_cache **cold_owner_of(struct slab *slab, const void *object)
{
    return &slab_owners(slab)[slab_index(slab, object)];
}

/* Begins a round of a cache that has `made` allocations. */
static void begin_round(struct prudence_cache *cache, uint64_t made)
{
    uint32_t now = add_relaxed(&cold_rounds, 1), last = load_relaxed(&cache->cold_round);

    store_relaxed(&cache->cold_round, now);
    if (made && now - last <= BUSY)
        cache_warm(cache, EXTENSION_BIT(COLD_EXTENSION));
}

/* Also called for the common cache itself, and by a thread that found the cache cold before another
 * thread warmed it. */
static void *cold_alloc(struct prudence_cache *cache, size_t size)
{
    struct prudence_cache *common = cache->common;
    struct slab *slab;
    uint64_t made;
    void *object;

    (void)size;
    if (!cache_is_cold(cache))
        return NULL;
    object = gate_take(common, OS_ALLOC_DEFAULT);
    if (!object)
        return NULL;
    slab = slab_known(object);
    /* The count comes first, so that live objects are never counted too low. A child of fork has
     * both or neither; otherwise it could never destroy the cache. */
    os_in_flight_begin();
    made = add_relaxed(&cache->cold_allocations, 1);
    store_relaxed(cold_owner_of(slab, object), cache);
    os_in_flight_end();
    if (made % COLD_ROUND == 0)
        begin_round(cache, made);
    return object;
}

/* Ends the ownership of an object, and counts that, for fork together as in cold_alloc. Two threads
 * that free one object at the same time may both find the owner. The slab then reports the second
 * copy, as for other caches. */
static void cold_disown(struct slab *slab, void *object, const char *what, bool deferred)
{
    struct prudence_cache **place = cold_owner_of(slab, object), *owner = load_relaxed(place);

    if (unlikely(!owner || slab_owner_is_past(owner)))
        misuse_report_double(slab, object, false, what);
    os_in_flight_begin();
    store_relaxed(place, slab_owner_past(owner));
    add_relaxed(deferred ? &owner->cold_deferred : &owner->cold_frees, 1);
    os_in_flight_end();
}

static void cold_freed(struct slab *slab, void *object, const char *what)
{
    cold_disown(slab, object, what, false);
}

static void cold_deferred(struct slab *slab, void *object, const char *what)
{
    cold_disown(slab, object, what, true);
}

const struct slab_extension cold_extension = {
    .wants = cold_wants, .instead = cold_alloc, .freed = cold_freed, .deferred = cold_deferred};

struct slab *cold_slab_of(const struct prudence_cache *cache, const void *object, const char *what)
{
    struct slab *slab = slab_of(object);
    const struct prudence_cache *owner;

    if (!slab || !(slab->cache->flags & CACHE_COMMON))
        return NULL;
    owner = load_relaxed(cold_owner_of(slab, object));
    if (unlikely(owner && !slab_owner_is_past(owner) && owner != cache)) {
        os_report_misuse("%s: %p belongs to cache '%s', not to '%s'", what, object, owner->name,
                         cache->name);
        misuse_explain_and_abort(slab, object);
    }
    return slab;
}

bool cold_has(const struct prudence_cache *cache, struct slab *slab, unsigned index)
{
    return load_relaxed(&slab_owners(slab)[index]) == cache;
}

/* --------------------------------------------------------------------------------- destruction */

uint64_t cold_live(const struct prudence_cache *cache)
{
    uint64_t gone = load_relaxed(&cache->cold_frees) + load_relaxed(&cache->cold_deferred);

    return load_relaxed(&cache->cold_allocations) - gone;
}

void cold_settle(struct prudence_cache *cache)
{
    if (load_relaxed(&cache->cold_deferred))
        gp_wait(cache->domain, gp_snapshot(cache->domain), 0);
}
