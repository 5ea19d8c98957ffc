/* SPDX-License-Identifier: MIT */
/*
 * Reports where every object is, without stopping the world.
 *
 * An object that is neither free nor latent in the slab is live, in some CPU's caches, or carried
 * by a thread that moves it between those and a node. To know that an object is live, the walk has
 * to check all other places at one instant. So the walk does for some slabs at a time what fork
 * does for all of them (slab/fork.c):
 *
 *   1. It takes the lock of the list of caches, which keeps fork, destruction and other walks
 *      away, pauses the idle helper, and waits until no thread carries objects. From here on no
 *      slab goes, since only carriers remove slabs (node_leave), and no large block begins or ends
 *      a resize. Blocks whose resize has begun are skipped.
 *   2. It finds the next slabs in the page map. They may belong to any caches.
 *   3. It owns these caches' CPUs: claims all, one membarrier, confirms all. From here on stacks
 *      and rings stay unchanged. Without a membarrier (ADR 123), one operation that has just
 *      begun may still end on each CPU, and the object may be reported as before or after.
 *   4. It reads each slab under the node's lock. That is the slab's instant. Other threads change
 *      the node before or after that instant by whole steps of a user (an object freed, deferred
 *      or allocated past the CPUs' caches).
 *   5. It searches stacks and rings for objects of these slabs, and releases everything.
 *
 * Other owners make no system call, take no lock and do not wait. The walk does, as fork and
 * destruction do. A thread that finds a line owned goes to the node instead, so the walk delays
 * only fork and destruction. Carriers wait for the end of step 5.
 *
 * The walk finds slabs by address, so it needs no position in any list and no word in a slab, and
 * slabs that come and go do not affect the rest of the walk.
 */
#include "observe/walk.h"

#include "base/name.h"
#include "gp/user/domain.h"
#include "guard/check.h"
#include "heap/cold.h"
#include "slab/all_caches.h"
#include "slab/cpu_cache.h"
#include "slab/latent_cache.h"
#include "slab/node.h"
#include "slab/start.h"
#include "toolkit/callbacks/destruct.h"
#include "toolkit/callbacks/destruct_hand.h"

_Static_assert(540000 / sizeof(struct heap_walk) > 0, "what <prudence/heap_walk.h> says");
/* See choose_slab(). A walk would not get past a slab that has more objects. */
_Static_assert(WALK_OBJECTS >= OS_SLAB_BYTES_MAX / SLAB_STRIDE_MIN &&
                   WALK_OBJECTS >= OS_PAGE_SIZE_MOST / SLAB_STRIDE_MIN,
               "each slab fits a step");

/* ---------------------------------------------------------------------------------- which slabs */

/* Bytes of addresses searched while the heap is held, with or without slabs. */
#define STEP_BYTES ((uintptr_t)16 << 20)

static bool has_room(const struct heap_walk *walk, const struct slab *slab)
{
    return walk->slab_count < WALK_SLABS && slab->capacity <= WALK_OBJECTS - walk->object_count;
}

static void note_cache(struct heap_walk *walk, struct prudence_cache *cache)
{
    for (unsigned i = 0; i < walk->cache_count; i++)
        if (walk->caches[i] == cache)
            return;
    walk->caches[walk->cache_count++] = cache;
}

static void note_slab(struct heap_walk *walk, struct slab *slab)
{
    struct walked_slab *walked = &walk->slabs[walk->slab_count++];

    walked->slab = slab;
    walked->objects = walk->object_count;
    walk->object_count += slab->capacity;
    note_cache(walk, slab->cache);
}

/* Returns whether the slab may have objects of the cache that is asked for: its own slabs, and
 * those that it shares (heap/cold.c). */
static bool walk_wants(const struct heap_walk *walk, const struct slab *slab)
{
    return !walk->only || slab->cache->number == walk->only || slab->cache == walk->common;
}

/* Collects the slabs from walk->next on, as many as there is room for. The heap is held, so no slab
 * goes. */
static void find_slabs(struct heap_walk *walk)
{
    uintptr_t end = walk->next + STEP_BYTES;
    struct slab *slab;

    walk->slab_count = walk->object_count = walk->cache_count = 0;
    while ((slab = os_page_owner_next(&walk->next, end))) {
        if (slab->changing) { /* the slab's end is not known */
            walk->next += OS_PAGE_SIZE;
            continue;
        }
        if (walk_wants(walk, slab)) {
            if (!has_room(walk, slab))
                return;
            note_slab(walk, slab);
        }
        walk->next = (uintptr_t)slab->pages + slab->bytes;
    }
}

/* ----------------------------------------------------------------------------- holding the heap */

static void own_cpus(struct heap_walk *walk)
{
    for (unsigned i = 0; i < walk->cache_count; i++)
        cpu_cache_claim_all(walk->caches[i], walk);
    walk->fenced = os_percpu_fence_all();
    for (unsigned i = 0; i < walk->cache_count; i++)
        cpu_cache_confirm_all(walk->caches[i], walk);
}

