/* SPDX-License-Identifier: MIT */
/*
 * Double frees without check=1 are caught when both copies meet in the slab, at the latest when the
 * object caches are emptied and grace periods are over.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

static struct prudence_cache *cache;
static void *object;
static char pointer[32];

/* Sends all copies to the slab. */
static void settle(void)
{
    for (int i = 0; i < 4; i++) {
        prudence_cache_shrink(cache);
        prudence_manual_advance(cache->domain);
    }
}

static void free_twice(void *unused)
{
    prudence_cache_free(cache, object);
    prudence_cache_free(cache, object);
    settle();
}

static void defer_twice(void *unused)
{
    prudence_cache_free_deferred(cache, object);
    prudence_cache_free_deferred(cache, object);
    settle();
}

static void defer_twice_around_another(void *other)
{
    prudence_cache_free_deferred(cache, object);
    prudence_cache_free_deferred(cache, other);
    prudence_cache_free_deferred(cache, object);
    settle();
}

static void free_deferred_one(void *unused)
{
    prudence_cache_free_deferred(cache, object);
    prudence_cache_free(cache, object);
    settle();
}

static void defer_free_one(void *unused)
{
    prudence_cache_free(cache, object);
    prudence_cache_free_deferred(cache, object);
    settle();
}

static void defer_twice_past_the_latent_cache(void *unused)
{
    node_put_latent(slab_of(object), object, false);
    node_put_latent(slab_of(object), object, false);
}

static void free_one_in_the_latent_slab(void *unused)
{
    node_put_latent(slab_of(object), object, false);
    prudence_cache_free(cache, object);
    prudence_cache_shrink(cache);
}

static void defer_one_in_the_slab(void *unused)
{
    prudence_cache_free(cache, object);
    prudence_cache_shrink(cache);
    node_put_latent(slab_of(object), object, false);
}

TEST(doubles_die_in_the_slab)
{
    void *neighbour;

    cache = fixed_cache(100, 16, manual_domain());
    neighbour = prudence_cache_alloc(cache); /* keeps the slab */
    object = prudence_cache_alloc(cache);
    snprintf(pointer, sizeof pointer, "%p of cache 'test'", object);
    expect_death(free_twice, NULL, "double free", pointer, "already free");
    expect_death(defer_twice, NULL, "deferred free: 0x", pointer,
                 "already deferred and not yet safe");
    expect_death(defer_twice_around_another, neighbour, "double free", pointer, "already free");
    expect_death(free_deferred_one, NULL, "double free", pointer, "already free");
    expect_death(defer_free_one, NULL, "double free", pointer, "already free");
    expect_death(defer_twice_past_the_latent_cache, NULL, "deferred free: 0x", pointer,
                 "already deferred and not yet safe");
    expect_death(free_one_in_the_latent_slab, NULL, "free: 0x", pointer,
                 "already deferred and not yet safe");
    expect_death(defer_one_in_the_slab, NULL, "double free", pointer, "already free");
    prudence_cache_free(cache, object);
    prudence_cache_free(cache, neighbour);
    destroy_empty(cache);
}

/* The previous slot still holds the object, which has been merged since. */
TEST(an_object_that_was_merged_is_deferred_again)
{
    cache = fixed_cache(100, 16, manual_domain());
    object = prudence_cache_alloc(cache);
    for (unsigned i = 0; i < 100; i++) {
        prudence_cache_free_deferred(cache, object);
        if (i % 3 == 0)
            prudence_cache_shrink(cache); /* closes the batch */
        prudence_manual_advance(cache->domain);
        prudence_manual_advance(cache->domain);
        prudence_cache_shrink(cache);
        object = prudence_cache_alloc(cache);
    }
    prudence_cache_free(cache, object);
    destroy_empty(cache);
}

SUITE(pin_thread())
