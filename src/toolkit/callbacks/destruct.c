/* SPDX-License-Identifier: MIT */
/*
 * Destructors of deferred objects. A deferred object goes the usual way; in addition, a bit in the
 * object's slab says that the destructor has not run (`pending`). The thread that clears the bit
 * runs the destructor, so exactly one thread does.
 *
 *   - allocate, when the object's memory is about to be reused: the allocating thread runs the
 *     destructor, unless the thread may run none.
 *   - a slab that could be freed, but has objects with pending destructors: the slab stays, and the
 *     callback worker runs them (callback_worker.c), never the thread that happens to shrink, which
 *     may hold locks of the program.
 *   - DESTRUCT_SOON: the worker settles the cache while a destructor is pending, and runs each at
 *     once.
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
 * Barriers wait for counts of pending destructors, two for each cache (destruct_barrier.c). The
 * worker runs destructors between callbacks (destruct_worker.c).
 */
#include "toolkit/callbacks/destruct.h"

#include "guard/annotate.h"
#include "race_detector.h"
#include "slab/all_caches.h"
#include "slab/misuse.h"
#include "slab/node.h"
#include "slab/reclaim/drain.h"
#include "slab/reclaim/pressure.h"
#include "toolkit/callbacks/callback_life.h"
#include "toolkit/callbacks/callback_worker.h"

#define AT_ONCE 32

uint32_t destruct_wanted;
__thread struct destruct_run *destruct_runs;
struct list destruct_hands = {&destruct_hands, &destruct_hands};

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

/* Counts the object before another thread can find it. */
static void destruct_deferred(struct slab *slab, void *object, const char *what)
{
    const struct prudence_cache *cache = slab->cache;
    struct destruct_cache *own = destruct_of_cache(cache);
    unsigned epoch = load_relaxed(&own->pending_epoch) & 1;
    struct pending_place place = pending_place(slab, object);

    if (epoch_at(&place) != DESTRUCT_NO_EPOCH ||
        __atomic_fetch_or(place.words[epoch], place.bit, __ATOMIC_RELAXED) & place.bit)
        misuse_report_double(slab, object, true, "deferred free");
    (void)what;
    if (add_relaxed(&own->pending[epoch], 1))
        return;
    /* Starts the worker at the first deferral, before a thread with locks held needs one. */
    if (cache->flags & CACHE_DESTRUCT_SOON)
        store_release(&destruct_wanted, 1u);
    callbacks_kick();
}

static void run_destructor(const struct destruct_run *run, void *object)
{
    const struct prudence_cache *cache = run->slab->cache;

    os_foreign_call("a destructor");
    annotate_taken(run->slab, object);
    cache->body->destructor(object, cache->body->context);
    tell_release(cache);
}

/* Runs the destructor now, because the object was freed, not deferred. */
static void destruct_freed(struct slab *slab, void *object, const char *what)
{
    struct destruct_run now = {.slab = slab, .epoch = DESTRUCT_NO_EPOCH};

    (void)what;
    now.outer = destruct_runs;
    destruct_runs = &now;
    run_destructor(&now, object);
    destruct_runs = now.outer;
}

/* Returns false if another thread has cleared the bit. */
static bool clear_bit(struct destruct_run *run, const void *object)
{
    struct pending_place place = pending_place(run->slab, object);

    run->epoch = epoch_at(&place);
    return run->epoch != DESTRUCT_NO_EPOCH &&
           __atomic_fetch_and(place.words[run->epoch], ~place.bit, __ATOMIC_RELAXED) & place.bit;
}

/* Not while the process is copied, so no destructor whose bit is set in a child has begun. */
static bool destruct_claim(struct destruct_run *run, const void *object)
{
    bool mine;

    os_carry_begin();
    mine = clear_bit(run, object);
    if (mine) {
        run->outer = destruct_runs;
        destruct_runs = run;
    }
    os_carry_end();
    return mine;
}

/* Stops counting objects as pending. Release, so that a barrier that finds the count at 0 sees the
 * effects of their destructors. */
static void uncount(const struct prudence_cache *cache, unsigned epoch, uint64_t objects)
{
    __atomic_fetch_sub(&destruct_of_cache(cache)->pending[epoch], objects, __ATOMIC_RELEASE);
}

/* Stops counting the objects of the hand whose destructors have returned. */
static void hand_uncount(struct destruct_hand *hand)
{
    os_busy_enter();
    if (hand->ended)
        uncount(hand->cache, hand->epoch, hand->ended);
    hand->ended = 0;
    os_busy_leave();
}

/* Runs the destructor, if pending, of an object that no other thread has. The slab counts the
 * object as allocated meanwhile, so nobody frees the slab. `hand`: where the thread has the object
 * from, or NULL. */
