/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A node: the slabs of one cache on one NUMA node, and everything that happens to them.
 *
 * The lock that counts is that of a slab's home node, not of the current CPU (rule 11). Nothing is called under it
 * that waits, makes system calls or takes a lock of a lower rank; pages go back after it is released.
 *
 * Each slab stands where its free, latent and live objects put it (list_for). Because latent objects count, a
 * deferral moves its slab at once to where it will belong: pre-movement (rule 8). In the partial and draining lists,
 * slabs with free objects stand before those without.
 */
#include "slab/node.h"

#include "gp/gp.h"
#include "os/os.h"
#include "slab/cache.h"
#include "slab/extension.h"
#include "slab/latent_account.h"
#include "slab/misuse.h"
#include "slab/runs.h"
#include "slab/slab.h"
#include "slab/transfer_batch.h"

/* A refill looks at so many partial slabs (paper, section 5.4). */
#define SLABS_WEIGHED 10

static enum slab_list list_for(const struct slab *slab)
{
    if (slab->free == slab->capacity)
        return likely(!slab->alone) ? SLAB_FREE : SLAB_RETIRED;
    if (slab->free + slab->latent == slab->capacity)
        return SLAB_DRAINING;
    if (slab->free || slab->latent)
        return SLAB_PARTIAL;
    return SLAB_FULL;
}

/* ---------------------------------------------------------------------------------- what is free */

/* Free slabs that are not noted, in bytes, at most. */
#define FREE_UNNOTED ((size_t)64 << 10)

/* What all nodes noted; atomic. All CPUs write it, so it has its lines for itself. */
static struct noted {
    int64_t free_bytes;
} __attribute__((aligned(CACHE_LINES_APART))) noted;

/* Bytes of free slabs, of all caches and nodes; roughly. */
uint64_t node_free_bytes(void)
{
    int64_t bytes = load_relaxed(&noted.free_bytes);

    return bytes > 0 ? (uint64_t)bytes : 0;
}

/* The process counts what is free, except a little of each node, so that no locked operation is needed for each
 * slab. */
static void note_free(struct slab_node *node, size_t slab_bytes, size_t unnoted)
{
    int64_t more = (int64_t)node->free_slabs - (int64_t)node->free_noted;
    int64_t bytes = more * (int64_t)slab_bytes;

    if (likely((size_t)(bytes < 0 ? -bytes : bytes) <= unnoted))
        return;
    add_relaxed(&noted.free_bytes, bytes);
    store_relaxed(&node->free_noted, node->free_slabs); /* read by spare.c, without the lock */
}

/* ------------------------------------------------------------------------------------------ lists */

void node_init(struct slab_node *node)
{
    os_lock_init(&node->lock, OS_RANK_NODE);
    list_init(&node->waiting);
    for (unsigned list = 0; list < SLAB_LISTS; list++)
        list_init(&node->lists[list]);
}

/* It has no slab. */
void node_end(struct slab_node *node, size_t slab_bytes)
{
    sub_relaxed(&noted.free_bytes, (int64_t)node->free_noted * (int64_t)slab_bytes);
    os_lock_destroy(&node->lock);
}

static void attach(struct slab_node *node, struct slab *slab, enum slab_list list)
{
    slab->list = (uint8_t)list;
    if (slab->free)
        list_add_head(&node->lists[list], &slab->link);
    else
        list_append(&node->lists[list], &slab->link);
    if (list == SLAB_FREE) {
        node->free_slabs++;
        note_free(node, slab->cache->slab_bytes, FREE_UNNOTED);
    }
}

static void detach(struct slab_node *node, struct slab *slab)
{
    list_remove(&slab->link);
    if (slab->list == SLAB_FREE) {
        node->free_slabs--;
        note_free(node, slab->cache->slab_bytes, FREE_UNNOTED);
    }
}

/* Puts the slab where it belongs after a change; `had_free` is whether it had free objects before.
 * Returns whether it went to another list. */
static bool place(struct slab_node *node, struct slab *slab, bool had_free)
{
    enum slab_list from = slab->list, to = list_for(slab);

    if (from == to && had_free == (slab->free > 0))
        return false;
    detach(node, slab);
    attach(node, slab, to);
    if (to == SLAB_FREE)
        store_relaxed(&slab->may_leave, 0); /* what it should be */
    if (to == SLAB_FREE && from != SLAB_FREE && slab->cache->flags & CACHE_TYPESAFE)
        slab->free_cookie = gp_snapshot(slab->cache->domain);
    return from != to;
}

