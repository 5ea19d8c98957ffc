/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A node holds the slabs of a cache on one NUMA node. Visits of the node are here: threads take the
 * lock, change the slabs by the functions of node_lists.c, node_choose.c and latent_slab.c, and
 * leave.
 *
 * The lock that counts belongs to the slab's home node, not to the current CPU's (rule 11). Except
 * to report misuse, nothing under it waits, makes system calls or takes a lock of lower rank; pages
 * go back after the release.
 */
#include "slab/node.h"

#include "gp/gp.h"
#include "os/os.h"
#include "slab/cache_type.h"
#include "slab/extension.h"
#include "slab/latent_slab.h"
#include "slab/misuse.h"
#include "slab/node_choose.h"
#include "slab/node_lists.h"
#include "slab/reclaim/limit.h"
#include "slab/reuse.h"
#include "slab/runs.h"
#include "slab/slab.h"
#include "slab/transfer_batch.h"

/* ----------------------------------------------------------------------------------- hand-over */

/* Pushes a batch without the lock, for the idle helper, which must own nothing. Release: pairs with
 * the acquire in `receive`. */
void node_hand_over(struct slab_node *node, struct transfer_batch *batch)
{
    struct transfer_batch *first = load_relaxed(&node->handover);

    do
        batch->next = first;
    while (!compare_exchange(&node->handover, &first, batch));
}

static void receive(struct slab_node *node)
{
    struct transfer_batch *batch = load_relaxed(&node->handover);

    if (likely(!batch))
        return;
    node_lists_changed(node);
    batch = exchange_acquire(&node->handover, NULL);
    while (batch) {
        struct transfer_batch *next = batch->next;

        for (unsigned i = 0; i < batch->count;) {
            struct slab *slab = slab_known(batch->objects[i]);
            struct run run;

            if (unlikely(!slab)) { /* the size of the object is unknown, too */
                i++;
                continue;
            }
            i += run_gather(&run, slab, batch->objects + i, batch->count - i);
            latent_slab_put(node, &run, &batch->cookie);
        }
        transfer_batch_return(batch);
        batch = next;
    }
}

static void node_lock(struct slab_node *node)
{
    os_lock_take(&node->lock);
    node_lists_changed(node);
}

/* Begins a visit: takes the lock, receives transfer batches and merges safe slabs. Returns the
 * number of these. */
static unsigned node_enter(struct slab_node *node)
{
    node_lock(node);
    receive(node);
    return latent_slab_merge_safe(node);
}

/* ------------------------------------------------------------------------------------- taking */

/* Returns the lowest `count` of the bits; more are set. */
static uint64_t lowest_bits(uint64_t bits, unsigned count)
{
    uint64_t rest = bits;

    for (; count; count--)
        rest &= rest - 1;
    return bits ^ rest;
}

/* Returns the bits that are in groups of `group` set bits, a power of two. Each group begins at one
 * of `firsts`. */
static uint64_t whole_groups(uint64_t bits, unsigned group, uint64_t firsts)
{
    for (unsigned step = 1; step < group; step *= 2)
        bits &= bits >> step;
    return (bits & firsts) * ((UINT64_C(1) << group) - 1);
}

/* Takes up to `count` objects, in groups of `group`, as up to `room` runs. Returns the number of
 * runs, and subtracts from *count. */
static unsigned take_groups(struct slab *slab, unsigned group, struct run *runs, unsigned room,
                            unsigned *count)
{
    uint64_t firsts = group > 1 ? ~UINT64_C(0) / ((UINT64_C(1) << group) - 1) : 0;
    unsigned made = 0;

    for (unsigned w = 0; *count >= group && made < room && w < bits_words(slab->capacity); w++) {
        uint64_t bits = slab_free_bits(slab)[w];
        unsigned here, most = *count & -group;

        if (group > 1)
            bits = whole_groups(bits, group, firsts);
        if (!bits)
            continue;
        here = (unsigned)__builtin_popcountll(bits);
        if (here > most) {
            bits = lowest_bits(bits, most);
            here = most;
        }
        slab_free_bits(slab)[w] ^= bits;
        runs[made++] = (struct run){.slab = slab, .bits = bits, .word = w, .count = here};
        slab->free -= here;
        slab_touched(slab);
        *count -= here;
    }
    return made;
}