static void release_cpus(struct heap_walk *walk)
{
    for (unsigned i = 0; i < walk->cache_count; i++)
        cpu_cache_release_all(walk->caches[i], walk, walk->fenced);
}

/* -------------------------------------------------------------------------- a slab, in its node */

static uint8_t wait_of(const struct prudence_domain *domain, gp_cookie cookie)
{
    return gp_poll(domain, cookie) ? PRUDENCE_WAIT_MERGE : PRUDENCE_WAIT_GRACE_PERIOD;
}

/* Returns whether the object's destructor has not begun: a thread has taken the object out of the
 * slab or a ring to run it. */
static bool awaits_destructor(struct slab *slab, unsigned index)
{
    const void *object = slab_object(slab, index, slab->cache->body->stride);

    return slab->cache->body->destructor &&
           (destruct_epoch(slab, object) != DESTRUCT_NO_EPOCH || destruct_hands_have(object));
}

/* Describes an object that is neither free nor latent in the slab, live as far as extensions know.
 * Stacks and rings are read later. */
static struct walked_object outside_of_slab(struct slab *slab, unsigned index)
{
    const uint64_t *words = object_words(slab);
    enum object_state state = words ? state_of_word(load_relaxed(&words[index])) : OBJECT_LIVE;
    struct walked_object object = {.cpu = -1, .state = PRUDENCE_OBJECT_LIVE};

    if (state == OBJECT_LATENT) {
        object.state = PRUDENCE_OBJECT_LATENT;
        object.wait = PRUDENCE_WAIT_BATCH;
    } else if (state == OBJECT_FREE || awaits_destructor(slab, index)) {
        object.state = PRUDENCE_OBJECT_RESTING;
    }
    return object;
}

static struct walked_object latent_in_slab(const struct slab *slab, bool has_cookie, uint8_t wait)
{
    return (struct walked_object){.cpu = -1,
                                  .state = PRUDENCE_OBJECT_LATENT,
                                  .wait = has_cookie ? wait : PRUDENCE_WAIT_BATCH,
                                  .cookie = has_cookie ? slab->waiting_cookie.value : 0};
}

/* Reads a slab under the node's lock. */
static void read_slab(struct heap_walk *walk, const struct walked_slab *walked)
{
    struct walked_object *objects = &walk->objects[walked->objects];
    struct slab *slab = walked->slab;
    uint8_t wait = slab->latent ? wait_of(slab->cache->domain, slab->waiting_cookie) : 0;

    for (unsigned i = 0; i < slab->capacity; i++) {
        if (bits_test(slab_free_bits(slab), i))
            objects[i] = (struct walked_object){.cpu = -1, .state = PRUDENCE_OBJECT_FREE};
        else if (bits_test(slab_waiting_bits(slab), i))
            objects[i] = latent_in_slab(slab, true, wait);
        else if (bits_test(slab_next_bits(slab), i))
            objects[i] = latent_in_slab(slab, false, wait);
        else
            objects[i] = outside_of_slab(slab, i);
        if (slab->cache == walk->common && !cold_has(walk->owner, slab, i))
            objects[i].state = WALK_HIDDEN;
    }
}

/* Returns the usable bytes of a slab's objects. For an object that is guarded alone, the size of
 * the class would reach past the slab's pages. */
static size_t usable_bytes(const struct slab *slab)
{
    size_t bytes = slab_usable_bytes(slab);

    return slab->alone ? min_size(bytes, slab->bytes - slab_front_margin(slab)) : bytes;
}

static void walk_describe(struct walked_slab *walked)
{
    struct slab *slab = walked->slab;
    const struct prudence_cache *cache = slab->cache;

    walked->base = slab->base;
    walked->capacity = slab->capacity;
    walked->told = (struct prudence_heap_slab){
        .cache = cache,
        .pages = slab->pages,
        .bytes = slab->bytes,
        .object_size = usable_bytes(slab),
        .object_stride = slab_object_bytes(slab),
        .node = slab->node,
        .is_large = !cache->percpu || slab->alone,
        .objects = slab->capacity,
    };
    name_copy(walked->told.cache_name, sizeof walked->told.cache_name, cache->name);
    name_copy(walked->told.domain, sizeof walked->told.domain, cache->domain->name);
}

static void read_slabs(struct heap_walk *walk)
{
    for (unsigned i = 0; i < walk->slab_count; i++) {
        struct walked_slab *walked = &walk->slabs[i];
        struct slab_node *node = node_of(walked->slab);
        uint64_t bytes = 0;

        walk_describe(walked);
        node_latent_objects(node,
                            /* Receives the objects that the idle helper handed over. */
                            &bytes);
        os_lock_take(&node->lock);
        read_slab(walk, walked);
        os_lock_release(&node->lock);
    }
}

