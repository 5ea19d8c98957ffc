/* SPDX-License-Identifier: MIT */
/*
 * Destructors of deferred objects. A deferred object goes the usual way. Its destructor has not run
 * (the object is *pending*) while the object is in a ring, and while a bit in its slab says so. The
 * bit is set, and the object counted, when the object leaves the ring for its slab. The thread that
 * takes the object out of the ring or the slab for reuse has it in a hand, clears the bit, and runs
 * the destructor, so exactly one thread does (destruct_hand.c). Objects on stacks are never
 * pending. So neither a deferral nor the allocation of an object from the stack has anything to do
 * here.
 *
 *   - allocate, when the stack is empty: the allocating thread runs the destructors of the objects
 *     that it is about to put there, unless the thread may run none.
 *   - a slab that could be freed, but has objects with pending destructors: the slab stays, and the
 *     callback worker runs them (callback_worker.c), never the thread that happens to shrink, which
 *     may hold locks of the program.
 *   - DESTRUCT_SOON: the worker also destroys objects that stay in rings and slabs.
 *   - shrink, barrier, destroy of the cache: the calling thread, because the program asked.
 *
 * While a destructor runs, the slab considers the object neither free nor latent, so no other
 * thread gets the object.
 *
 * Which threads run them. A destructor may do anything that a callback may, so it may wait for a
 * grace period. So none runs inside a read-side section, although allocations and shrinks are
 * allowed there; an allocation takes an object without a pending destructor, and kicks the worker.
 * Nor does a destructor run inside another; otherwise a destructor that allocates would run the
 * next one, and so on until the stack is full.
 *
 * Barriers empty the rings, then wait for counts of pending destructors, two for each cache
 * (destruct_barrier.c). The worker runs destructors between callbacks (destruct_worker.c).
 */
#include "toolkit/callbacks/destruct.h"

#include "gp/gp_wait.h"
#include "slab/misuse.h"
#include "slab/node.h"
#include "slab/reclaim/drain.h"
#include "slab/reclaim/pressure.h"
#include "slab/reuse.h"
#include "slab/runs.h"
#include "toolkit/callbacks/callback_life.h"
#include "toolkit/callbacks/callback_worker.h"
#include "toolkit/callbacks/destruct_hand.h"

uint32_t destruct_wanted, destruct_watches;

/* ----------------------------------------------------------------------------------- one object */

/* Where an object's pending bits are: one word of each epoch. */
struct pending_place {
    uint64_t *words[2], bit;
};

static struct pending_place pending_place(const struct slab *slab, const void *object)
{
    unsigned index = slab_index(slab, object);
    uint64_t *word = &pending_bits(slab, 0)[index / BITS_PER_WORD];

    return (struct pending_place){.words = {word, word + bits_words(slab->capacity)},
                                  .bit = UINT64_C(1) << (index % BITS_PER_WORD)};
}

static unsigned epoch_at(const struct pending_place *place)
{
    if (load_relaxed(place->words[0]) & place->bit)
        return 0;
    return load_relaxed(place->words[1]) & place->bit ? 1 : DESTRUCT_NO_EPOCH;
}

unsigned destruct_epoch(const struct slab *slab, const void *object)
{
    struct pending_place place = pending_place(slab, object);

    return epoch_at(&place);
}

void destruct_mark(struct slab *slab, void *object, unsigned epoch)
{
    struct pending_place place = pending_place(slab, object);

    *place.words[epoch] |= place.bit;
}

/* ------------------------------------------------------------------------- into slabs, and out */

/* Sets the bits of objects that have none, and returns their number. Relaxed: whoever finds the
 * objects finds them in the slab, or in a batch that goes there, by later acquires and releases. An
 * object that was deferred twice is not counted twice; the slab reports it. */