/*
 * Takes up to `count` objects as up to `room` runs. Returns the number of runs, and subtracts from
 * *count. Whole cache lines come first, because objects of one line in the hands of two CPUs slow
 * down each other's writes (ADR 150).
 */
static unsigned take_from_slab(struct slab *slab, struct run *runs, unsigned room, unsigned *count)
{
    unsigned group = slab->cache->body->line_objects, made = 0;

    if (group > 1)
        made = take_groups(slab, group, runs, room, count);
    return made ? made : take_groups(slab, 1, runs, room, count);
}

/* Takes runs from the node, and releases the lock that the caller holds. */
static unsigned take_runs(struct slab_node *node, struct run *runs, unsigned count)
{
    unsigned made = 0;
    struct slab *slab;

    while (count && made < RUNS_MAX && (slab = node_choose(node))) {
        if (unlikely(slab->hollowed))
            node->hollow_regret++;
        made += take_from_slab(slab, runs + made, RUNS_MAX - made, &count);
        node_lists_place(node, slab, true);
    }
    node_lists_note_used(node);
    node->counts.allocations += made > 0;
    os_lock_release(&node->lock);
    return made;
}

static unsigned spread_runs(const struct run *runs, unsigned made, size_t stride, void **objects)
{
    unsigned taken = 0;

    for (unsigned i = 0; i < made; i++)
        taken += run_spread(&runs[i], stride, objects + taken);
    return taken;
}

/* Takes up to `count` free objects for an allocation and refill, and returns their number. Takes
 * fewer than there are only if they need more than RUNS_MAX runs. */
unsigned node_take(struct prudence_cache *cache, struct slab_node *node, void **objects,
                   unsigned count)
{
    struct run runs[RUNS_MAX] UNINITIALIZED;

    node_enter(node);
    return spread_runs(runs, take_runs(node, runs, count), cache->body->stride, objects);
}

/* ------------------------------------------------------------------------------------ putting */

static void put_free(struct slab_node *node, struct run *run, const gp_cookie *cookie)
{
    struct slab *slab = run->slab;
    bool had_free = slab->free > 0;

    (void)cookie; /* the objects are free already */
    misuse_check_run(run, "free");
    slab_free_bits(slab)[run->word] |= run->bits;
    slab->free += run->count;
    slab_touched(slab);
    node_lists_place(node, slab, had_free);
}

static size_t unmake_all(struct list *excess)
{
    struct slab *slab;
    size_t bytes = 0;

    while ((slab = list_first(excess, struct slab, link))) {
        list_remove(&slab->link);
        bytes += slab->bytes;
        slab_unmake(slab);
    }
    return bytes;
}

#define ALL_BYTES (~(size_t)0)

/* Leaves the node. Releases the lock, then shrinks by the node's excess slabs, up to `wanted`
 * bytes, and adds their bytes to *bytes. During a fork they stay for the next visit. Returns the
 * number of slabs. */
static unsigned node_leave(struct slab_node *node, unsigned keep, size_t wanted, size_t *bytes)
{
    struct list excess;
    unsigned detached = 0;
    bool carries = node_lists_have_excess(node, keep) && os_in_flight_try(), kept;

    list_init(&excess);
    node->kept = false;
    if (carries)
        detached = node_lists_detach_excess(node, keep, wanted, &excess);
    kept = node->kept;
    os_lock_release(&node->lock);
    if (unlikely(kept))
        extensions_kept();
    *bytes += unmake_all(&excess);
    if (carries)
        os_in_flight_end();
    return detached;
}