/* ------------------------------------------------------------------------------- latent slabs */

static void wait_in_line(struct slab_node *node, struct slab *slab, gp_cookie cookie)
{
    slab->waiting_cookie = cookie;
    list_append(&node->waiting, &slab->waiting_link);
}

static bool is_waiting(const struct slab *slab)
{
    return !list_is_empty(&slab->waiting_link);
}

bool slab_process_ends = false;

/* Reports objects that are free or latent already. That ends a process; in a kernel the objects stay as they were. */
static void refuse(struct run *run, uint64_t bits, bool latent, const char *what)
{
    describe_double(run->slab, run_object(run, bits), latent,
                    load_relaxed(&slab_process_ends) ? "end of the process" : what);
    os_misuse();
    run->bits &= ~bits;
    run->count -= (unsigned)__builtin_popcountll(bits);
}

/* Bits that should be clear. */
static void check_run(struct run *run, const char *what)
{
    const struct slab *slab = run->slab;
    const uint64_t *bits = slab->bits + run->word;
    unsigned words = bits_words(slab->capacity);
    uint64_t free = run->bits & bits[0];
    uint64_t latent = run->bits & (bits[words] | bits[words + words]);

    if (unlikely(free))
        refuse(run, free, false, what);
    if (unlikely(latent))
        refuse(run, latent, true, what);
}

/* The same for deferred objects: the refused ones do not become latent by this deferral. False: none is left. */
static bool check_latent_run(struct run *run)
{
    unsigned count = run->count;

    check_run(run, "deferred free");
    if (likely(run->count == count))
        return true;
    latent_release(os_cpu_current(), (count - run->count) * slab_object_bytes(run->slab));
    return run->count > 0;
}

/*
 * Puts objects into their latent slab: under the waiting cookie if that is their own, else into next, which gets a
 * cookie when waiting is merged. (If one cookie were renewed at each deferral, it would never merge under load; to
 * keep an older one is unsound.) `cookie` NULL: none was taken yet.
 */
static void put_latent(struct slab_node *node, struct run *run, const gp_cookie *cookie)
{
    struct slab *slab = run->slab;
    bool had_free = slab->free > 0;

    if (!check_latent_run(run))
        return;
    slab->latent += run->count;
    node->latent += run->count;
    node->latent_bytes += run->count * slab_object_bytes(slab);
    if (!is_waiting(slab)) {
        slab_waiting_bits(slab)[run->word] |= run->bits;
        wait_in_line(node, slab, cookie ? *cookie : gp_snapshot(slab->cache->domain));
    } else if (cookie && gp_is_same(*cookie, slab->waiting_cookie)) {
        slab_waiting_bits(slab)[run->word] |= run->bits;
    } else {
        slab_next_bits(slab)[run->word] |= run->bits;
    }
    if (place(node, slab, had_free)) {
        node->counts.premoved_slabs++;
        os_event(premovement, slab->cache, slab->latent);
    }
}

static void all_are_safe(struct slab *slab, unsigned word, uint64_t bits)
{
    for (; bits; bits &= bits - 1) {
        unsigned index = word * BITS_PER_WORD + (unsigned)__builtin_ctzll(bits);

        extensions_safe(slab, slab_object(slab, index, slab->cache->stride));
    }
}

/* Latent slab -> slab: the waiting objects are safe. */
static void merge_waiting(struct slab_node *node, struct slab *slab)
{
    unsigned words = bits_words(slab->capacity), merged = 0;
    bool had_free = slab->free > 0;

    for (unsigned w = 0; w < words; w++) {
        merged += (unsigned)__builtin_popcountll(slab_waiting_bits(slab)[w]);
        if (unlikely(load_relaxed(&slab->extensions)))
            all_are_safe(slab, w, slab_waiting_bits(slab)[w]);
    }
    bits_move(slab_free_bits(slab), slab_waiting_bits(slab), words);
    bits_move(slab_waiting_bits(slab), slab_next_bits(slab), words);
    slab->free += merged;
    slab->latent -= merged;
    node->latent -= merged;
    node->latent_bytes -= merged * slab_object_bytes(slab);
    place(node, slab, had_free);
    node->counts.merges++;
    node->counts.merged_objects += merged;
    os_event_until(merge, slab->cache, merged, slab->waiting_cookie);
    latent_release(os_cpu_current(), merged * slab_object_bytes(slab));
}