static unsigned mark_run(const struct run *run, unsigned epoch)
{
    uint64_t *word = &pending_bits(run->slab, 0)[run->word];
    size_t words = bits_words(run->slab->capacity);
    uint64_t bits = run->bits & ~(load_relaxed(word) | load_relaxed(word + words));

    if (!bits)
        return 0;
    return (unsigned)__builtin_popcountll(
        bits & ~__atomic_fetch_or(word + epoch * words, bits, __ATOMIC_RELAXED));
}

static unsigned epoch_now(const struct prudence_cache *cache)
{
    return load_relaxed(&destruct_of_cache(cache)->pending_epoch) & 1;
}

/* Counts objects before another thread can find them, or find that they are out of the ring: the
 * ring's head moves later, by a release store. */
void destruct_to_slabs(struct prudence_cache *cache, void **objects, unsigned count)
{
    unsigned epoch = epoch_now(cache), marked = 0, at = 0;
    struct run run;

    while (at < count) {
        struct slab *slab = slab_known(objects[at]);

        at += run_gather(&run, slab, objects + at, count - at);
        marked += mark_run(&run, epoch);
    }
    if (marked)
        add_relaxed(&destruct_of_cache(cache)->pending[epoch], marked);
}

/* As above. Other extensions are rare, and none with `safe` is given to single slabs of a cache. */
void destruct_to_reuse(struct reuse *reuse)
{
    const struct prudence_cache *cache = reuse->cache;
    unsigned epoch = epoch_now(cache);

    reuse->epochs = epoch ? ~UINT32_C(0) : 0;
    add_relaxed(&destruct_of_cache(cache)->pending[epoch], reuse->count);
    if (likely(load_relaxed(&cache->slab_extensions) == EXTENSION_BIT(DESTRUCT_EXTENSION)))
        return;
    for (unsigned i = 0; i < reuse->count; i++)
        extensions_safe(slab_known(reuse->objects[i]), reuse->objects[i]);
}

/* Returns the object's epoch, and clears the bit if `may`. Relaxed: this thread alone has the
 * object. */
static unsigned unmark(const void *object, bool may)
{
    struct pending_place place = pending_place(slab_known(object), object);
    unsigned epoch = epoch_at(&place);

    if (epoch != DESTRUCT_NO_EPOCH && may)
        __atomic_fetch_and(place.words[epoch], ~place.bit, __ATOMIC_RELAXED);
    return epoch;
}

/* Counts stay as they are: the objects are pending until their destructors have returned. */
void destruct_sort(struct reuse *reuse)
{
    void *due[REUSE_MAX];
    uint32_t epochs = 0;
    unsigned dues = 0, count = reuse->count;

    reuse->fit = 0;
    for (unsigned i = 0; i < count; i++) {
        void *object = reuse->objects[i];
        unsigned epoch = unmark(object, reuse->may);

        if (epoch == DESTRUCT_NO_EPOCH) {
            reuse->objects[reuse->fit++] = object;
            continue;
        }
        epochs |= (uint32_t)epoch << dues;
        due[dues++] = object;
    }
    for (unsigned i = 0; i < dues; i++)
        reuse->objects[reuse->fit + i] = due[i];
    reuse->epochs = epochs;
}

/* `epochs` has a bit for each object that is not fit. */
void destruct_make_fit(struct reuse *reuse)
{
    struct destruct_hand hand = {.cache = reuse->cache,
                                 .objects = reuse->objects + reuse->fit,
                                 .count = reuse->count - reuse->fit,
                                 .epochs = reuse->epochs};

    destruct_hand_begin(&hand);
    os_in_flight_end();
    destruct_hand_destroy(&hand);
    os_in_flight_begin();
    destruct_hand_end(&hand);
}

/* Runs the destructor now, because the object was freed, not deferred. */
static void destruct_freed(struct slab *slab, void *object, const char *what)
{
    (void)what;
    destruct_hand_now(slab->cache, slab, object);
}

/* Without membarrier, deferrals always notify, and fence here, after the append. Starts the
 * worker if that is needed. If it could not be started, the next deferral notifies again. */