/* Objects on their way to their home nodes, and the operation there. */
struct delivery {
    void **objects; /* objects still to go; the array is overwritten */
    unsigned count, made;
    void (*put)(struct slab_node *node, struct run *run, const gp_cookie *cookie);
    void (*visit)(struct slab_node *node, unsigned objects, bool first); /* counts */
    const gp_cookie *cookie; /* of latent objects; else NULL */
    /* The first `made` are of one node; their objects are out of `objects`. */
    struct run runs[RUNS_MAX];
};

/* Makes runs of the node's objects, as many as fit, and returns the number of objects. The others
 * stay in order. */
static unsigned gather(struct delivery *delivery, const struct slab_node *node)
{
    unsigned at = 0, others = 0, count = delivery->count;
    void **objects = delivery->objects;

    delivery->made = 0;
    while (at < count && delivery->made < RUNS_MAX) {
        struct slab *slab = slab_known(objects[at]);

        if (likely(slab && node_of(slab) == node))
            at += run_gather(&delivery->runs[delivery->made++], slab, objects + at, count - at);
        else
            objects[others++] = objects[at++];
    }
    delivery->objects += at - others;
    delivery->count -= at - others;
    while (others-- > 0)
        delivery->objects[others] = objects[others];
    return count - delivery->count;
}

/* Delivers all objects of the node, under one hold of the lock, or a few. */
static void deliver_to(struct slab_node *node, struct delivery *delivery, unsigned keep)
{
    bool first = true;
    unsigned taken;
    size_t bytes = 0;

    while ((taken = gather(delivery, node))) {
        node_enter(node);
        for (unsigned i = 0; i < delivery->made; i++)
            delivery->put(node, &delivery->runs[i], delivery->cookie);
        delivery->visit(node, taken, first);
        node_leave(node, keep, ALL_BYTES, &bytes);
        if (delivery->made < RUNS_MAX)
            break;
        first = false;
    }
}

/* Hands objects to their home nodes, one node after the other. They come in any order, because a
 * CPU's caches mix objects of all nodes. */
static void put_all(struct prudence_cache *cache, void **objects, unsigned count,
                    void (*put)(struct slab_node *node, struct run *run, const gp_cookie *cookie),
                    const gp_cookie *cookie,
                    void (*visit)(struct slab_node *node, unsigned objects, bool first))
{
    struct delivery delivery UNINITIALIZED;

    delivery.objects = objects;
    delivery.count = count;
    delivery.put = put;
    delivery.visit = visit;
    delivery.cookie = cookie;
    while (delivery.count) {
        struct slab *slab = slab_known(delivery.objects[0]);

        if (likely(slab != NULL)) {
            deliver_to(node_of(slab), &delivery, cache->body->free_limit);
            continue;
        }
        if (cookie) /* no slab takes the object; a latent one no longer counts */
            limit_release(os_cpu_current(), cache->body->stride);
        delivery.objects++;
        delivery.count--;
    }
}

static void count_frees(struct slab_node *node, unsigned objects, bool first)
{
    (void)first;
    node->counts.frees += objects;
}

static void count_flush(struct slab_node *node, unsigned objects, bool first)
{
    node->counts.flushes += first;
    node->counts.flushed_objects += objects;
}

static void count_overflow(struct slab_node *node, unsigned objects, bool first)
{
    (void)first;
    node->counts.overflowed_objects += objects;
}

/* Frees objects past the object cache. */
void node_put(struct prudence_cache *cache, void **objects, unsigned count)
{
    put_all(cache, objects, count, put_free, NULL, count_frees);
}

/* Flushes objects from an object cache, or safe ones from a latent cache. */
void node_flush(struct prudence_cache *cache, void **objects, unsigned count)
{
    os_event(flush, cache, count);
    put_all(cache, objects, count, put_free, NULL, count_flush);
}

