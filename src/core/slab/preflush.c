/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Pre-flush: moves latent objects from a latent cache to their latent slabs in idle time, before
 * they would overflow the object cache (paper, section 4.2).
 *
 * The helper that does this may lose its CPU, so it owns nothing that allocating or freeing threads
 * wait for. It takes single objects from its own CPU by a restartable sequence, collects them in a
 * counted transfer batch, and hands that over by a lock-free push. The next holder of the node's
 * lock receives it. When all transfer batches (transfer_batch.c) are in use, the rest stays for
 * later. Before and after each transfer batch, the helper merges safe objects into the object
 * cache. For that it owns the CPU's caches, a batch at a time, as any thread does on a slow path;
 * threads that find them owned go to the node.
 *
 * Fork and the destruction of a cache do wait for a helper that holds objects. In a process the
 * helper has ordinary priority. In a kernel, which has no fork, it has the lowest, so the
 * destruction of a cache may wait until a busy CPU lets the helper run. The helper holds no object
 * while searching for idle time, so the others wait for one pool of transfer batches at most.
 */
#include "slab/preflush.h"

#include "gp/gp.h"
#include "os/os.h"
#include "slab/cache_type.h"
#include "slab/cpu_cache.h"
#include "slab/latent_cache.h"
#include "slab/node.h"
#include "slab/reclaim/decay.h"
#include "slab/reclaim/limit.h"
#include "slab/reuse.h"
#include "slab/slab.h"
#include "slab/transfer_batch.h"

/* ------------------------------------------------------------------------------ work on a CPU */

/*
 * Takes the oldest object of this CPU's closed batches, and the newest cookie of these, which
 * covers the older ones. Reads the end of the closed batches first (acquire), then the cookie,
 * which the owner wrote before that end. So the cookie belongs to that end or a later one. The take
 * fails if the head has moved since.
 */
static void *take_oldest(struct prudence_cache *cache, struct cpu_cache *cpu, gp_cookie *cookie)
{
    uint64_t head = load_relaxed(&cpu->line.ring_head);
    uint64_t end = load_acquire(&cpu->closed);
    void *object = NULL;

    if ((int64_t)(end - head) <= 0)
        return NULL;
    cookie->value = load_relaxed(&cpu->closed_cookie.value);
    if (cache_is_plain(cache))
        return os_percpu_remove(&cache->percpu, cpu->line.cpu, head);
    if (!cpu_cache_take_remote(cpu, &object))
        return NULL;
    if (load_relaxed(&cpu->line.ring_head) == head) {
        object = cpu->line.ring[head & cpu->line.ring_mask];
        if (unlikely(cache->flags & CACHE_DESTRUCTED))
            reuse_upcalls.to_slabs(cache, &object, 1);
        store_release(&cpu->line.ring_head, head + 1);
    }
    cpu_cache_release(cpu);
    return object;
}

static bool preflush_fits(const struct cpu_cache *cpu)
{
    return stack_count(&cpu->line) + latent_cache_count(cpu) <= load_relaxed(&cpu->size);
}

/* Fills a transfer batch with objects of the same node and cookie, as far as there are any. `carry`
 * holds an object that was taken for the previous transfer batch but belongs to another node or
 * cookie. */
struct carry {
    void *object;
    gp_cookie cookie;
};

static struct slab_node *preflush_fill(struct prudence_cache *cache, struct cpu_cache *cpu,
                                       struct transfer_batch *batch, struct carry *carry)
{
    struct slab_node *node = NULL;

    while (batch->count < TRANSFER_BATCH_MAX) {
        struct slab *slab;

        if (!carry->object)
            carry->object = preflush_fits(cpu) ? NULL : take_oldest(cache, cpu, &carry->cookie);
        if (!carry->object)
            break;
        slab = slab_known(carry->object);
        if (unlikely(!slab)) {
            carry->object = NULL;
            limit_release(cpu->line.cpu, cache->body->stride);
            continue;
        }
        if (batch->count && (node != node_of(slab) || !gp_is_same(batch->cookie, carry->cookie)))
            break;
        node = node_of(slab);
        batch->cookie = carry->cookie;
        batch->objects[batch->count++] = carry->object;
        carry->object = NULL;
    }
    return node;
}

/* Merges a batch if the caller runs on that CPU, and returns the number of objects. Returns 0 if
 * nothing is safe, there is no room, or another thread owns the caches. */