static void destruct_object(struct destruct_run *due, void *object, struct destruct_hand *hand)
{
    if (!destruct_claim(due, object))
        return;
    if (hand && hand->epoch != due->epoch)
        hand_uncount(hand); /* a barrier that waits for them need not wait for this one */
    run_destructor(due, object);
    extensions_released(due->slab, object, false);
    /* A handler that forks finds the object both counted and running, or neither. */
    os_busy_enter();
    destruct_runs = due->outer;
    if (hand) {
        hand->epoch = due->epoch;
        hand->ended++;
    } else {
        uncount(due->slab->cache, due->epoch, 1);
    }
    os_busy_leave();
}

const struct prudence_cache *destruct_here(void)
{
    return destruct_runs ? destruct_runs->slab->cache : NULL;
}

/* Returns whether this thread may run destructors unasked; see the head of this file. */
static bool may_run_any(void)
{
    return !destruct_runs && gp_may_wait();
}

/* Has the worker look at caches that want it. Any locks may be held. */
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
 * from a node, or from a new slab. Not from the object cache, which does not know. */
static void *alloc_done(struct prudence_cache *cache)
{
    struct reclaim reclaim = {.began = 0};
    void *object;

    do
        object = take_done(cache, os_alloc_first(OS_ALLOC_DEFAULT));
    while (!object && pressure_reclaim(cache, OS_ALLOC_DEFAULT, &reclaim));
    return object ? object : take_done(cache, OS_ALLOC_DEFAULT);
}

/* Runs the object's destructor if pending. If the caller may run none, takes another object. */
static void *destruct_taken(struct prudence_cache *cache, void *object)
{
    struct slab *slab = slab_known(object);

    struct destruct_run due = {.slab = slab};

    if (likely(destruct_epoch(slab, object) == DESTRUCT_NO_EPOCH))
        return object;
    if (may_run_any()) {
        destruct_object(&due, object, NULL);
        return object;
    }
    node_put(cache, &object, 1);
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

static void hand_fill(struct destruct_hand *hand, bool any_slab, unsigned epochs)
{
    struct node_filter pending = {
        .may_have = has_pending, .select = select_pending, .data = epochs};
    struct slab_node *nodes = hand->cache->body->nodes;

    os_lock_take(&slab_caches_lock);
    for (unsigned node = 0; node < os_node_count() && !hand->count; node++)
        hand->count = node_take_selected(&nodes[node], any_slab, &pending, hand->objects, AT_ONCE);
    if (hand->count)
        list_append(&destruct_hands, &hand->link);
    os_lock_release(&slab_caches_lock);
}

static void hand_empty(struct destruct_hand *hand)
{
    os_lock_take(&slab_caches_lock);
    list_remove(&hand->link);
    node_put_selected(hand->cache, hand->objects, hand->count);
    os_lock_release(&slab_caches_lock);
}

unsigned destruct_some(struct prudence_cache *cache, bool any_slab, unsigned epochs)
{
    void *objects[AT_ONCE];
    struct destruct_hand hand = {.cache = cache, .thread = &destruct_runs, .objects = objects};

    hand_fill(&hand, any_slab, epochs);
    for (unsigned i = 0; i < hand.count; i++) {
        struct destruct_run due = {
            .slab = slab_known(objects[i]), .hand = objects + i + 1, .in_hand = hand.count - i - 1};

        destruct_object(&due, objects[i], &hand);
    }
    hand_uncount(&hand);
    if (hand.count)
        hand_empty(&hand);
    return hand.count;
}

/* Runs no more than are pending now, because other threads may go on deferring. */
/* Runs destructors that keep slabs from being freed, if the caller may run any. */
static void destruct_flush(struct prudence_cache *cache)
{
    uint64_t most = destruct_pending(cache), done = 0;
    unsigned some = 1;

    if (!may_run_any())
        return; /* The worker is told when a slab cannot be freed (node.c). */
    drain_cache(cache, true);
    for (; some && done < most; done += some)
        some = destruct_some(cache, false, DESTRUCT_BOTH_EPOCHS);
}

/* -------------------------------------------------------------------------------- the extension */

static enum extension_wish destruct_wants(const struct cache_layout *layout)
{
    return extension_wanted_if(layout->destructor != NULL);
}

static bool destruct_cache_made(struct prudence_cache *cache)
{
    cache->body->destructs = os_meta_alloc(sizeof(struct destruct_cache));
    return cache->body->destructs != NULL;
}

static void destruct_cache_going(struct prudence_cache *cache)
{
    os_meta_free(cache->body->destructs, sizeof(struct destruct_cache));
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

/* Keeps the object; destruct_object() releases it after the destructor has run. */
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
                                                  .taken = destruct_taken,
                                                  .freed = destruct_freed,
                                                  .deferred = destruct_deferred,
                                                  .safe = destruct_safe};