/* Puts latent objects from a full latent cache into latent slabs; `cookie` makes them all safe. */
void node_overflow(struct prudence_cache *cache, void **objects, unsigned count, gp_cookie cookie)
{
    os_event_until(overflow, cache, count, cookie);
    put_all(cache, objects, count, latent_slab_put, &cookie, count_overflow);
}

/* The same for objects that a poll has found named. */
void node_overflow_named(struct prudence_cache *cache, void **objects, unsigned count,
                         gp_cookie cookie)
{
    os_event_until(overflow, cache, count, cookie);
    put_all(cache, objects, count, latent_slab_put_named, &cookie, count_overflow);
}

/* Defers an object straight into the latent slab. Returns false if latent_limit does not allow
 * it. */
bool node_put_latent(struct slab *slab, void *object, bool past_limit)
{
    struct slab_node *node = node_of(slab);
    size_t bytes = slab_object_bytes(slab), freed = 0;
    bool room = true;
    struct run run;

    run_gather(&run, slab, &object, 1);
    node_enter(node);
    if (past_limit)
        limit_reserve_past(os_cpu_current(), bytes);
    else
        room = limit_reserve(os_cpu_current(), bytes);
    if (room) {
        /* Not before: without room, the object may come to a ring after all. */
        if (unlikely(slab->cache->flags & CACHE_DESTRUCTED))
            reuse_upcalls.to_slabs(slab->cache, &object, 1);
        latent_slab_put(node, &run, NULL);
        node->counts.deferred++;
    }
    node_leave(node, slab->cache->body->free_limit, ALL_BYTES, &freed);
    return room;
}

/* Detaches latent objects of the node for a poll, and returns their number; latent_slab_take()
 * says which. */
unsigned node_take_waiting(struct slab_node *node, void **objects, unsigned room, gp_cookie *cookie)
{
    unsigned taken;

    node_enter(node);
    taken = latent_slab_take(node, objects, room, cookie);
    os_lock_release(&node->lock);
    return taken;
}

/* -------------------------------------------------------------------------- slabs come and go */

/* Adds a slab, then takes like node_take(), at least one object if `count` is. */
unsigned node_add_slab(struct slab_node *node, struct slab *slab, void **objects, unsigned count)
{
    struct run runs[RUNS_MAX] UNINITIALIZED;
    size_t stride = slab->cache->body->stride;

    node_enter(node);
    node_lists_join(node, slab, SLAB_FREE);
    return spread_runs(runs, take_runs(node, runs, count), stride, objects);
}

/* Adds the slab of a large block, which is allocated from the start. */
void node_adopt_live(struct slab_node *node, struct slab *slab)
{
    node_lock(node);
    bits_clear(slab_free_bits(slab), 0); /* a walk over the heap may have found the slab already */
    slab->free = 0;
    node_lists_join(node, slab, SLAB_FULL);
    node->counts.allocations++;
    os_lock_release(&node->lock);
}

/* Returns whether an object is in its latent slab, or on its way there. */
bool node_has_latent(struct slab *slab, unsigned index)
{
    struct slab_node *node = node_of(slab);
    bool has;

    os_lock_take(&node->lock);
    receive(node);
    has = bits_test(slab_waiting_bits(slab), index) || bits_test(slab_next_bits(slab), index);
    os_lock_release(&node->lock);
    return has;
}

/* Reports a large block that a caller is about to change, if it is free or latent. */
void node_check_live(struct slab *slab, const char *what)
{
    struct slab_node *node = node_of(slab);
    unsigned free, latent;

    os_lock_take(&node->lock);
    free = slab->free;
    latent = slab->latent;
    os_lock_release(&node->lock);
    if (free || latent)
        misuse_report_double(slab, slab->base, latent > 0, what);
}

/* Makes one visit, under one hold of the lock, that merges slabs and shrinks by up to
 * `wanted` bytes. Returns true if the visit reached NODE_SLABS_A_VISIT. */
