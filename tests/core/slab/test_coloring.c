/* SPDX-License-Identifier: MIT */
/*
 * Coloring: the first objects of a cache's slabs have different offsets, multiples of a cache line
 * and of the alignment, and no object leaves the slab. The stride spreads the objects of one slab
 * over the sets of a processor's cache.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

static void *objects[OBJECTS_MAX];

static void colors(size_t size, size_t alignment, unsigned at_least)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .alignment = alignment};
    struct prudence_cache *cache = prudence_cache_create("colored", size, &attr);
    bool seen[65536 / 64 * 8] = {false};
    unsigned different = 0, slabs = 2 * cache->body->colors + 2;

    for (unsigned i = 0; i < slabs; i++) {
        struct slab *slab = slab_grow(cache, 0, OS_ALLOC_DEFAULT);
        size_t offset = (size_t)(slab->base - (char *)slab->pages);

        assert_int_equal(offset % CACHE_LINE, 0);
        assert_int_equal((uintptr_t)slab->base % cache->alignment, 0);
        assert_true(offset + slab->capacity * cache->body->stride <= slab->bytes);
        different += !seen[offset / 64];
        seen[offset / 64] = true;
        node_add_slab(node_here(cache), slab, NULL, 0);
    }
    assert_int_equal(different, cache->body->colors);
    assert_true(different >= at_least);
    destroy_empty(cache);
}

TEST(slabs_have_different_colors)
{
    colors(16384, 0, 1);
    colors(4096, 128, 16); /* powers of two give up one object for colors */
    colors(2048, 128, 8);
    colors(1024, 128, 8);
    colors(512, 0, 8);
    colors(700, 0, 2);
    colors(16, 0, 1); /* small objects get no colors */
    colors(64, 0, 1);
    colors(4096, 4096, 1);
    colors(1024, 512, 2);
    colors(32768, 0, 1);
}

/* Counts in how many of 64 sets of a first-level cache the first lines of a slab's objects lie, and
 * how many objects share the fullest set. */
static void sets(size_t size, unsigned at_least, unsigned at_most)
{
    struct prudence_cache *cache = prudence_cache_create("spread", size, NULL);
    struct slab *slab = slab_grow(cache, 0, OS_ALLOC_DEFAULT);
    unsigned used[64] = {0}, different = 0, fullest = 0;

    assert_true(cache->body->stride >= size && cache->body->stride <= size + CACHE_LINE);
    for (unsigned i = 0; i < slab->capacity; i++) {
        uintptr_t object = (uintptr_t)slab_object(slab, i, cache->body->stride);
        unsigned set = object / CACHE_LINE % 64;

        assert_true(object % 16 == 0);
        different += !used[set]++;
        fullest = used[set] > fullest ? used[set] : fullest;
    }
    assert_true(different >= at_least);
    assert_true(fullest <= at_most);
    node_add_slab(node_here(cache), slab, NULL, 0);
    destroy_empty(cache);
}

TEST(large_objects_are_spread)
{
    sets(1024, 60, 1);
    sets(2048, 31, 1);
    sets(4096, 15, 1);
    sets(1536, 40, 1);
    sets(3072, 20, 1);
    sets(7680, 8, 1);
}

/* Spreading costs none of these slabs an object, compared with coloring alone. */
TEST(spreading_costs_little)
{
    static const struct {
        size_t size;
        unsigned capacity;
    } before[] = {{1024, 60}, {1536, 40}, {2048, 31}, {2560, 24}, {3072, 20}, {3584, 17},
                  {4096, 15}, {4608, 13}, {5120, 12}, {6144, 10}, {7168, 8},  {8192, 8}};

    for (unsigned i = 0; i < sizeof before / sizeof before[0]; i++) {
        struct prudence_cache *cache = prudence_cache_create("spread", before[i].size, NULL);

        assert_true(cache->body->capacity >= before[i].capacity);
        assert_int_equal(cache->body->slab_bytes, 65536);
        destroy_empty(cache);
    }
}

/* Every object has the alignment that the caller asked for. */
TEST(alignment_goes_before)
{
    for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
        struct prudence_cache_attr attr = {.size = sizeof attr, .alignment = alignment};
        struct prudence_cache *cache = prudence_cache_create("aligned", 4096, &attr);

        allocate_all(cache, objects, 100);
        for (unsigned i = 0; i < 100; i++)
            assert_int_equal((uintptr_t)objects[i] % alignment, 0);
        free_all(cache, objects, 100);
        destroy_empty(cache);
    }
}

TEST(the_last_object_is_usable)
{
    struct prudence_cache *cache = fixed_cache(4096, 0, NULL);
    unsigned count = 40 * cache->body->capacity;

    allocate_all(cache, objects, count);
    for (unsigned i = 0; i < count; i++)
        fill_pattern(objects[i], 4096);
    for (unsigned i = 0; i < count; i++)
        assert_true(has_pattern(objects[i], 4096));
    free_all(cache, objects, count);
    destroy_empty(cache);
}

SUITE(pin_thread())
