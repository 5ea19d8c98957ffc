/* SPDX-License-Identifier: MIT */
/*
 * Double frees without check=1 are caught when both copies meet in the slab, at the latest when the
 * object caches are emptied and grace periods are over.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

static struct prudence_cache *cache;
static void *object, *other;
static char pointer[32];

/* Sends all copies to the slab. */
static void settle(void)
{
    for (int i = 0; i < 4; i++) {
        prudence_cache_shrink(cache);
        prudence_manual_advance(cache->domain);
    }
}

/* Steps: free, defer, defer the other object, defer past the latent cache, shrink the cache. */
static void take_steps(const char *step)
{
    for (; *step; step++) {
        if (*step == 'f')
            prudence_cache_free(cache, object);
        else if (*step == 's')
            prudence_cache_shrink(cache);
        else if (*step == 'L')
            node_put_latent(slab_of(object), object, false);
        else
            prudence_cache_free_deferred(cache, *step == 'o' ? other : object);
    }
    settle();
}

TEST(doubles_die_in_the_slab)
{
    static const struct {
        const char *steps, *text, *what;
    } rows[] = {
        {"ff", "double free", "already free"},
        {"dd", "deferred free: 0x", "already deferred and not yet safe"},
        {"dod", "double free", "already free"},
        {"df", "double free", "already free"},
        {"fd", "double free", "already free"},
        {"LL", "deferred free: 0x", "already deferred and not yet safe"},
        {"Lfs", "free: 0x", "already deferred and not yet safe"},
        {"fsL", "double free", "already free"},
    };

    cache = fixed_cache(100, 16, manual_domain());
    other = prudence_cache_alloc(cache); /* keeps the slab */
    object = prudence_cache_alloc(cache);
    snprintf(pointer, sizeof pointer, "%p of cache 'test'", object);
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_death(take_steps(rows[i].steps), rows[i].text, pointer, rows[i].what);
    prudence_cache_free(cache, object);
    prudence_cache_free(cache, other);
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
