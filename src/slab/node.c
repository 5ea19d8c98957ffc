/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A node holds the slabs of a cache on one NUMA node; all changes of these slabs are here.
 *
 * The lock that counts belongs to the slab's home node, not to the current CPU's (rule 11). Except
 * to report misuse, nothing under it waits, makes system calls or takes a lock of lower rank; pages
 * go back after the release.
 *
 * A slab's list follows from its free, latent and live objects (list_for). Because latent objects
 * count, a deferral moves the slab at once to the list where it will belong, which is pre-movement
 * (rule 8). In the partial and draining lists, slabs with free objects stand before those without.
 */
#include "slab/node.h"

#include "gp/gp.h"
#include "os/os.h"
#include "slab/cache_type.h"
#include "slab/extension.h"
#include "slab/latent_account.h"
#include "slab/misuse.h"
#include "slab/runs.h"
#include "slab/slab.h"
#include "slab/transfer_batch.h"

/* Number of partial slabs that a refill looks at (paper, section 5.4). */
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

/* ---------------------------------------------------------------------------------- free slabs */

/* Most bytes of a node's free slabs that are not noted. */
#define FREE_UNNOTED ((size_t)64 << 10)

/* Sum of the bytes that nodes noted; atomic. All CPUs write it, so it has cache lines of its
 * own. */
static struct noted {
    int64_t free_bytes;
} __attribute__((aligned(CACHE_LINES_APART))) noted;

/* Returns about how many bytes the free slabs of all caches and nodes have. */
uint64_t node_free_bytes(void)
{
    int64_t bytes = load_relaxed(&noted.free_bytes);

    return bytes > 0 ? (uint64_t)bytes : 0;
}

/* Updates the process's count of free bytes, which leaves out a little of each node, so that few
 * slabs cost a locked operation. */
static void note_free(struct slab_node *node, size_t slab_bytes, size_t unnoted)
{
    int64_t more = (int64_t)node->free_slabs - (int64_t)node->free_noted;
    int64_t bytes = more * (int64_t)slab_bytes;

    if (likely((size_t)(bytes < 0 ? -bytes : bytes) <= unnoted))
        return;
    add_relaxed(&noted.free_bytes, bytes);
    store_relaxed(&node->free_noted, node->free_slabs); /* spare.c reads it without the lock */
}

/* ---------------------------------------------------------------------------------------- lists */

void node_init(struct slab_node *node)
{
    os_lock_init(&node->lock, OS_RANK_NODE);
    list_init(&node->waiting);
    for (unsigned list = 0; list < SLAB_LISTS; list++)
        list_init(&node->lists[list]);
}

/* Ends a node that has no slabs. */
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

/* Moves the slab to the right list after a change. `had_free` tells whether it had free objects
 * before. Returns whether the list changed. */