/* --------------------------------------------------------------------------------- CPUs' caches */

static struct walked_object *shown(struct walked_object *object)
{
    return object->state != WALK_HIDDEN ? object : NULL;
}

/* Returns the entry of an object of these slabs, or NULL if the object is in another slab, or of a
 * cache that is not asked for. */
static struct walked_object *walk_place_of(struct heap_walk *walk, const void *object)
{
    unsigned first = 0, end = walk->slab_count;

    while (first < end) {
        unsigned middle = (first + end) / 2;
        const struct walked_slab *walked = &walk->slabs[middle];
        uintptr_t pages = (uintptr_t)walked->told.pages;

        if ((uintptr_t)object < pages)
            end = middle;
        else if ((uintptr_t)object - pages >= walked->told.bytes)
            first = middle + 1;
        else
            return shown(&walk->objects[walked->objects + slab_index(walked->slab, object)]);
    }
    return NULL;
}

static void read_stack(struct heap_walk *walk, const struct cpu_cache *cpu)
{
    for (unsigned i = 0; i < stack_count(&cpu->line); i++) {
        struct walked_object *place = walk_place_of(walk, cpu->line.stack[i]);

        if (place)
            *place = (struct walked_object){.cpu = (int32_t)cpu->line.cpu,
                                            .state = PRUDENCE_OBJECT_CACHED};
    }
}

/* Reads one batch, closed or open. */
static void read_ring(struct heap_walk *walk, const struct cpu_cache *cpu, uint64_t from,
                      uint64_t end, struct walked_object latent)
{
    latent.cpu = (int32_t)cpu->line.cpu;
    latent.state = PRUDENCE_OBJECT_LATENT;
    for (; (int64_t)(end - from) > 0; from++) {
        struct walked_object *place =
            walk_place_of(walk, cpu->line.ring[from & cpu->line.ring_mask]);

        if (place)
            *place = latent;
    }
}

static void read_latent_cache(struct heap_walk *walk, const struct prudence_cache *cache,
                              const struct cpu_cache *cpu)
{
    uint64_t at = cpu->line.ring_head;

    for (unsigned i = cpu->batch_head; i != cpu->batch_tail; i++) {
        const struct batch *batch = &batches_of(cpu)[i & cpu->batch_mask];

        if ((int64_t)(batch->end - at) <= 0)
            continue; /* emptied by the owner or by the idle helper */
        read_ring(walk, cpu, at, batch->end,
                  (struct walked_object){.wait = wait_of(cache->domain, batch->cookie),
                                         .cookie = batch->cookie.value});
        at = batch->end;
    }
    read_ring(walk, cpu, at, cpu->line.ring_tail,
              (struct walked_object){.wait = PRUDENCE_WAIT_BATCH});
}

static void read_cpus(struct heap_walk *walk)
{
    for (unsigned i = 0; i < walk->cache_count; i++) {
        const struct prudence_cache *cache = walk->caches[i];

        for (unsigned cpu = 0; cache->percpu && cpu < os_cpu_count(); cpu++) {
            if (!cpu_cache_of(cache, cpu)->slots)
                continue;
            read_stack(walk, cpu_cache_of(cache, cpu));
            read_latent_cache(walk, cache, cpu_cache_of(cache, cpu));
        }
    }
}

/* ------------------------------------------------------------------------------------- together */

static void count_states(const struct heap_walk *walk, struct walked_slab *walked)
{
    uint64_t counts[WALK_HIDDEN + 1] = {0};

    for (unsigned i = 0; i < walked->capacity; i++)
        counts[walk->objects[walked->objects + i].state]++;
    walked->told.objects = walked->capacity - counts[WALK_HIDDEN];
    walked->told.live = counts[PRUDENCE_OBJECT_LIVE];
    walked->told.cached = counts[PRUDENCE_OBJECT_CACHED];
    walked->told.latent = counts[PRUDENCE_OBJECT_LATENT];
    walked->told.free = counts[PRUDENCE_OBJECT_FREE];
    walked->told.resting = counts[PRUDENCE_OBJECT_RESTING];
}

static void walk_look(struct heap_walk *walk)
{
    slab_fork_hold();
    find_slabs(walk);
    if (walk->slab_count) {
        own_cpus(walk);
        read_slabs(walk);
        read_cpus(walk);
        release_cpus(walk);
    }
    slab_fork_let_go();
    for (unsigned i = 0; i < walk->slab_count; i++)
        count_states(walk, &walk->slabs[i]);
}

/* A slab found here may be gone when the heap is held; the search then continues after that
 * address. */
bool heap_walk_next(struct heap_walk *walk)
{
    while (os_page_owner_next(&walk->next, UINTPTR_MAX)) {
        walk_look(walk);
        if (walk->slab_count)
            return true;
    }
    return false;
}