/* Merges the slabs whose grace period is over. Those with further latent objects wait anew: one fence and one cookie,
 * taken when all of them are detached from next, serve them all. Returns how many. */
static unsigned merge_safe(struct slab_node *node)
{
    struct list again;
    struct slab *slab;
    unsigned merged = 0;
    gp_cookie cookie;

    list_init(&again);
    while ((slab = list_first(&node->waiting, struct slab, waiting_link)) &&
           merged < NODE_SLABS_A_VISIT && gp_poll(slab->cache->domain, slab->waiting_cookie)) {
        merged++;
        list_remove(&slab->waiting_link);
        merge_waiting(node, slab);
        if (slab->latent)
            list_append(&again, &slab->waiting_link);
    }
    if (list_is_empty(&again))
        return merged;
    slab = list_first(&again, struct slab, waiting_link);
    cookie = gp_snapshot(slab->cache->domain);
    while ((slab = list_first(&again, struct slab, waiting_link))) {
        list_remove(&slab->waiting_link);
        wait_in_line(node, slab, cookie);
    }
    return merged;
}

/* ------------------------------------------------------------------------------------- demand */

uint64_t slab_decay READ_MOSTLY = 100000000;

static unsigned used_slabs(const struct slab_node *node)
{
    return node->slabs - node->free_slabs;
}

static void note_used(struct slab_node *node)
{
    if (used_slabs(node) > node->used_peak)
        node->used_peak = used_slabs(node);
}

/* Free slabs that were all in use within the last one or two windows of decay will be in use again. To keep them
 * saves a shrink, a grow and the page faults of both. */
static unsigned keep_for_demand(struct slab_node *node)
{
    uint64_t decay = load_relaxed(&slab_decay), now;
    unsigned peak;

    if (!decay)
        return 0;
    now = os_clock_coarse_ns();
    if (now >= node->window_end || node->window_end - now > decay) {
        node->used_peak_before = node->used_peak;
        node->used_peak = used_slabs(node);
        node->window_end = now + decay;
    }
    peak = (unsigned)max_size(node->used_peak, node->used_peak_before);
    return peak - used_slabs(node);
}

/* ----------------------------------------------------------------------------------- hand-over */

/* Without the lock: called by threads that must own nothing. Release: pairs with the acquire in `receive`. */
void node_hand_over(struct slab_node *node, struct transfer_batch *batch)
{
    struct transfer_batch *first = load_relaxed(&node->handover);

    do
        batch->next = first;
    while (!compare_exchange(&node->handover, &first, batch));
}

/* Tidying has to look at the node again. */
static void unsettle(struct slab_node *node)
{
    if (node->settled)
        store_relaxed(&node->settled, false);
}

static void receive(struct slab_node *node)
{
    struct transfer_batch *batch = load_relaxed(&node->handover);

    if (likely(!batch))
        return;
    unsettle(node);
    batch = exchange_acquire(&node->handover, NULL);
    while (batch) {
        struct transfer_batch *next = batch->next;

        for (unsigned i = 0; i < batch->count;) {
            struct slab *slab = slab_known(batch->objects[i]);
            struct run run;

            if (unlikely(!slab)) { /* and it is not known how much it was */
                i++;
                continue;
            }
            i += run_gather(&run, slab, batch->objects + i, batch->count - i);
            put_latent(node, &run, &batch->cookie);
        }
        transfer_batch_return(batch);
        batch = next;
    }
}

static void lock(struct slab_node *node)
{
    os_lock_take(&node->lock);
    unsettle(node);
}

/* Every visit to a node begins with what has become due there; returns how many slabs that were. */
static unsigned enter(struct slab_node *node)
{
    lock(node);
    receive(node);
    return merge_safe(node);
}

/* ------------------------------------------------------------------------------------- taking */

/* Objects that are neither free nor about to be. The hint may come late: it is no invariant. */
static unsigned lasting(const struct slab *slab)
{
    unsigned live = slab->capacity - slab->free - slab->latent;
    unsigned leaving = load_relaxed(&slab->leaving);

    return live > leaving ? live - leaving : 0;
}

