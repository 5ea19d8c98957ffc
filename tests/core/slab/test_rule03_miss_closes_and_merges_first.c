/* SPDX-License-Identifier: MIT */
/*
 * Rule 3: an allocation miss closes the caller's open batch, then merges safe objects, and only
 * then refills. An allocation served by a merge counts as a hit and does not visit the node.
 *
 * ctest: inlined-too
 * ctest: not-with thread (one thread)
 */
#include "slab/latent_cache.h"
#include "support/slab_test.h"

#define ROOM 16

static void *objects[64];

static struct prudence_cache *cache_about_to_miss(unsigned *count)
{
    struct prudence_cache *cache = fixed_cache(64, ROOM, manual_domain());

    *count = 0;
    do
        allocate_all(cache, objects + (*count)++, 1);
    while (stack_count(&cpu_here(cache)->line));
    return cache;
}

TEST(a_miss_closes_the_open_batch)
{
    unsigned count;
    struct prudence_cache *cache = cache_about_to_miss(&count);
    struct cpu_cache *cpu = cpu_here(cache);

    defer_all(cache, objects, 3);
    assert_int_equal(cpu->batch_tail - cpu->batch_head, 0);
    objects[0] = prudence_cache_alloc(cache);
    assert_int_equal(cpu->batch_tail - cpu->batch_head, 1);
    assert_int_equal(cpu->closed, 3);
}

TEST(a_merge_comes_before_a_refill)
{
    unsigned count;
    struct prudence_cache *cache = cache_about_to_miss(&count);
    struct prudence_cache_stats before, after;
    void *deferred[3] = {objects[0], objects[1], objects[2]}, *object;

    defer_all(cache, deferred, 3);
    do
        object = prudence_cache_alloc(cache); /* the first of these closes the batch */
    while (stack_count(&cpu_here(cache)->line));
    prudence_manual_advance(cache->domain);
    before = stats_of(cache);
    object = prudence_cache_alloc(cache);
    after = stats_of(cache);
    assert_true(contains(deferred, 3, object));
    assert_int_equal(after.refills, before.refills);
    assert_int_equal(after.merges, before.merges + 1);
    assert_int_equal(after.merged_objects, before.merged_objects + 3);
    assert_int_equal(after.hits, before.hits + 1);
    assert_int_equal(after.hits_after_merge, before.hits_after_merge + 1);
    assert_int_equal(after.objects_latent, 0);
    check_books(cache);
}

/* A merge is bounded even if many objects share a cookie, so that the caches are not owned for
 * long. */
TEST(a_merge_is_bounded)
{
    static void *live[OBJECTS_MAX];
    struct prudence_cache *cache = fixed_cache(8, 0, manual_domain());
    struct cpu_cache *cpu = cpu_here(cache);
    unsigned count = 0, latent;

    for (unsigned i = 0; i < 10000; i++)
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    prudence_manual_advance(cache->domain);
    while (stack_count(&cpu->line))
        allocate_all(cache, live + count++, 1);
    latent = latent_cache_count(cpu);
    assert_true(latent > 1024);
    allocate_all(cache, live + count++, 1);
    assert_int_equal(latent - latent_cache_count(cpu), 1024);
    assert_int_equal(stack_count(&cpu->line), 1023);
    free_all(cache, live, count);
    destroy_empty(cache);
}

SUITE(pin_thread())