static unsigned merge_batch(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    struct cpu_cache *taken;
    unsigned merged = 0;

    taken = cpu_cache_take(cache, &merged);
    if (taken == cpu)
        merged = latent_cache_merge(cache, cpu);
    if (taken)
        cpu_cache_release(taken);
    return merged;
}

/* Merges safe objects, so that they do not wait for a later grace period in a latent slab, and no
 * allocation has to merge them. Merges at most the number latent now, because others wait for the
 * helper; later ones are for the next round. */
static void merge_safe(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    unsigned left = latent_cache_count(cpu), merged;

    while (left && !preflush_fits(cpu) && (merged = merge_batch(cache, cpu)))
        left -= (unsigned)min_size(left, merged);
}

static unsigned hand_over(struct slab_node *node, struct transfer_batch *batch)
{
    unsigned count = batch->count;

    node_hand_over(node, batch);
    return count;
}

/*
 * Pre-flushes a CPU until both caches fit, `batches` transfer batches were handed over, or the pool
 * is empty. With rseq the caller must run on that CPU. Returns the number of objects moved to
 * latent slabs; safe ones that fit went to the object cache. A spare transfer batch takes an object
 * that was taken and then found to belong to another node.
 */
unsigned preflush_cpu(struct prudence_cache *cache, unsigned cpu_number, unsigned batches)
{
    struct cpu_cache *cpu = cpu_cache_of(cache, cpu_number);
    struct carry carry = {.object = NULL};
    struct transfer_batch *spare = transfer_batch_claim(), *batch;
    unsigned moved = 0;

    merge_safe(cache, cpu);
    while (spare && batches-- > 0 && (batch = transfer_batch_claim())) {
        struct slab_node *node = preflush_fill(cache, cpu, batch, &carry);

        if (!node) {
            transfer_batch_return(batch);
            break;
        }
        moved += hand_over(node, batch);
        merge_safe(cache, cpu); /* a grace period may have ended */
    }
    if (carry.object) { /* preflush_fill() has seen the slab, so it exists */
        spare->cookie = carry.cookie;
        spare->objects[spare->count++] = carry.object;
        moved += hand_over(node_of(slab_known(carry.object)), spare);
    } else if (spare) {
        transfer_batch_return(spare);
    }
    add_relaxed(&cache->body->preflushed_objects, moved);
    os_event(preflush, cache, moved);
    return moved;
}

/* ----------------------------------------------------------------------------- the helper */

/*
 * Each CPU has a box with the cache that wants a pre-flush there, or 0. The helper marks the box
 * (bit 0) while it works for that cache. Destruction of a cache clears the boxes first.
 */
#define BEING_SERVED ((uintptr_t)1)

bool preflush_enabled READ_MOSTLY = false; /* a helper pre-flushes; the option preflush */
static uintptr_t *boxes READ_MOSTLY = NULL;
static uint32_t paused; /* number of forks and walks under way */

COLD bool preflush_start(void)
{
    boxes = os_meta_alloc(os_cpu_count() * sizeof *boxes);
    return boxes != NULL;
}

/* Called by the owner of the caches, so without a system call; the helper is kicked later. */
void preflush_schedule(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    uintptr_t empty = 0;

    if (load_relaxed(&preflush_enabled) && !load_relaxed(&boxes[cpu->line.cpu]))
        compare_exchange(&boxes[cpu->line.cpu], &empty, (uintptr_t)cache);
}

/* Returns the number of objects that frees and deferrals brought to a CPU's caches, less those that
 * allocations took. Merges, refills and flushes do not change it. */
static uint32_t gained(const struct cpu_cache *cpu)
{
    return (uint32_t)(load_relaxed(&cpu->line.ring_tail) + stack_count(&cpu->line) +
                      load_relaxed(&cpu->counts.unstacked) - load_relaxed(&cpu->counts.stacked));
}

/* Returns whether the work is urgent: since the last check more objects came than went, and the
 * latent cache is nearly full. */
static bool is_urgent(struct cpu_cache *cpu)
{
    uint32_t now = gained(cpu);
    bool filling = (int32_t)(now - cpu->preflush_gained) > 0;

    cpu->preflush_gained = now; /* written by the helper only */
    return filling && latent_cache_count(cpu) > load_relaxed(&cpu->size) / 8 * 7;
}

/* Serves the cache of a box. `here` says that the caller runs on that CPU. Others wait for the
 * mark, so nothing waits while it is set. Returns whether to come back soon. */
