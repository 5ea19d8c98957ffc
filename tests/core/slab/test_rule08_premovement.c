/* SPDX-License-Identifier: MIT */
/*
 * Rule 8: a slab changes list because of the objects that will be free: full -> partial with the
 * first latent object, -> draining when all allocated objects are latent, draining -> free when
 * those are merged. Refills use draining slabs last, and only their truly free objects.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

static void *objects[256];

static struct slab *full_slab(void)
{
    struct prudence_cache *cache = fixed_cache(1024, 16, manual_domain());
    struct slab_node *node = node_here(cache);
    struct slab *slab = slab_grow(cache, (unsigned)(node - cache->body->nodes), OS_ALLOC_DEFAULT);

    node_add_slab(node, slab, NULL, 0);
    assert_int_equal(slab->list, SLAB_FREE);
    node_take_all(cache, node, objects, cache->body->capacity);
    assert_int_equal(slab->list, SLAB_FULL);
    return slab;
}

TEST(full_partial_draining_free)
{
    struct slab *slab = full_slab();
    struct prudence_cache *cache = slab->cache;

    node_put_latent(slab, objects[0], false);
    assert_int_equal(slab->list, SLAB_PARTIAL);
    assert_int_equal(stats_of(cache).premoved_slabs, 1);
    for (unsigned i = 1; i < cache->body->capacity - 1; i++)
        node_put_latent(slab, objects[i], false);
    assert_int_equal(slab->list, SLAB_PARTIAL);
    assert_int_equal(stats_of(cache).premoved_slabs, 1);
    node_put_latent(slab, objects[cache->body->capacity - 1], false);
    assert_int_equal(slab->list, SLAB_DRAINING);
    assert_int_equal(stats_of(cache).premoved_slabs, 2);
    prudence_manual_advance(cache->domain);
    node_shrink(node_of(slab), 10); /* merges only the first object, which was waiting */
    assert_int_equal(slab->list, SLAB_DRAINING);
    assert_int_equal(slab->free, 1);
    prudence_manual_advance(cache->domain);
    node_shrink(node_of(slab), 10);
    assert_int_equal(slab->list, SLAB_FREE);
    check_books(cache);
}

TEST(the_last_live_object_may_be_freed)
{
    struct slab *slab = full_slab();
    struct prudence_cache *cache = slab->cache;

    node_put_latent(slab, objects[0], false);
    node_put(cache, objects + 1, cache->body->capacity - 1);
    assert_int_equal(slab->list, SLAB_DRAINING);
    check_books(cache);
}

/* Refills use partial slabs before free ones, free ones before draining ones, and those before they
 * grow. */
TEST(draining_slabs_are_used_last)
{
    struct slab *draining = full_slab(), *second;
    struct prudence_cache *cache = draining->cache;
    struct slab_node *node = node_of(draining);
    void *more[256], *object;

    node_put_latent(draining, objects[0], false);
    node_put(cache, objects + 1, cache->body->capacity - 1);
    second = slab_grow(cache, draining->node, OS_ALLOC_DEFAULT);
    node_add_slab(node, second, NULL, 0); /* free */
    node_take_all(cache, node, more, cache->body->capacity);
    assert_ptr_equal(slab_of(more[0]), second);
    assert_ptr_equal(slab_of(more[cache->body->capacity - 1]), second);
    node_put(cache, more, 1); /* partial */
    assert_int_equal(node_take(cache, node, &object, 1), 1);
    assert_ptr_equal(slab_of(object), second);
    for (unsigned i = 1; i < cache->body->capacity; i++) { /* nothing else remains */
        assert_int_equal(node_take(cache, node, &object, 1), 1);
        assert_ptr_equal(slab_of(object), draining);
        assert_ptr_not_equal(object, objects[0]);
    }
    assert_int_equal(node_take(cache, node, &object, 1), 0); /* the latent object is unavailable */
    check_books(cache);
}

SUITE(pin_thread())