/*
 * Threads that give and end dates in one slab at a time may lose each other's changes of the count: a locked addition
 * would double the cost of a refresh. The drift is harmless: of slabs that are equally good another one is picked. It
 * cannot last, either: impossible values are cut off here, and the count is right again when all of the slab is free.
 */
static unsigned may_leave(const struct slab *slab, unsigned lasts)
{
    int32_t count = load_relaxed(&slab->may_leave);

    return count < 0 ? 0 : min_size((unsigned)count, lasts);
}

bool slab_spares_latent READ_MOSTLY = false;

/* Whether the slab is left alone as long as there is a free one. The switch adds, as in the paper, the slabs that are
 * mostly latent: their few other objects may soon be freed, too (ADR 81). */
static bool is_left_alone(const struct slab *slab, unsigned lasts)
{
    return load_relaxed(&slab_spares_latent) ? 2 * lasts < slab->capacity - slab->free : !lasts;
}

struct choice {
    struct slab *slab; /* NULL: none yet */
    unsigned lasts;
};

/* The more lasting objects, the better; among equals, the fewer that have an expiration date. */
static void weigh(struct slab *slab, unsigned lasts, struct choice *best)
{
    const struct slab *other = best->slab;

    if (!other || lasts > best->lasts ||
        (lasts == best->lasts && may_leave(slab, lasts) < may_leave(other, lasts)))
        *best = (struct choice){.slab = slab, .lasts = lasts};
}

/*
 * The slab to refill from. First choice: of the first partial slabs with free objects, the one with most lasting
 * objects. It is the least likely to become free, so the others drain, and total fragmentation ends lowest (paper,
 * Figure 5). Among equals it is the slab with the fewest objects that have an expiration date: these may stay as long
 * as the other objects, whose end is not known at all. Second choice: a free slab. Then, rather than grow, one that was
 * left alone; a draining one; or one that will drain when callbacks have run.
 */
static struct slab *pick(const struct slab_node *node)
{
    const struct list *partial = &node->lists[SLAB_PARTIAL];
    struct choice stays = {.slab = NULL}, leaves = {.slab = NULL};
    struct slab *slab;
    struct list *item;
    unsigned weighed = 0;

    list_for_each(item, partial)
    {
        unsigned lasts;

        slab = list_entry(item, struct slab, link);
        if (!slab->free || weighed++ == SLABS_WEIGHED)
            break;
        lasts = lasting(slab);
        weigh(slab, lasts, is_left_alone(slab, lasts) ? &leaves : &stays);
    }
    if (stays.slab)
        return stays.slab;
    slab = list_first(&node->lists[SLAB_FREE], struct slab, link);
    if (slab || leaves.lasts)
        return slab ? slab : leaves.slab;
    slab = list_first(&node->lists[SLAB_DRAINING], struct slab, link);
    return slab && slab->free ? slab : leaves.slab;
}

/* The lowest `count` of the bits; there are more. */
static uint64_t lowest_bits(uint64_t bits, unsigned count)
{
    uint64_t rest = bits;

    for (; count; count--)
        rest &= rest - 1;
    return bits ^ rest;
}

/* Takes up to `count` objects as up to `room` runs; returns how many runs, and subtracts from *count. */
static unsigned take_from_slab(struct slab *slab, struct run *runs, unsigned room, unsigned *count)
{
    unsigned made = 0;

    for (unsigned w = 0; *count && made < room && w < bits_words(slab->capacity); w++) {
        uint64_t bits = slab_free_bits(slab)[w];
        unsigned here;

        if (!bits)
            continue;
        here = (unsigned)__builtin_popcountll(bits);
        if (here > *count) {
            bits = lowest_bits(bits, *count);
            here = *count;
        }
        slab_free_bits(slab)[w] ^= bits;
        runs[made++] = (struct run){.slab = slab, .bits = bits, .word = w, .count = here};
        slab->free -= here;
        *count -= here;
    }
    return made;
}

