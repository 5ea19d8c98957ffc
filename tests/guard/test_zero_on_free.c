/* SPDX-License-Identifier: MIT */
/*
 * zero_on_free=1: freed memory is zeroed at once, and deferred memory when its grace period is
 * over, however the memory comes back, and never before. Objects that may be accessed while free
 * stay as they are. With check=1, the next allocation finds a write after the free.
 *
 * ctest: inlined-too
 */
#include "support/slab_test.h"

#define SIZE 100

static bool is_zero(const void *object, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (((const char *)object)[i])
            return false;
    return true;
}

static void *filled(struct prudence_cache *cache)
{
    void *object = prudence_cache_alloc(cache);

    assert_non_null(object);
    fill_pattern(object, SIZE);
    return object;
}

TEST(freed_at_once)
{
    struct prudence_cache *cache = fixed_cache(SIZE, 16, manual_domain());
    void *object = filled(cache), *other = prudence_malloc(3000);

    prudence_cache_free(cache, object);
    assert_true(is_zero(object, SIZE));
    memset(other, 1, 3000);
    prudence_free(other);
    assert_true(is_zero(other, 3000));
    destroy_empty(cache);
}

/* Covers the ring, which has room for 16, and latent slabs. */
TEST(deferred_when_safe)
{
    struct prudence_cache *cache = fixed_cache(SIZE, 16, manual_domain());
    void *objects[60], *kept = prudence_cache_alloc(cache);

    for (unsigned i = 0; i < 60; i++)
        objects[i] = filled(cache);
    defer_all(cache, objects, 60);
    prudence_cache_shrink(cache);
    for (unsigned i = 0; i < 60; i++)
        assert_true(has_pattern(objects[i], SIZE));
    prudence_manual_advance(cache->domain);
    for (unsigned i = 0; i < 60; i++)
        assert_true(has_pattern(objects[i], SIZE)); /* no visit yet */
    allocate_all(cache, objects, 60);               /* some merged, some new */
    for (unsigned i = 0; i < 60; i++)
        assert_false(has_pattern(objects[i], SIZE));
    free_all(cache, objects, 60);
    prudence_cache_free(cache, kept);
    destroy_empty(cache);
}

static void construct(void *object, void *context)
{
    memset(object, 7, SIZE);
}

TEST(not_what_may_be_looked_at)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .constructor = construct};
    struct prudence_cache *cache;
    char *object;

    cache = prudence_cache_create("constructed", SIZE, &attr);
    object = prudence_cache_alloc(cache);
    prudence_cache_free(cache, object);
    assert_int_equal(object[SIZE - 1], 7);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    attr.constructor = NULL;
    attr.flags = PRUDENCE_CACHE_TYPESAFE;
    cache = prudence_cache_create("type-safe", SIZE, &attr);
    object = prudence_cache_alloc(cache);
    memset(object, 8, SIZE);
    prudence_cache_free(cache, object);
    assert_int_equal(object[SIZE - 1], 8);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

/* A large block is not zeroed while a reader may access it, and its pages are never handed out with
 * old contents. */
TEST(large_blocks)
{
    struct prudence_stats stats;
    char *block = prudence_malloc(100000), *small;

    memset(block, 5, 100000);
    prudence_read_lock();
    prudence_free_deferred(block);
    prudence_trim();
    assert_int_equal(block[99999], 5);
    prudence_read_unlock();
    prudence_stats(&stats);
    for (int i = 0; i < 4; i++) {
        prudence_synchronize();
        prudence_trim();
    }
    block = prudence_malloc(100000);
    memset(block, 6, 100000);
    prudence_free(block); /* kept pages, reused below */
    small = prudence_malloc(60000);
    assert_true(is_zero(small, 60000));
    prudence_free(small);
}

static void write_after_free(bool deferred)
{
    struct prudence_cache *cache = fixed_cache(SIZE, 16, manual_domain());
    char *object = filled(cache);

    filled(cache); /* keeps the slab */
    if (deferred) {
        prudence_cache_free_deferred(cache, object);
        object[3] = 1; /* allowed, if not wise */
        prudence_cache_shrink(cache);
        prudence_manual_advance(cache->domain);
        prudence_cache_shrink(cache);
    } else {
        prudence_cache_free(cache, object);
    }
    object[SIZE - 1] = 1;
    for (int i = 0; i < 40; i++)
        (void)!prudence_cache_alloc(cache);
}

/* First, before there are caches. */
TEST_FIRST(found_by_check)
{
    expect_death((prudence_option_set("check", "1"), write_after_free(false)),
                 "write after free: byte 99 of ", "of cache 'test'",
                 "its memory was last freed by:");
    expect_death((prudence_option_set("check", "1"), write_after_free(true)),
                 "write after free: byte 99 of ", "of cache 'test'",
                 "its memory was last deferred by:");
}

/* Returns whether the bytes that a block gave up are zero when another block has their pages. */
static bool shrinks_clean(void)
{
    size_t size = (size_t)1 << 20, kept = 300 << 10, reused = 600 << 10;
    char *block, *other;

    if (prudence_option_set("red_zones", "1"))
        abort();
    block = prudence_malloc(size);
    memset(block, 0xAA, size);
    block = prudence_realloc(block, kept);
    other = prudence_malloc(reused);
    return (unsigned char)block[kept - 1] == 0xAA && is_zero(other, reused);
}

/* First, before there are caches. */
TEST_FIRST(large_blocks_shrink_with_red_zones)
{
    expect_exit(1, shrinks_clean(), "");
}

static void has_its_contents(void *object, void *destroyed)
{
    assert_true(has_pattern(object, SIZE));
    (*(unsigned *)destroyed)++;
}

/* Safe objects keep their contents until their destructor has run. */
TEST(behind_the_destructor)
{
    unsigned destroyed = 0;
    struct prudence_cache_attr attr = {
        .size = sizeof attr, .destructor = has_its_contents, .context = &destroyed};
    struct prudence_cache *cache = prudence_cache_create("destructor", SIZE, &attr);
    void *objects[60];

    for (unsigned i = 0; i < 60; i++)
        objects[i] = filled(cache);
    defer_all(cache, objects, 60);
    assert_int_equal(prudence_cache_barrier(cache), 0);
    assert_int_equal(destroyed, 60);
    for (unsigned i = 0; i < 60; i++)
        assert_true(is_zero(objects[i], SIZE));
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

static int zero_on(void **state)
{
    return prudence_option_set("zero_on_free", "1");
}

SUITE_BETWEEN(zero_on, NULL, pin_thread())
