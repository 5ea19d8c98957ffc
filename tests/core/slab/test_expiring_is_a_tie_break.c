/* SPDX-License-Identifier: MIT */
/*
 * Expiration dates influence the choice of a slab, but break ties only: among slabs with equally
 * many live objects, refills prefer the one with the fewest expiring objects. Expiring objects are
 * live: they are not latent, reduce no refill, and move no slab.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

static struct prudence_cache *cache;
static struct slab_node *node;
static void *objects[2][256];
static struct slab *slabs[2];

/* Makes two slabs with these numbers of live objects. */
static void two_slabs(unsigned live_0, unsigned live_1)
{
    unsigned live[] = {live_0, live_1};

    cache = fixed_cache(1024, 16, manual_domain());
    node = node_here(cache);
    for (unsigned i = 0; i < 2; i++) {
        slabs[i] = slab_grow(cache, (unsigned)(node - cache->body->nodes), OS_ALLOC_DEFAULT);
        node_add_slab(node, slabs[i], NULL, 0);
        node_take_all(cache, node, objects[i], cache->body->capacity);
    }
    for (unsigned i = 0; i < 2; i++)
        node_put(cache, objects[i] + live[i], cache->body->capacity - live[i]);
}

static struct slab *slab_taken_from(void)
{
    void *object;

    assert_int_equal(node_take(cache, node, &object, 1), 1);
    return slab_of(object);
}

TEST(among_equals_the_fewest_expiring)
{
    for (unsigned i = 0; i < 2; i++) { /* in either order */
        two_slabs(5, 5);
        slabs[i]->may_leave = 3;
        slabs[1 - i]->may_leave = 2;
        assert_ptr_equal(slab_taken_from(), slabs[1 - i]);
    }
}

TEST(more_live_objects_count_more)
{
    for (unsigned i = 0; i < 2; i++) {
        two_slabs(5 + i, 6 - i);
        slabs[1 - i]->may_leave = 5;
        slabs[i]->may_leave = 0;
        assert_ptr_equal(slab_taken_from(), slabs[1 - i]);
    }
}

/* The count of expiring objects is a hint that may drift. An impossible value counts as the nearest
 * possible one. */
TEST(a_drifted_count_is_cut_off)
{
    for (unsigned i = 0; i < 2; i++) {
        two_slabs(5, 5);
        slabs[i]->may_leave = 1;
        slabs[1 - i]->may_leave = -7;
        assert_ptr_equal(slab_taken_from(), slabs[1 - i]);
        two_slabs(5, 5);
        slabs[i]->may_leave = 4;
        slabs[1 - i]->may_leave = 99;
        assert_ptr_equal(slab_taken_from(), slabs[i]);
    }
    node_put(cache, objects[0], 5);
    assert_int_equal(slabs[0]->free, cache->body->capacity);
    assert_int_equal(slabs[0]->may_leave, 0);
}

TEST(they_are_not_latent)
{
    two_slabs(5, 5);
    slabs[0]->may_leave = 5; /* all objects allocated there */
    node_put(cache, objects[1], 1);
    assert_int_equal(slabs[0]->list, SLAB_PARTIAL);
    assert_int_equal(slabs[0]->latent, 0);
    assert_int_equal(stats_of(cache).objects_latent, 0);
    check_books(cache);
}

SUITE(pin_thread())