bool node_shrink_some(struct slab_node *node, unsigned keep, size_t wanted, size_t *bytes)
{
    unsigned merged = node_enter(node);

    return node_leave(node, keep, wanted, bytes) == NODE_SLABS_A_VISIT ||
           merged == NODE_SLABS_A_VISIT;
}

/* Merges safe slabs and shrinks to `keep` free slabs, until `wanted` bytes have gone; returns the
 * bytes. The present slabs bound the number of visits, because other threads may bring
 * more all the time. */
size_t node_shrink_until(struct slab_node *node, unsigned keep, size_t wanted)
{
    size_t bytes = 0;
    unsigned visits;

    os_lock_take(&node->lock);
    visits = 2 * (node->slabs / NODE_SLABS_A_VISIT + 1);
    os_lock_release(&node->lock);
    while (visits-- && node_shrink_some(node, keep, wanted - bytes, &bytes) && bytes < wanted)
        ;
    return bytes;
}

size_t node_shrink(struct slab_node *node, unsigned keep)
{
    return node_shrink_until(node, keep, ALL_BYTES);
}

/* Shrinks each node of the cache to `keep` free slabs, and merges what is safe. Returns the bytes
 * of the slabs that went. */
size_t node_shrink_to(struct prudence_cache *cache, unsigned keep)
{
    size_t bytes = 0;

    for (unsigned node = 0; node < os_node_count(); node++)
        bytes += node_shrink(&cache->body->nodes[node], keep);
    return bytes;
}

/* Shrinks all nodes of the cache, until `wanted` bytes have gone or nothing remains. Disturbs no
 * other CPU. */
size_t node_shrink_all(struct prudence_cache *cache, size_t wanted)
{
    size_t bytes = 0;

    for (unsigned node = 0; node < os_node_count() && bytes < wanted; node++)
        bytes += node_shrink_until(&cache->body->nodes[node], 0, wanted - bytes);
    return bytes;
}

/* Returns whether a visit has something to merge or to shrink by, now or later. */
static bool has_work(const struct slab_node *node)
{
    return node->latent || node->free_slabs || !list_is_empty(&node->lists[SLAB_RETIRED]);
}

/* Makes one visit that merges safe slabs and shrinks by free slabs that demand does not want.
 * Returns true if there is more. Skips, without the lock, a node where the last visit found nothing
 * and to which no thread has come since. Keeps no slab of a block, because no other block takes it
 * over, and nothing makes decay come back for it (node_lists_free_bytes leaves it out). */
bool node_decay(struct prudence_cache *cache, struct slab_node *node)
{
    unsigned merged, keep;
    size_t bytes = 0;

    if (load_relaxed(&node->decayed) && !load_relaxed(&node->handover))
        return false;
    merged = node_enter(node);
    keep = cache->percpu ? node_lists_decay_keeps(node) : 0;
    node_lists_note_free(node, cache->body->slab_bytes, 0);
    store_relaxed(&node->decayed, !has_work(node));
    return node_leave(node, keep, ALL_BYTES, &bytes) == NODE_SLABS_A_VISIT ||
           merged == NODE_SLABS_A_VISIT;
}

/* Shrinks the node as long as no other thread holds the lock; a thread that does merges, too. */
void node_try_shrink(struct slab_node *node, unsigned keep)
{
    unsigned merged = NODE_SLABS_A_VISIT;
    size_t bytes = 0;

    while (merged == NODE_SLABS_A_VISIT && os_lock_try(&node->lock)) {
        receive(node);
        merged = latent_slab_merge_safe(node);
        node_leave(node, keep, ALL_BYTES, &bytes);
    }
}

