/* SPDX-License-Identifier: MIT */
/*
 * Rule 6: pre-flush owns nothing that others wait for. It pushes transfer batches without the
 * node's lock; the next holder of the lock receives them, with their original cookie.
 *
 * ctest: not-with thread (one thread)
 */
#include "slab/transfer_batch.h"
#include "slab/preflush.h"
#include "support/slab_test.h"

#define ROOM 32

static void *objects[200];

/* Returns a node with a transfer batch of 15 objects under way to it. */
static struct slab_node *node_with_transfer_batch(struct prudence_cache **made)
{
    struct prudence_cache *cache = fixed_cache(64, ROOM, manual_domain());
    struct cpu_cache *cpu;
    unsigned held = 100;
    struct slab_node *node;

    allocate_all(cache, objects, held);
    cpu = cpu_here(cache);
    while (stack_count(&cpu->line) < ROOM)
        free_all(cache, &objects[--held], 1);
    defer_all(cache, objects, 17); /* a closed batch of 16 and an open one */
    node = node_of(slab_of(objects[0]));
    os_lock_take(&node->lock); /* a holder of the lock does not stop the helper */
    assert_int_equal(preflush_cpu(cache, os_cpu_current(), 1), TRANSFER_BATCH_MAX);
    assert_non_null(node->handover);
    assert_int_equal(slab_of(objects[0])->latent, 0);
    os_lock_release(&node->lock);
    *made = cache;
    return node;
}

TEST(the_next_holder_of_the_lock_receives)
{
    struct prudence_cache *cache;
    struct slab_node *node = node_with_transfer_batch(&cache);
    struct slab *slab = slab_of(objects[0]);

    node_put(cache, &objects[18], 1);
    assert_null(node->handover);
    assert_int_equal(slab->latent, TRANSFER_BATCH_MAX);
    for (unsigned i = 0; i < TRANSFER_BATCH_MAX; i++)
        assert_true(bits_test(slab_waiting_bits(slab), slab_index(slab, objects[i])));
    check_books(cache);
}

/* Objects received late do not wait for another grace period. */
TEST(they_keep_their_cookie)
{
    struct prudence_cache *cache;
    struct slab_node *node = node_with_transfer_batch(&cache);
    struct slab *slab = slab_of(objects[0]);

    prudence_manual_advance(cache->domain);
    node_put(cache, &objects[18], 1);
    assert_null(node->handover);
    assert_int_equal(slab->latent, 0);
    for (unsigned i = 0; i < TRANSFER_BATCH_MAX; i++)
        assert_true(bits_test(slab_free_bits(slab), slab_index(slab, objects[i])));
    check_books(cache);
}

TEST(they_count_as_latent_on_their_way)
{
    struct prudence_cache *cache;

    node_with_transfer_batch(&cache);
    assert_int_equal(stats_of(cache).objects_latent, 17);
    check_books(cache);
}

SUITE(pin_thread())
