/* SPDX-License-Identifier: MIT */
/*
 * Destructors and fork. Objects whose destructors another thread was about to run return to their
 * slabs, and are destroyed in the child, too. An object whose destructor had begun counts as done.
 * The child loses objects that other threads were just allocating, which stay allocated in their
 * slabs permanently. Such objects must not count as pending in the child, or barriers would wait
 * forever. So the child counts again all objects that it can find: in slabs, rings, stacks and
 * transfer batches, and in the forking thread's lists. Fork holds all of these, so nothing moves,
 * and no thread carries objects elsewhere.
 */

#include "fork_part.h"
#include "slab/all_caches.h"
#include "slab/cpu_cache.h"
#include "slab/node.h"
#include "slab/transfer_batch.h"
#include "toolkit/callbacks/destruct.h"
#include "toolkit/callbacks/destruct_worker.h"

static void count_pending(struct slab *slab, const void *object)
{
    unsigned epoch = destruct_epoch(slab, object);

    if (epoch == DESTRUCT_NO_EPOCH)
        return;
    destruct_of_cache(slab->cache)->pending[epoch]++;
}

static void count_known(const void *object)
{
    count_pending(slab_known(object), object);
}

static void count_in_slab(struct slab *slab)
{
    unsigned words = bits_words(slab->capacity);

    for (unsigned w = 0; w < words; w++) {
        uint64_t here =
            slab_free_bits(slab)[w] | slab_waiting_bits(slab)[w] | slab_next_bits(slab)[w];

        for (unsigned epoch = 0; epoch < 2; epoch++)
            destruct_of_cache(slab->cache)->pending[epoch] +=
                (unsigned)__builtin_popcountll(here & pending_bits(slab, epoch)[w]);
    }
}

static void count_in_node(struct slab_node *node)
{
    struct list *item;

    for (unsigned list = 0; list < SLAB_LISTS; list++) {
        list_for_each(item, &node->lists[list])
        {
            count_in_slab(list_entry(item, struct slab, link));
        }
    }
}

static void count_in_transfer_batches(const struct slab_node *node)
{
    for (const struct transfer_batch *batch = node->handover; batch; batch = batch->next)
        for (unsigned i = 0; i < batch->count; i++)
            count_known(batch->objects[i]);
}

static void count_in_cpu(const struct cpu_cache *cpu)
{
    for (unsigned i = 0; i < stack_count(&cpu->line); i++)
        count_known(cpu->line.stack[i]);
    for (uint64_t i = cpu->line.ring_head; i != cpu->line.ring_tail; i++)
        count_known(cpu->line.ring[i & cpu->line.ring_mask]);
}

static void destruct_count_anew(struct prudence_cache *cache)
{
    struct destruct_cache *own = destruct_of_cache(cache);

    own->pending[0] = own->pending[1] = 0;
    for (unsigned i = 0; i < os_node_count(); i++)
        count_in_node(&cache->body->nodes[i]);
    for (unsigned i = 0; i < os_node_count(); i++)
        count_in_transfer_batches(&cache->body->nodes[i]);
    for (unsigned i = 0; i < os_cpu_count(); i++)
        count_in_cpu(cpu_cache_of(cache, i));
    if (own->barrier_runner != (uintptr_t)&destruct_runs)
        own->barrier_runner = 0;
}

/* A destructor forked: counts its object and the objects that the thread will destroy next. */
static void count_in_hand(const struct destruct_run *run)
{
    if (run->epoch != DESTRUCT_NO_EPOCH)
        destruct_of_cache(run->slab->cache)->pending[run->epoch]++;
    for (unsigned i = 0; i < run->in_hand; i++)
        count_known(run->hand[i]);
}

/* Takes objects back from the stacks of missing threads, whose contents are unchanged. A destructor
 * that had begun, and the steps after it, may have gone on while fork copied page after page, so
 * those steps are repeated. */
static void take_back_hands(void)
{
    struct list *item, *next;

    for (item = destruct_hands.next; item != &destruct_hands; item = next) {
        struct destruct_hand *hand = list_entry(item, struct destruct_hand, link);

        next = item->next;
        if (hand->thread == &destruct_runs) {
            hand->ended = 0; /* not counted anew */
            continue;
        }
        for (unsigned i = 0; i < hand->count; i++)
            if (destruct_epoch(slab_known(hand->objects[i]), hand->objects[i]) == DESTRUCT_NO_EPOCH)
                extensions_released(slab_known(hand->objects[i]), hand->objects[i], false);
        list_remove(&hand->link);
        node_put_selected(hand->cache, hand->objects, hand->count);
    }
}

static void destruct_fork_child(bool whole)
{
    struct list *item;

    destruct_worker_forget();
    if (!whole)
        return;
    take_back_hands();
    list_for_each(item, &slab_caches)
    {
        struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        if (cache->body->destructor)
            destruct_count_anew(cache);
    }
    for (const struct destruct_run *run = destruct_runs; run; run = run->outer)
        count_in_hand(run);
}

const struct fork_part destruct_fork_part = {
    .order = FORK_DESTRUCTORS, .name = "destructors", .child = destruct_fork_child};