/* Takes selected free objects of this slab, marks them as allocated, and returns their number. */
static unsigned take_selected(struct slab *slab, const struct node_filter *filter, void **objects,
                              unsigned count)
{
    unsigned taken = 0;

    if (filter->may_have && !filter->may_have(slab))
        return 0;
    for (unsigned w = 0; taken < count && w < bits_words(slab->capacity); w++) {
        uint64_t bits = slab_free_bits(slab)[w] & filter->select(slab, w, filter->data);

        for (; bits && taken < count; bits &= bits - 1) {
            slab_free_bits(slab)[w] &= ~(bits & -bits);
            objects[taken++] =
                slab_object(slab, w * BITS_PER_WORD + (unsigned)__builtin_ctzll(bits),
                            slab->cache->body->stride);
        }
    }
    slab->free -= taken;
    slab_touched(slab);
    return taken;
}

/* Takes selected free objects of one slab for an extension, from free slabs only or from any. The
 * slab counts them as neither free nor latent until node_put_selected(). */
unsigned node_take_selected(struct slab_node *node, bool any_slab, const struct node_filter *filter,
                            void **objects, unsigned count)
{
    static const enum slab_list lists[] = {SLAB_FREE, SLAB_DRAINING, SLAB_PARTIAL, SLAB_HOLLOW};
    unsigned taken = 0;

    node_enter(node);
    for (unsigned i = 0; i < (any_slab ? sizeof lists / sizeof *lists : 1) && !taken; i++) {
        struct list *item;

        list_for_each(item, &node->lists[lists[i]])
        {
            struct slab *slab = list_entry(item, struct slab, link);

            taken = take_selected(slab, filter, objects, count);
            if (taken) {
                node_lists_place(node, slab, true);
                break;
            }
        }
    }
    os_lock_release(&node->lock);
    return taken;
}

/* Takes a selected free object for an allocation. Returns NULL if the first NODE_SLABS_A_VISIT
 * slabs of each list have none. */
void *node_take_one(struct slab_node *node, const struct node_filter *filter)
{
    static const enum slab_list lists[] = {SLAB_PARTIAL, SLAB_FREE, SLAB_DRAINING, SLAB_HOLLOW};
    struct slab *slab = NULL;
    void *object = NULL;

    node_enter(node);
    for (unsigned i = 0; i < sizeof lists / sizeof *lists && !object; i++) {
        unsigned looked_at = 0;
        struct list *item;

        list_for_each(item, &node->lists[lists[i]])
        {
            slab = list_entry(item, struct slab, link);
            if (!slab->free || looked_at++ == NODE_SLABS_A_VISIT ||
                take_selected(slab, filter, &object, 1))
                break;
        }
    }
    if (object) {
        node_lists_place(node, slab, true);
        node_lists_note_used(node);
        node->counts.allocations++;
    }
    os_lock_release(&node->lock);
    return object;
}

/* Adds a new slab, and takes one object for the caller. */
void node_add_slab_and_take(struct slab_node *node, struct slab *slab, void **object)
{
    struct run run;
    unsigned count = 1;

    node_lock(node);
    node_lists_join(node, slab, SLAB_FREE);
    if (take_from_slab(slab, &run, 1, &count))
        run_spread(&run, slab->cache->body->stride, object);
    node_lists_place(node, slab, true);
    node_lists_note_used(node);
    node->counts.allocations++;
    os_lock_release(&node->lock);
}

static void count_nothing(struct slab_node *node, unsigned objects, bool first)
{
    (void)node, (void)objects, (void)first;
}

/* Puts selected objects back as free. */
void node_put_selected(struct prudence_cache *cache, void **objects, unsigned count)
{
    put_all(cache, objects, count, put_free, NULL, count_nothing);
}

/* Returns the number of latent objects in the node or on their way there; adds their bytes to
 * *bytes. */
unsigned node_latent_objects(struct slab_node *node, uint64_t *bytes)
{
    unsigned latent;

    os_lock_take(&node->lock);
    receive(node);
    latent = node->latent;
    *bytes += node->latent_bytes;
    os_lock_release(&node->lock);
    return latent;
}