void destruct_watch(void)
{
    bool fences = !destruct_hands_use_membarrier();

    if (fences) {
        os_full_fence();
        if (load_relaxed(&destruct_watches))
            return;
    }
    store_relaxed(&destruct_watches, 1u);
    if (!fences)
        store_relaxed(&reuse_watched[1], 1u);
    store_release(&destruct_wanted, 1u);
    callbacks_kick();
    if (load_relaxed(&callback_main_worker.started))
        return;
    store_relaxed(&destruct_watches, 0u);
    store_relaxed(&reuse_watched[1], 0u);
}

/* Starts the worker at the first deferral, before a thread with locks held needs one. */
void destruct_put_off(unsigned cache_flags)
{
    if (cache_flags & CACHE_DESTRUCT_SOON) {
        destruct_watch();
        return;
    }
    callbacks_kick();
    store_relaxed(&reuse_watched[0], load_relaxed(&callback_main_worker.started));
}

const struct prudence_cache *destruct_here(void)
{
    return destruct_runs ? destruct_runs->cache : NULL;
}

/* Returns whether this thread may run destructors unasked; see the head of this file. */
bool destruct_may_run(void)
{
    return !destruct_runs && gp_may_wait();
}

/* Has the worker check caches that want it. Any locks may be held. */
static void destruct_kick(void)
{
    store_release(&destruct_wanted, 1u);
    callback_worker_nudge();
}

static uint64_t select_done(const struct slab *slab, unsigned word, unsigned data)
{
    (void)data;
    return ~(load_relaxed(&pending_bits(slab, 0)[word]) |
             load_relaxed(&pending_bits(slab, 1)[word]));
}

static void *take_done(struct prudence_cache *cache, os_alloc_flags flags)
{
    static const struct node_filter done = {.select = select_done};
    unsigned here = (unsigned)(node_here(cache) - cache->body->nodes);
    void *object = NULL;
    struct slab *slab;

    for (unsigned i = 0; i < os_node_count() && !object; i++)
        object = node_take_one(&cache->body->nodes[(here + i) % os_node_count()], &done);
    if (object)
        return object;
    slab = slab_grow(cache, here, flags);
    if (slab)
        node_add_slab_and_take(&cache->body->nodes[here], slab, &object);
    return object;
}

/* Allocates for a caller that may run no destructor: takes an object without a pending destructor
 * from a node, or from a new slab. */
static void *alloc_done(struct prudence_cache *cache)
{
    struct reclaim reclaim = {.began = 0};
    void *object;

    do
        object = take_done(cache, os_alloc_first(OS_ALLOC_DEFAULT));
    while (!object && pressure_reclaim(cache, OS_ALLOC_DEFAULT, &reclaim));
    return object ? object : take_done(cache, OS_ALLOC_DEFAULT);
}

/* Has the worker destroy the objects that the caller could not have. */
void *destruct_apart(struct prudence_cache *cache)
{
    store_relaxed(&destruct_of_cache(cache)->any, 1u);
    destruct_kick();
    return alloc_done(cache);
}

/* ------------------------------------------------------------------------------------ one cache */

/* Returns whether objects of the slab have a destructor that has not begun. */
static bool has_pending(const struct slab *slab)
{
    const uint64_t *bits = pending_bits(slab, 0);
    uint64_t any = 0;

    for (unsigned word = 0; word < 2 * bits_words(slab->capacity); word++)
        any |= load_relaxed(&bits[word]);
    return any;
}

/* `epochs` is a set of bits. */
static uint64_t select_pending(const struct slab *slab, unsigned word, unsigned epochs)
{
    uint64_t bits = 0;

    if (epochs & 1)
        bits |= load_relaxed(&pending_bits(slab, 0)[word]);
    if (epochs & 2)
        bits |= load_relaxed(&pending_bits(slab, 1)[word]);
    return bits;
}

