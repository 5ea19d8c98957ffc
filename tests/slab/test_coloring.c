/* SPDX-License-Identifier: MIT */
/*
 * Coloring: the first objects of a cache's slabs lie in different places, whole cache lines (and
 * multiples of the alignment) apart; never so that an object leaves its slab.
 */
#include "support/slab_test.h"

static void *objects[OBJECTS_MAX];

static void colors(size_t size, size_t alignment, unsigned at_least)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .alignment = alignment};
    struct prudence_cache *cache = prudence_cache_create("colored", size, &attr);
    bool seen[65536 / 64 * 8] = {false};
    unsigned different = 0, slabs = 2 * cache->colors + 2;

    for (unsigned i = 0; i < slabs; i++) {
        struct slab *slab = slab_grow(cache, 0, OS_ALLOC_DEFAULT);
        size_t offset = (size_t)(slab->base - (char *)slab->pages);

        assert_int_equal(offset % CACHE_LINE, 0);
        assert_int_equal((uintptr_t)slab->base % cache->alignment, 0);
        assert_true(offset + slab->capacity * cache->stride <= slab->bytes);
        different += !seen[offset / 64];
        seen[offset / 64] = true;
        node_add_slab(node_here(cache), slab);
    }
    assert_int_equal(different, cache->colors);
    assert_true(different >= at_least);
    destroy_empty(cache);
}

static void slabs_have_different_colors(void **state)
{
    (void)state;
    colors(4096, 0, 16); /* powers of two give up an object for it */
    colors(2048, 0, 16);
    colors(1024, 0, 16);
    colors(512, 0, 8);
    colors(700, 0, 2);
    colors(16, 0, 1); /* small ones do not */
    colors(64, 0, 1);
    colors(4096, 4096, 1);
    colors(1024, 512, 2);
    colors(32768, 0, 1);
}

static void the_last_object_is_usable(void **state)
{
    struct prudence_cache *cache = fixed_cache(4096, 0, NULL);
    unsigned count = 40 * cache->capacity;

    (void)state;
    allocate_all(cache, objects, count);
    for (unsigned i = 0; i < count; i++)
        fill_pattern(objects[i], 4096);
    for (unsigned i = 0; i < count; i++)
        assert_true(has_pattern(objects[i], 4096));
    free_all(cache, objects, count);
    destroy_empty(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slabs_have_different_colors),
        cmocka_unit_test(the_last_object_is_usable),
    };

    pin_thread();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
