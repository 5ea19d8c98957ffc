/* SPDX-License-Identifier: MIT */
/*
 * prudence_cache_replace() defers the old object no matter whether the allocation succeeds, and
 * then allocates another one. Nothing is lost when memory runs out, on fast and slow paths, one by
 * one and in bulk.
 *
 * ctest: inlined-too
 * ctest: small-pages (has arrays for a slab of 4 KiB)
 */
#include "support/slab_test.h"

#define COUNT 600

static void *objects[COUNT], *held[COUNT];

/* The old object stays unchanged until its grace period is over, and is not returned before. */
TEST(the_old_one_waits)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache *cache = fixed_cache(64, 32, domain);
    struct prudence_cache_stats stats;

    objects[0] = prudence_cache_alloc(cache);
    for (unsigned i = 1; i < COUNT; i++) {
        fill_pattern(objects[i - 1], 64);
        objects[i] = prudence_cache_replace(cache, objects[i - 1]);
        assert_non_null(objects[i]);
        assert_false(contains(objects, i, objects[i]));
    }
    for (unsigned i = 0; i < COUNT - 1; i++)
        assert_true(has_pattern(objects[i], 64));
    stats = stats_of(cache);
    assert_int_equal(stats.objects_live, 1);
    assert_int_equal(stats.objects_latent, COUNT - 1);
    assert_int_equal(stats.deferred_frees, COUNT - 1);
    assert_int_equal(stats.allocations, COUNT);
    check_books(cache);
    prudence_cache_free(cache, objects[COUNT - 1]);
    destroy_empty(cache);
}

/* When grace periods end at once, few objects serve all updates. */
TEST(memory_comes_back)
{
    struct prudence_cache *cache = fixed_cache(64, 32, NULL);
    void *spare = prudence_cache_alloc(cache);

    for (unsigned i = 0; i < 100000; i++)
        spare = prudence_cache_replace(cache, spare);
    assert_int_equal(stats_of(cache).objects_live, 1);
    assert_true(stats_of(cache).slabs_peak <= 4);
    assert_int_equal(stats_of(cache).deferred_frees, 100000);
    prudence_cache_free(cache, spare);
    destroy_empty(cache);
}

TEST(null_only_allocates)
{
    struct prudence_cache *cache = fixed_cache(64, 32, manual_domain());

    errno = 77;
    objects[0] = prudence_cache_replace(cache, NULL);
    assert_non_null(objects[0]);
    assert_int_equal(errno, 77);
    assert_int_equal(stats_of(cache).deferred_frees, 0);
    assert_int_equal(stats_of(cache).objects_live, 1);
    prudence_cache_free(cache, objects[0]);
    destroy_empty(cache);
}

/* With a full slab and no memory, every object is deferred although no new one can be returned. */
TEST(without_memory_the_old_one_is_deferred)
{
    struct prudence_cache *cache = fixed_cache(64, 32, manual_domain());
    unsigned live, nulls = 0;

    live = cache->body->capacity;
    assert_true(live <= COUNT);
    allocate_all(cache, objects, live);
    memory_fail(0, UINT32_MAX);
    for (unsigned i = 0; i < live; i++) {
        errno = 0;
        held[i] = prudence_cache_replace(cache, objects[i]);
        nulls += !held[i];
        assert_int_equal(errno, held[i] ? 0 : ENOMEM);
    }
    memory_succeed();
    assert_int_equal(nulls, live); /* the manual domain ends no grace period */
    assert_int_equal(stats_of(cache).deferred_frees, live);
    assert_int_equal(stats_of(cache).objects_latent, live);
    assert_int_equal(stats_of(cache).objects_live, 0);
    check_books(cache);
    destroy_empty(cache);
}

/* When grace periods end, the just deferred object is returned. */
TEST(under_pressure_the_old_one_comes_back)
{
    struct prudence_cache *cache = fixed_cache(64, 32, NULL);
    unsigned live;

    live = cache->body->capacity;
    allocate_all(cache, objects, live);
    memory_fail(0, UINT32_MAX);
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < live; i++) {
            objects[i] = prudence_cache_replace(cache, objects[i]);
            assert_non_null(objects[i]);
        }
    memory_succeed();
    assert_int_equal(stats_of(cache).slabs_now, 1);
    free_all(cache, objects, live);
    destroy_empty(cache);
}

