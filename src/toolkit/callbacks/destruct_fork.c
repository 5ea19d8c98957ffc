/* SPDX-License-Identifier: MIT */
/*
 * Destructors and fork. Objects whose destructors another thread was about to run return to their
 * slabs, and are destroyed in the child, too. An object whose destructor had begun counts as done.
 * The child loses objects that other threads were just allocating, which stay allocated in their
 * slabs permanently. Such objects must not count as pending in the child, or barriers would wait
 * forever. So the child counts again all objects that it can find: in slabs and transfer batches,
 * and in the forking thread's hands. Those in rings are pending, but do not count yet. Fork holds
 * all of these, so nothing moves, and no thread carries objects elsewhere.
 */

#include "fork_part.h"
#include "slab/all_caches.h"
#include "slab/node.h"
#include "slab/transfer_batch.h"
#include "toolkit/callbacks/destruct.h"
#include "toolkit/callbacks/destruct_hand.h"
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

static void destruct_count_anew(struct prudence_cache *cache)
{
    struct destruct_cache *own = destruct_of_cache(cache);

    own->pending[0] = own->pending[1] = 0;
    for (unsigned i = 0; i < os_node_count(); i++)
        count_in_node(&cache->body->nodes[i]);
    for (unsigned i = 0; i < os_node_count(); i++)
        count_in_transfer_batches(&cache->body->nodes[i]);
    if (own->barrier_runner != (uintptr_t)&destruct_runs)
        own->barrier_runner = 0;
}

/* Counts the objects that this thread is destroying, and will destroy next. */
static void count_in_hand(struct destruct_hand *hand)
{
    for (unsigned i = hand->done; i < hand->count; i++)
        destruct_of_cache(hand->cache)->pending[destruct_hand_epoch(hand, i)]++;
    hand->uncounted = hand->done; /* the others are not counted anew */
}

/* Takes objects back from the stack of a missing thread, whose contents are unchanged. A destructor
 * that had begun, and the steps after it, may have gone on while fork copied page after page, so
 * those steps are repeated. */
static void take_back_hand(struct destruct_hand *hand)
{
    if (hand->thread == &destruct_runs)
        return;
    for (unsigned i = 0; i < hand->count; i++) {
        struct slab *slab = slab_known(hand->objects[i]);

        if (i < hand->begun)
            extensions_released(slab, hand->objects[i], false);
        else
            destruct_mark(slab, hand->objects[i], destruct_hand_epoch(hand, i));
    }
    destruct_hand_forget(hand);
    node_put_selected(hand->cache, hand->objects, hand->count);
}

static void destruct_fork_prepare(void)
{
    destruct_hands_hold();
}

static void destruct_fork_done(void)
{
    destruct_hands_let_go();
}

static void destruct_fork_child(bool whole)
{
    struct list *item;

    destruct_worker_forget();
    if (!whole)
        return;
    destruct_hands_visit(take_back_hand);
    list_for_each(item, &slab_caches)
    {
        struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        if (cache->body->destructor)
            destruct_count_anew(cache);
    }
    destruct_hands_visit(count_in_hand);
}

const struct fork_part destruct_fork_part = {.order = FORK_DESTRUCTORS,
                                             .name = "destructors",
                                             .prepare = destruct_fork_prepare,
                                             .child = destruct_fork_child,
                                             .done = destruct_fork_done};
