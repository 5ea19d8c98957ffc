/* SPDX-License-Identifier: MIT */
/*
 * Type-safe memory: a freed object may be handed out again at once, but its page stays in a slab of
 * the cache until a grace period after the slab became free. Without the flag, a free slab may go
 * at once.
 *
 * ctest: inlined-too
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

#define COUNT 200

static void *objects[COUNT];

static struct prudence_cache *cache_with_flags(unsigned flags)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .flags = flags};

    attr.domain = manual_domain();
    return prudence_cache_create("typesafe", 256, &attr);
}

TEST(pages_stay_for_a_grace_period)
{
    struct prudence_cache *cache = cache_with_flags(PRUDENCE_CACHE_TYPESAFE);
    uint64_t slabs;

    allocate_all(cache, objects, COUNT);
    slabs = stats_of(cache).slabs_now;
    prudence_manual_advance(cache->domain); /* before the frees, so without effect */
    free_all(cache, objects, COUNT);
    assert_int_equal(prudence_cache_shrink(cache), 0);
    assert_int_equal(prudence_trim(), 0);
    for (unsigned i = 0; i < COUNT; i++)
        assert_ptr_equal(slab_of(objects[i])->cache, cache);
    prudence_manual_advance(cache->domain);
    assert_int_equal(prudence_cache_shrink(cache), slabs * cache->body->slab_bytes);
    check_books(cache);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

TEST(a_slab_that_was_used_again_waits_anew)
{
    struct prudence_cache *cache = cache_with_flags(PRUDENCE_CACHE_TYPESAFE);

    allocate_all(cache, objects, 1);
    free_all(cache, objects, 1);
    assert_int_equal(prudence_cache_shrink(cache), 0);
    prudence_manual_advance(cache->domain);
    allocate_all(cache, objects, 1); /* the slab could have gone, but is wanted */
    free_all(cache, objects, 1);
    assert_int_equal(prudence_cache_shrink(cache), 0);
    prudence_manual_advance(cache->domain);
    assert_int_equal(prudence_cache_shrink(cache), cache->body->slab_bytes);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

TEST(reuse_need_not_wait)
{
    struct prudence_cache *cache = cache_with_flags(PRUDENCE_CACHE_TYPESAFE);
    void *object;

    allocate_all(cache, objects, 1);
    free_all(cache, objects, 1);
    object = prudence_cache_alloc(cache);
    assert_ptr_equal(object, objects[0]);
    free_all(cache, objects, 1);
    destroy_empty(cache);
}

TEST(ordinary_pages_go_at_once)
{
    struct prudence_cache *cache = cache_with_flags(0);

    allocate_all(cache, objects, COUNT);
    free_all(cache, objects, COUNT);
    assert_true(prudence_cache_shrink(cache) > 0);
    assert_int_equal(stats_of(cache).slabs_now, 0);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

SUITE(pin_thread())