static bool preflush_serve(unsigned cpu, bool here)
{
    uintptr_t box = load_relaxed(&boxes[cpu]);
    struct prudence_cache *cache = (struct prudence_cache *)box;
    bool more = true;

    if (!box || box & BEING_SERVED || !compare_exchange(&boxes[cpu], &box, box | BEING_SERVED))
        return false;
    /* Mark before test: either fork sees the mark, or this thread sees the pause. */
    os_full_fence();
    if (!load_acquire(&paused)) {
        unsigned batches = is_urgent(cpu_cache_of(cache, cpu)) ? TRANSFER_BATCHES : 2;
        unsigned moved = here ? preflush_cpu(cache, cpu, batches) : 0;

        /* If nothing could be moved, the next closed batch asks again. */
        more = moved && !preflush_fits(cpu_cache_of(cache, cpu));
    }
    store_release(&boxes[cpu], more ? (uintptr_t)cache : 0);
    return more;
}

/* When no CPU with a box was idle for this many rounds, all boxes are emptied so that the helper
 * can sleep. The next closed batch asks again. */
#define FRUITLESS_MAX 20

/* Works for decay. Returns false if little unused memory is kept. */
#define DECAY_CACHES 64
#define DECAY_MOVES  512

static bool decay_in_helper(void)
{
    if (!decay_enabled)
        return false;
    decay_some(DECAY_CACHES, DECAY_MOVES);
    return decay_is_worth_it();
}

/* Serves all boxes once, does part of a round of decay, and lets pages decay. Returns whether to
 * come back soon. */
bool preflush_work(void)
{
    static unsigned fruitless; /* rounds in a row without service */
    bool more = false, served = false;

    for (unsigned cpu = 0; cpu < os_cpu_count(); cpu++) {
        if (!load_relaxed(&boxes[cpu]))
            continue;
        if (fruitless < FRUITLESS_MAX && !os_idle_seen(cpu)) {
            more = true;
            continue;
        }
        more |= preflush_serve(cpu, fruitless < FRUITLESS_MAX && os_idle_move_to(cpu));
        served = true;
    }
    fruitless = served || !more ? 0 : fruitless + 1;
    more |= decay_in_helper();
    return os_pages_decay() || more;
}

/* Starts the helper if the option wants one. Not called inside an allocation, because it creates a
 * thread. */
COLD void preflush_start_helper(void)
{
    if (load_relaxed(&decay_helper))
        os_idle_start(preflush_work);
}

/* Called before a cache is destroyed. Waits until the helper no longer works for the cache. */
void preflush_forget(struct prudence_cache *cache)
{
    for (unsigned cpu = 0; cpu < os_cpu_count(); cpu++) {
        uintptr_t mine = (uintptr_t)cache;

        while (!compare_exchange(&boxes[cpu], &mine, (uintptr_t)0) &&
               (mine & ~BEING_SERVED) == (uintptr_t)cache) {
            mine = (uintptr_t)cache;
            os_sleep_ns(10000);
        }
    }
}

/* Makes the helper hold no objects until preflush_go_on(). The child of a fork has no helper, so no
 * transfer batch may be half full during the copy. */
void preflush_pause(void)
{
    add_relaxed(&paused, 1);
    if (!boxes)
        return;
    os_full_fence();
    for (unsigned cpu = 0; cpu < os_cpu_count(); cpu++)
        while (load_acquire(&boxes[cpu]) & BEING_SERVED)
            os_sleep_ns(10000);
}

/* Runs in a child, which has no helper. A helper that had just begun has marked its box, but would
 * have seen the pause. Of the pauses only the one of this thread's fork remains. */
void preflush_fork_child(void)
{
    paused = 1;
    for (unsigned cpu = 0; boxes && cpu < os_cpu_count(); cpu++)
        boxes[cpu] &= ~BEING_SERVED;
}

/* Keeps the count from falling below 0, because the child of a handler that forked inside a pause
 * has no pauses (slab_fork_child), and then ends that one. The compare-and-swap is also a release:
 * the helper sees all that was done during the pause. */
void preflush_go_on(void)
{
    uint32_t pauses = load_relaxed(&paused);

    while (pauses && !compare_exchange(&paused, &pauses, pauses - 1))
        ;
}

/* Called when no thread works any more. */
void preflush_stop(void)
{
    if (boxes)
        os_meta_free(boxes, os_cpu_count() * sizeof *boxes);
    boxes = NULL;
}
