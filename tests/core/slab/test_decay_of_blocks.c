/* SPDX-License-Identifier: MIT */
/*
 * Decay gives blocks back in the visit that finds them safe, because no block takes over the slab
 * of another. For objects it keeps as many free slabs as were in use lately, and no more.
 */
#include <prudence/structure.h>

#include "slab/node.h"
#include "support/pages.h"

#define BLOCKS 3
#define BLOCK  (2 * MIB) /* larger than those that get margins (large.c) */

static void *blocks[BLOCKS];
static struct prudence_domain *domain;
static struct prudence_cache *cache;

static int make_cache(void **state)
{
    (void)state;
    posix_clock_injected = our_clock;
    domain = manual_domain();
    cache = prudence_cache_create_blocks("blocks", domain);
    return !cache;
}

static void allocate_blocks(void)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        assert_non_null(blocks[i] = prudence_cache_alloc_block(cache, BLOCK, NULL));
}

static int destroy_cache(void **state)
{
    (void)state;
    return prudence_cache_destroy(cache) || prudence_domain_destroy(domain);
}

static unsigned kept(struct slab_node *node)
{
    unsigned keeps;

    os_lock_take(&node->lock);
    keeps = node_lists_decay_keeps(node);
    os_lock_release(&node->lock);
    return keeps;
}

TEST(blocks_go_when_they_are_safe, make_cache, destroy_cache)
{
    struct slab_node *node = node_here(cache);

    allocate_blocks();
    now += slab_decay;
    node_decay(cache, node); /* notes how many are in use */
    for (unsigned i = 0; i < BLOCKS; i++)
        prudence_cache_free_deferred(cache, blocks[i]);
    node_decay(cache, node);
    assert_int_equal(node->slabs, BLOCKS);
    prudence_manual_advance(domain);
    prudence_manual_advance(domain);
    node_decay(cache, node);
    assert_int_equal(node->slabs, 0);
}

TEST(slabs_without_a_note_do_not_raise_what_is_kept, make_cache, destroy_cache)
{
    struct slab_node *node = node_here(cache);

    assert_int_equal(kept(node), 0); /* a window begins */
    allocate_blocks();
    assert_int_equal(kept(node), 0);
    free_all(cache, blocks, BLOCKS);
    assert_int_equal(kept(node), BLOCKS);
}

SUITE(pin_thread())