TEST(in_bulk)
{
    struct prudence_cache *cache = fixed_cache(64, 32, manual_domain());

    allocate_all(cache, objects, 300);
    memcpy(held, objects, sizeof held);
    held[7] = held[299] = NULL;
    prudence_cache_free(cache, objects[7]);
    prudence_cache_free(cache, objects[299]);
    assert_int_equal(prudence_cache_replace_bulk(cache, 300, held), 300);
    for (unsigned i = 0; i < 300; i++)
        assert_true(held[i] && (!contains(objects, 300, held[i]) || held[i] == objects[7] ||
                                held[i] == objects[299]));
    assert_int_equal(stats_of(cache).deferred_frees, 298);
    assert_int_equal(stats_of(cache).objects_live, 300);
    assert_int_equal(prudence_cache_replace_bulk(cache, 0, NULL), 0);
    free_all(cache, held, 300);
    check_books(cache);
    destroy_empty(cache);
}

TEST(in_bulk_without_memory)
{
    struct prudence_cache *cache = fixed_cache(64, 32, manual_domain());
    unsigned live, half;
    size_t got;

    live = cache->body->capacity;
    half = live / 2;
    allocate_all(cache, objects, half);
    memcpy(held, objects, sizeof held);
    memory_fail(0, UINT32_MAX);
    errno = 0;
    got = prudence_cache_replace_bulk(cache, half, held); /* the other half of the slab */
    assert_int_equal(got, half);
    assert_int_equal(errno, 0);
    memcpy(objects, held, sizeof held);
    got = prudence_cache_replace_bulk(cache, half, held);
    assert_int_equal(got, live - 2 * half);
    assert_int_equal(errno, ENOMEM);
    for (size_t i = got; i < half; i++)
        assert_null(held[i]);
    memory_succeed();
    assert_int_equal(stats_of(cache).deferred_frees, 2 * half);
    assert_int_equal(stats_of(cache).objects_live, got);
    free_all(cache, held, (unsigned)got);
    destroy_empty(cache);
}

static unsigned destroyed;

static void count_end(void *object, void *unused)
{
    (void)object, (void)unused;
    destroyed++;
}

TEST(with_a_destructor)
{
    struct prudence_cache_attr attr = {
        .size = sizeof attr, .domain = manual_domain(), .destructor = count_end};
    struct prudence_cache *cache = prudence_cache_create("ended", 64, &attr);

    objects[0] = prudence_cache_alloc(cache);
    objects[1] = prudence_cache_replace(cache, objects[0]);
    assert_non_null(objects[1]);
    assert_int_equal(destroyed, 0);
    prudence_cache_free(cache, objects[1]);
    assert_int_equal(destroyed, 1);
    prudence_manual_advance(attr.domain);
    destroy_empty(cache);
    assert_int_equal(destroyed, 2);
}

/* ------------------------------------------------------------------------------------ misuse */

static struct prudence_cache *mine;

static void replace_a_freed_one_in_bulk(void *old)
{
    void *both[2] = {old, prudence_cache_alloc(mine)};

    prudence_cache_free(mine, old);
    prudence_cache_replace_bulk(mine, 2, both);
    prudence_manual_advance(mine->domain);
    prudence_cache_shrink(mine);
    prudence_manual_advance(mine->domain);
    prudence_cache_shrink(mine);
}

TEST(what_comes_back_is_caught)
{
    void *object;

    mine = fixed_cache(64, 32, manual_domain());
    object = prudence_cache_alloc(mine);
    /* The object is free and on top of the stack. The allocation would return it, and then the
     * double free would go unnoticed. */
    expect_death((prudence_cache_free(mine, object), discard(prudence_cache_replace(mine, object))),
                 "already deferred and not yet safe");
    expect_death(replace_a_freed_one_in_bulk(object), "bulk: 0x", "already deferred");
    prudence_cache_free(mine, object);
    destroy_empty(mine);
}

TEST(misuse_is_caught_at_the_call)
{
    struct prudence_cache *other = fixed_cache(64, 32, NULL);
    char *object;

    mine = fixed_cache(64, 32, NULL);
    object = prudence_cache_alloc(mine);
    expect_death(discard(prudence_cache_replace(mine, object + 8)),
                 "prudence_cache_replace:", "8 bytes after its start");
    expect_death(discard(prudence_cache_replace(mine, &object)),
                 "prudence_cache_replace:", "foreign pointer");
    expect_death(discard(prudence_cache_replace(mine, prudence_cache_alloc(other))),
                 "prudence_cache_replace:", "belongs to cache");
    expect_death(prudence_cache_replace_bulk(mine, 1, (void *[]){object + 8}),
                 "prudence_cache_replace_bulk:", "8 bytes after its start");
    expect_death(discard(prudence_cache_replace(NULL, object)),
                 "prudence_cache_replace:", "the cache is NULL");
    expect_death(discard(prudence_cache_replace(NULL, NULL)),
                 "prudence_cache_replace:", "the cache is NULL");
}

SUITE(pin_thread())