/* Under the lock, which is released. */
static unsigned take_runs(struct slab_node *node, struct run *runs, unsigned count)
{
    unsigned made = 0;
    struct slab *slab;

    while (count && made < RUNS_MAX && (slab = pick(node))) {
        made += take_from_slab(slab, runs + made, RUNS_MAX - made, &count);
        place(node, slab, true);
    }
    note_used(node);
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

/* Takes up to `count` free objects for one allocation and its refill; returns how many. It returns fewer than there
 * are only if they lie in very many places. */
unsigned node_take(struct prudence_cache *cache, struct slab_node *node, void **objects,
                   unsigned count)
{
    struct run runs[RUNS_MAX] UNINITIALIZED;

    enter(node);
    return spread_runs(runs, take_runs(node, runs, count), cache->stride, objects);
}

/* ------------------------------------------------------------------------------------ putting */

static void put_free(struct slab_node *node, struct run *run, const gp_cookie *cookie)
{
    struct slab *slab = run->slab;
    bool had_free = slab->free > 0;

    (void)cookie; /* they are free already */
    check_run(run, "free");
    slab_free_bits(slab)[run->word] |= run->bits;
    slab->free += run->count;
    place(node, slab, had_free);
}

static void take_out(struct slab_node *node, struct slab *slab, struct list *excess)
{
    detach(node, slab);
    list_append(excess, &slab->link);
    node->slabs--;
    node->counts.shrinks++;
    os_event(shrink, slab->cache, slab->capacity);
}

/* The free slab that was used last longest ago, of those that may go. */
static struct slab *last_free(struct slab_node *node)
{
    struct list *item = node->lists[SLAB_FREE].previous;

    for (; item != &node->lists[SLAB_FREE]; item = item->previous) {
        struct slab *slab = list_entry(item, struct slab, link);

        if (likely(!load_relaxed(&slab->extensions)) || extensions_let_go(slab))
            return slab;
        node->kept = true;
    }
    return NULL;
}

/* Puts slabs onto `excess`: retired ones; and free ones beyond `keep` (0: all) and beyond what demand will want,
 * oldest first, until it is `wanted` bytes. Never one with a latent bit: those are not free. Type-safe memory stays
 * until a grace period after its slab became free. Returns how many. */
static unsigned detach_excess(struct slab_node *node, unsigned keep, size_t wanted,
                              struct list *excess)
{
    unsigned detached = 0;
    struct slab *slab;

    while (unlikely((slab = list_first(&node->lists[SLAB_RETIRED], struct slab, link)) != NULL) &&
           detached < NODE_SLABS_A_VISIT) {
        take_out(node, slab, excess);
        detached++;
    }
    if (keep && node->free_slabs > keep)
        keep = (unsigned)max_size(keep, keep_for_demand(node));
    while (node->free_slabs > keep && detached < NODE_SLABS_A_VISIT && wanted) {
        slab = last_free(node);
        if (!slab)
            break;
        if (slab->cache->flags & CACHE_TYPESAFE &&
            !gp_poll(slab->cache->domain, slab->free_cookie)) {
            gp_request(slab->cache->domain, slab->free_cookie);
            break;
        }
        take_out(node, slab, excess);
        wanted -= min_size(wanted, slab->bytes);
        detached++;
    }
    return detached;
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

/* Whether there may be something for detach_excess. */
static bool has_excess(const struct slab_node *node, unsigned keep)
{
    return node->free_slabs > keep || !list_is_empty(&node->lists[SLAB_RETIRED]);
}

#define ALL_BYTES (~(size_t)0)

/* Leaves the node. What the node has too much of, or `wanted` bytes of that, is given back after the lock is released
 * (unless a fork is under way: then it stays for the next visit), and its bytes are added to *bytes. Returns how many
 * slabs that were. */
static unsigned leave(struct slab_node *node, unsigned keep, size_t wanted, size_t *bytes)
{
    struct list excess;
    unsigned detached = 0;
    bool carries = has_excess(node, keep) && os_carry_try(), kept;

    list_init(&excess);
    node->kept = false;
    if (carries)
        detached = detach_excess(node, keep, wanted, &excess);
    kept = node->kept;
    os_lock_release(&node->lock);
    if (unlikely(kept))
        extensions_kept();
    *bytes += unmake_all(&excess);
    if (carries)
        os_carry_end();
    return detached;
}

/* Objects on their way to their home nodes, and what is done there. */
struct delivery {
    void **objects; /* those that are still to go; the array is used up */
    unsigned count, made;
    void (*put)(struct slab_node *node, struct run *run, const gp_cookie *cookie);
    void (*visit)(struct slab_node *node, unsigned objects, bool first); /* counts */
    const gp_cookie *cookie;   /* of latent objects; else NULL */
    struct run runs[RUNS_MAX]; /* so many of them: of one node, and no more among the objects */
};

/* Makes runs of the node's objects, as many as there is room for; returns how many objects that are. The others stay, in
 * their order. */
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

/* All of the node's objects, under one hold of its lock, or few. */
static void deliver_to(struct slab_node *node, struct delivery *delivery, unsigned keep)
{
    bool first = true;
    unsigned taken;
    size_t bytes = 0;

    while ((taken = gather(delivery, node))) {
        enter(node);
        for (unsigned i = 0; i < delivery->made; i++)
            delivery->put(node, &delivery->runs[i], delivery->cookie);
        delivery->visit(node, taken, first);
        leave(node, keep, ALL_BYTES, &bytes);
        if (delivery->made < RUNS_MAX)
            break;
        first = false;
    }
}

/* Hands objects to their home nodes, one node after the other, in whatever order they come: a CPU's caches have objects
 * of all nodes among each other. */
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
            deliver_to(node_of(slab), &delivery, cache->free_limit);
            continue;
        }
        if (cookie) /* nowhere to put it; if it was latent it is no more */
            latent_release(os_cpu_current(), cache->stride);
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
    node->counts.overflowed += objects;
}