static bool place(struct slab_node *node, struct slab *slab, bool had_free)
{
    enum slab_list from = slab->list, to = list_for(slab);

    if (from == to && had_free == (slab->free > 0))
        return false;
    detach(node, slab);
    attach(node, slab, to);
    if (to == SLAB_FREE)
        store_relaxed(&slab->may_leave, 0); /* removes drift */
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

/* Reports objects that are free or latent already, which ends a process. In a kernel the objects
 * stay as they were. */
static void refuse(struct run *run, uint64_t bits, bool latent, const char *what)
{
    describe_double(run->slab, run_object(run, bits), latent,
                    load_relaxed(&slab_process_ends) ? "end of the process" : what);
    os_misuse();
    run->bits &= ~bits;
    run->count -= (unsigned)__builtin_popcountll(bits);
}

/* Refuses objects of the run whose bits are set, though they should be clear. */
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

/* Does the same for deferred objects; refused ones do not become latent by this deferral. Returns
 * false if none is left. */
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
 * Puts objects into their latent slab: into waiting if they have the same cookie, else into next,
 * which gets a cookie when waiting is merged. (One cookie renewed by each deferral would never
 * merge under load; an older one is unsound.) `cookie` is NULL if none was taken yet.
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

/* Merges the waiting objects, which are safe, into the slab. */
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

/* Merges up to NODE_SLABS_A_VISIT slabs whose grace period is over, and returns their number. Slabs
 * with further latent objects wait anew, under one cookie, which is taken after all of them were
 * detached from next. */
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

/* Returns the number of free slabs to keep. Slabs used within the last one or two windows of decay
 * will be used again; keeping them saves a shrink, a grow and the page faults of both. */
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

/* Pushes a batch without the lock, for the idle helper, which must own nothing. Release: pairs with
 * the acquire in `receive`. */
void node_hand_over(struct slab_node *node, struct transfer_batch *batch)
{
    struct transfer_batch *first = load_relaxed(&node->handover);

    do
        batch->next = first;
    while (!compare_exchange(&node->handover, &first, batch));
}

/* Makes tidying look at the node again. */
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

            if (unlikely(!slab)) { /* the size of the object is unknown, too */
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

/* Begins a visit: takes the lock, receives transfer batches and merges safe slabs. Returns the
 * number of these. */
static unsigned enter(struct slab_node *node)
{
    lock(node);
    receive(node);
    return merge_safe(node);
}

/* ------------------------------------------------------------------------------------- taking */

/* Returns the number of objects neither free nor about to be. The hint may be late; it is no
 * invariant. */
static unsigned lasting(const struct slab *slab)
{
    unsigned live = slab->capacity - slab->free - slab->latent;
    unsigned leaving = load_relaxed(&slab->leaving);

    return live > leaving ? live - leaving : 0;
}

/*
 * Returns the number of lasting objects with an expiration date. Threads that set and end dates in
 * a slab at the same time may lose each other's changes; a locked addition would double the cost of
 * a refresh. The drift only lets pick() choose another of equally good slabs. Nor does it last,
 * because impossible values are cut off here, and a slab that becomes free resets the count.
 */
static unsigned may_leave(const struct slab *slab, unsigned lasts)
{
    int32_t count = load_relaxed(&slab->may_leave);

    return count < 0 ? 0 : min_size((unsigned)count, lasts);
}

bool slab_spares_latent READ_MOSTLY = false;

/* Returns whether to leave the slab alone while there is a free one. The switch adds mostly latent
 * slabs, as in the paper, because their few other objects may soon be freed, too (ADR 81). */
static bool is_left_alone(const struct slab *slab, unsigned lasts)
{
    return load_relaxed(&slab_spares_latent) ? 2 * lasts < slab->capacity - slab->free : !lasts;
}

struct choice {
    struct slab *slab; /* NULL before the first */
    unsigned lasts;
};

/* Prefers the slab with more lasting objects, and among equals the one with fewer expiration
 * dates. */
static void weigh(struct slab *slab, unsigned lasts, struct choice *best)
{
    const struct slab *other = best->slab;

    if (!other || lasts > best->lasts ||
        (lasts == best->lasts && may_leave(slab, lasts) < may_leave(other, lasts)))
        *best = (struct choice){.slab = slab, .lasts = lasts};
}

/*
 * Picks the slab to refill from. The first choice is, among the first partial slabs with free
 * objects, the one with most lasting objects. This slab is the least likely to become free, so the
 * others drain, and total fragmentation ends lowest (paper, Figure 5). Among equals the fewest
 * objects with an expiration date win, because they may stay as long as the others, whose end is
 * unknown. The second choice is a free slab. Rather than grow, pick() then takes a slab that was
 * left alone, a draining one, or one that will drain when callbacks have run.
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

/* Returns the lowest `count` of the bits; more are set. */
static uint64_t lowest_bits(uint64_t bits, unsigned count)
{
    uint64_t rest = bits;

    for (; count; count--)
        rest &= rest - 1;
    return bits ^ rest;
}

/* Takes up to `count` objects as up to `room` runs. Returns the number of runs, and subtracts from
 * *count. */
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

/* Takes runs from the node, and releases the lock that the caller holds. */
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

/* Takes up to `count` free objects for an allocation and refill, and returns their number. Takes
 * fewer than there are only if they need more than RUNS_MAX runs. */
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

    (void)cookie; /* the objects are free already */
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

/* Returns the free slab unused for longest, among those that may go. */
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

/* Moves slabs onto `excess`: retired ones, then free ones, oldest first, up to `wanted` bytes.
 * Keeps `keep` free slabs (0: none), or more if demand wants them, and all slabs with a latent bit,
 * which are not free. Type-safe memory stays until a grace period after the slab became free.
 * Returns the number of slabs. */
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

/* Returns whether detach_excess() may find something. */
static bool has_excess(const struct slab_node *node, unsigned keep)
{
    return node->free_slabs > keep || !list_is_empty(&node->lists[SLAB_RETIRED]);
}

#define ALL_BYTES (~(size_t)0)

/* Leaves the node. Releases the lock, then gives back the node's excess slabs, up to `wanted`
 * bytes, and adds their bytes to *bytes. During a fork they stay for the next visit. Returns the
 * number of slabs. */
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

/* Objects on their way to their home nodes, and the operation there. */
struct delivery {
    void **objects; /* objects still to go; the array is overwritten */
    unsigned count, made;
    void (*put)(struct slab_node *node, struct run *run, const gp_cookie *cookie);
    void (*visit)(struct slab_node *node, unsigned objects, bool first); /* counts */
    const gp_cookie *cookie; /* of latent objects; else NULL */
    /* The first `made` are of one node; their objects left `objects`. */
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
            deliver_to(node_of(slab), &delivery, cache->free_limit);
            continue;
        }
        if (cookie) /* no slab takes the object; a latent one no longer counts */
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
    put_all(cache, objects, count, put_latent, &cookie, count_overflow);
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

/* -------------------------------------------------------------------------- slabs come and go */

/* Adds a new slab to the node. The caller holds the lock. */
static void join(struct slab_node *node, struct slab *slab, enum slab_list list)
{
    attach(node, slab, list);
    node->slabs++;
    slab_count(slab->cache);
    node->counts.grows++;
}

/* Adds a slab, then takes like node_take(), at least one object if `count` is. */
unsigned node_add_slab(struct slab_node *node, struct slab *slab, void **objects, unsigned count)
{
    struct run runs[RUNS_MAX] UNINITIALIZED;
    size_t stride = slab->cache->stride;

    enter(node);
    join(node, slab, SLAB_FREE);
    return spread_runs(runs, take_runs(node, runs, count), stride, objects);
}

/* Adds the slab of a large block, which is allocated from the start. */
void node_adopt_live(struct slab_node *node, struct slab *slab)
{
    lock(node);
    bits_clear(slab_free_bits(slab), 0); /* a walk over the heap may have found the slab already */
    slab->free = 0;
    join(node, slab, SLAB_FULL);
    node->counts.allocations++;
    os_lock_release(&node->lock);
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
        report_double(slab, slab->base, latent > 0, what);
}

/* Makes one visit, under one hold of the lock, that merges slabs and gives back up to `wanted`
 * bytes. Returns true if the visit reached NODE_SLABS_A_VISIT. */
bool node_shrink_some(struct slab_node *node, unsigned keep, size_t wanted, size_t *bytes)
{
    unsigned merged = enter(node);

    return leave(node, keep, wanted, bytes) == NODE_SLABS_A_VISIT || merged == NODE_SLABS_A_VISIT;
}

/* Merges safe slabs and gives back free slabs beyond `keep`, until `wanted` bytes have gone;
 * returns the bytes. The present slabs bound the number of visits, because other threads may bring
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

/* Returns whether a visit has something to merge or give back, now or later. */
static bool has_work(const struct slab_node *node)
{
    return node->latent || node->free_slabs || !list_is_empty(&node->lists[SLAB_RETIRED]);
}

/* Makes one visit that merges safe slabs and gives back free slabs that demand does not want.
 * Returns true if there is more. Skips, without the lock, a node where the last visit found nothing
 * and to which no thread has come since. */
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

/* Shrinks the node as long as no other thread holds the lock; a thread that does merges, too. */
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
            objects[taken++] = slab_object(
                slab, w * BITS_PER_WORD + (unsigned)__builtin_ctzll(bits), slab->cache->stride);
        }
    }
    slab->free -= taken;
    return taken;
}

/* Takes selected free objects of one slab for an extension, from free slabs only or from any. The
 * slab counts them as neither free nor latent until node_put_selected(). */
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

/* Takes a selected free object for an allocation. Returns NULL if the first NODE_SLABS_A_VISIT
 * slabs of each list have none. */
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

/* Adds a new slab, and takes one object for the caller. */
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