/* Takes objects out of slabs, and returns their number. */
static unsigned take_pending(struct prudence_cache *cache, void **objects, bool any_slab,
                             unsigned epochs)
{
    struct node_filter pending = {
        .may_have = has_pending, .select = select_pending, .data = epochs};
    unsigned count = 0;

    for (unsigned node = 0; node < os_node_count() && !count; node++)
        count =
            node_take_selected(&cache->body->nodes[node], any_slab, &pending, objects, REUSE_MAX);
    return count;
}

unsigned destruct_some(struct prudence_cache *cache, bool any_slab, unsigned epochs)
{
    struct reuse reuse UNINITIALIZED;

    reuse.cache = cache;
    reuse.may = true;
    os_in_flight_begin();
    reuse.count = take_pending(cache, reuse.objects, any_slab, epochs);
    if (reuse.count) {
        destruct_sort(&reuse);
        destruct_make_fit(&reuse);
        node_put_selected(cache, reuse.objects, reuse.count);
    }
    os_in_flight_end();
    return reuse.count;
}

/* Runs destructors that keep slabs from being freed, if the caller may run any. They are no more
 * than are pending now, because other threads may go on deferring. */
static void destruct_flush(struct prudence_cache *cache)
{
    uint64_t most, done = 0;
    unsigned some = 1;

    if (!destruct_may_run())
        return; /* The worker is notified when a slab cannot be freed (node.c). */
    drain_cache(cache, true);
    most = destruct_pending(cache);
    for (; some && done < most; done += some)
        some = destruct_some(cache, false, DESTRUCT_BOTH_EPOCHS);
}

/* -------------------------------------------------------------------------------- the extension */

COLD static enum extension_wish destruct_wants(const struct cache_layout *layout)
{
    return extension_wanted_if(layout->destructor != NULL);
}

static size_t tails_bytes(void)
{
    return os_cpu_count() * sizeof(uint64_t);
}

static bool destruct_cache_made(struct prudence_cache *cache)
{
    struct destruct_cache *own = os_meta_alloc(sizeof *own);

    if (!own)
        return false;
    if (cache->flags & CACHE_DESTRUCT_SOON) {
        own->tails = os_meta_alloc(tails_bytes());
        if (!own->tails) {
            os_meta_free(own, sizeof *own);
            return false;
        }
    }
    cache->body->destructs = own;
    destruct_hands_start();
    return true;
}

static void destruct_cache_going(struct prudence_cache *cache)
{
    struct destruct_cache *own = destruct_of_cache(cache);

    if (own->tails)
        os_meta_free(own->tails, tails_bytes());
    os_meta_free(own, sizeof *own);
    cache->body->destructs = NULL;
}

static size_t destruct_slab_bytes(const struct slab *slab)
{
    return (size_t)2 * bits_words(slab->capacity) * sizeof(uint64_t);
}

static bool destruct_made(struct slab *slab)
{
    slab->side[DESTRUCT_EXTENSION] = os_meta_alloc(destruct_slab_bytes(slab));
    return slab->side[DESTRUCT_EXTENSION] != NULL;
}

static void destruct_going(struct slab *slab)
{
    os_meta_free(slab->side[DESTRUCT_EXTENSION], destruct_slab_bytes(slab));
}

/* Runs no destructors, because the caller holds locks. */
static bool destruct_may_go(struct slab *slab)
{
    if (likely(!has_pending(slab)))
        return true;
    store_relaxed(&destruct_of_cache(slab->cache)->wanted, 1u);
    return false;
}

/* Keeps the object; destruct_hand_destroy() releases it after the destructor has run. */
static bool destruct_safe(struct slab *slab, void *object)
{
    (void)slab, (void)object;
    return false;
}

const struct slab_extension destruct_extension = {.wants = destruct_wants,
                                                  .cache_made = destruct_cache_made,
                                                  .cache_going = destruct_cache_going,
                                                  .flush = destruct_flush,
                                                  .made = destruct_made,
                                                  .going = destruct_going,
                                                  .may_go = destruct_may_go,
                                                  .kept = destruct_kick,
                                                  .freed = destruct_freed,
                                                  .safe = destruct_safe};