/* Objects that were freed past the object cache. */
void node_put(struct prudence_cache *cache, void **objects, unsigned count)
{
    put_all(cache, objects, count, put_free, NULL, count_frees);
}

/* Objects that come from an object cache or a latent cache (safe ones). */
void node_flush(struct prudence_cache *cache, void **objects, unsigned count)
{
    os_event(flush, cache, count);
    put_all(cache, objects, count, put_free, NULL, count_flush);
}

/* Latent objects from a latent cache that was full; `cookie` makes them all safe. */
void node_overflow(struct prudence_cache *cache, void **objects, unsigned count, gp_cookie cookie)
{
    os_event_until(overflow, cache, count, cookie);
    put_all(cache, objects, count, put_latent, &cookie, count_overflow);
}

/* Defers an object straight into its latent slab. False when latent_limit does not allow it. */
bool node_put_latent(struct slab *slab, void *object, bool past_limit)
{
    struct slab_node *node = node_of(slab);
    size_t bytes = slab_object_bytes(slab), freed = 0;
    bool room = true;
    struct run run;

    run_gather(&run, slab, &object, 1);
    enter(node);
    if (past_limit)
        latent_reserve_past_limit(os_cpu_current(), bytes);
    else
        room = latent_reserve(os_cpu_current(), bytes);
    if (room) {
        put_latent(node, &run, NULL);
        node->counts.deferred++;
    }
    leave(node, slab->cache->free_limit, ALL_BYTES, &freed);
    return room;
}

/* -------------------------------------------------------------------------- coming and going */

/* A new slab, under the lock. */
static void join(struct slab_node *node, struct slab *slab, enum slab_list list)
{
    attach(node, slab, list);
    node->slabs++;
    slab_count(slab->cache);
    node->counts.grows++;
}

/* The same of a node with a slab more, so at least one, if `count` is. */
unsigned node_add_slab(struct slab_node *node, struct slab *slab, void **objects, unsigned count)
{
    struct run runs[RUNS_MAX] UNINITIALIZED;
    size_t stride = slab->cache->stride;

    enter(node);
    join(node, slab, SLAB_FREE);
    return spread_runs(runs, take_runs(node, runs, count), stride, objects);
}

/* A large block begins its life allocated. */
void node_adopt_live(struct slab_node *node, struct slab *slab)
{
    lock(node);
    bits_clear(slab_free_bits(slab), 0); /* a walk over the heap may have found it already */
    slab->free = 0;
    join(node, slab, SLAB_FULL);
    node->counts.allocations++;
    os_lock_release(&node->lock);
}

/* A large block that is about to be changed, rather than freed; a free or latent one is reported. */
void node_check_live(struct slab *slab, const char *what)
{
    struct slab_node *node = node_of(slab);
    unsigned free, latent;

    os_lock_take(&node->lock);
    free = slab->free;
    latent = slab->latent;
    os_lock_release(&node->lock);
    if (free || latent)
        report_double(slab, slab->base, latent > 0, what);
}

/* One visit, and so one hold of the lock, that merges and gives back as much as one visit may, or `wanted` bytes.
 * False when there was less than that. */
bool node_shrink_some(struct slab_node *node, unsigned keep, size_t wanted, size_t *bytes)
{
    unsigned merged = enter(node);

    return leave(node, keep, wanted, bytes) == NODE_SLABS_A_VISIT || merged == NODE_SLABS_A_VISIT;
}

/* Merges what is safe and gives back free slabs beyond `keep`, until it is `wanted` bytes; returns how many. It makes
 * as many visits as the slabs of now need: other threads may bring more all the time. */
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

/* Whether a visit has something to merge or to give back, now or later. */
static bool has_work(const struct slab_node *node)
{
    return node->latent || node->free_slabs || !list_is_empty(&node->lists[SLAB_RETIRED]);
}

/* One visit that merges what is safe, and gives back the free slabs that demand does not want. True: there is more. A node
 * where the last visit found nothing, and to which no thread has come since, is passed by without its lock. */
bool node_tidy(struct prudence_cache *cache, struct slab_node *node)
{
    unsigned merged, keep;
    size_t bytes = 0;

    if (load_relaxed(&node->settled) && !load_relaxed(&node->handover))
        return false;
    merged = enter(node);
    keep = keep_for_demand(node);
    note_free(node, cache->slab_bytes, 0);
    store_relaxed(&node->settled, !has_work(node));
    return leave(node, keep, ALL_BYTES, &bytes) == NODE_SLABS_A_VISIT ||
           merged == NODE_SLABS_A_VISIT;
}

/* The same as far as no other thread is at the node; one that is merges, too. */
void node_try_shrink(struct slab_node *node, unsigned keep)
{
    unsigned merged = NODE_SLABS_A_VISIT;
    size_t bytes = 0;

    while (merged == NODE_SLABS_A_VISIT && os_lock_try(&node->lock)) {
        receive(node);
        merged = merge_safe(node);
        leave(node, keep, ALL_BYTES, &bytes);
    }
}

/* Free objects of this slab that are selected, marked as allocated; how many. */
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
            objects[taken++] = slab_object(
                slab, w * BITS_PER_WORD + (unsigned)__builtin_ctzll(bits), slab->cache->stride);
        }
    }
    slab->free -= taken;
    return taken;
}

/* Takes selected free objects of one slab, for an extension: of free slabs alone, or of any. For their slab they are
 * then neither free nor latent, until node_put_selected(). */
unsigned node_take_selected(struct slab_node *node, bool any_slab, const struct node_filter *filter,
                            void **objects, unsigned count)
{
    static const enum slab_list lists[] = {SLAB_FREE, SLAB_DRAINING, SLAB_PARTIAL};
    unsigned taken = 0;

    enter(node);
    for (unsigned i = 0; i < (any_slab ? 3 : 1) && !taken; i++) {
        struct list *item;

        list_for_each(item, &node->lists[lists[i]])
        {
            struct slab *slab = list_entry(item, struct slab, link);

            taken = take_selected(slab, filter, objects, count);
            if (taken) {
                place(node, slab, true);
                break;
            }
        }
    }
    os_lock_release(&node->lock);
    return taken;
}

/* Takes a selected free object for an allocation; NULL: there is none in the first slabs of each list, as many as one
 * visit may look at. */
void *node_take_one(struct slab_node *node, const struct node_filter *filter)
{
    static const enum slab_list lists[] = {SLAB_PARTIAL, SLAB_FREE, SLAB_DRAINING};
    struct slab *slab = NULL;
    void *object = NULL;

    enter(node);
    for (unsigned i = 0; i < 3 && !object; i++) {
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
        place(node, slab, true);
        note_used(node);
        node->counts.allocations++;
    }
    os_lock_release(&node->lock);
    return object;
}

/* A new slab, of which the caller has an object. */
void node_add_slab_and_take(struct slab_node *node, struct slab *slab, void **object)
{
    struct run run;
    unsigned count = 1;

    lock(node);
    join(node, slab, SLAB_FREE);
    if (take_from_slab(slab, &run, 1, &count))
        run_spread(&run, slab->cache->stride, object);
    place(node, slab, true);
    note_used(node);
    node->counts.allocations++;
    os_lock_release(&node->lock);
}

static void count_nothing(struct slab_node *node, unsigned objects, bool first)
{
    (void)node, (void)objects, (void)first;
}

/* Puts them back: free, as they were. */
void node_put_selected(struct prudence_cache *cache, void **objects, unsigned count)
{
    put_all(cache, objects, count, put_free, NULL, count_nothing);
}

/* Objects in the node's latent slabs and on their way there; adds their bytes to *bytes. */
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
