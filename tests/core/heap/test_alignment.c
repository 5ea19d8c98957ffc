/* SPDX-License-Identifier: MIT */
/*
 * Objects are aligned to 16 bytes, or as requested, up to megabytes; also those of caches.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

static void *objects[64];

TEST(of_every_size)
{
    for (size_t size = 0; size < 70000; size += 1 + size / 50) {
        for (unsigned i = 0; i < 5; i++) {
            objects[i] = prudence_malloc(size);
            assert_non_null(objects[i]);
            assert_int_equal((uintptr_t)objects[i] % 16, 0);
            memset(objects[i], 1, size);
        }
        for (unsigned i = 0; i < 5; i++)
            prudence_free(objects[i]);
    }
}

TEST(as_asked_for)
{
    static const size_t sizes[] = {0,    1,    17,    100,   128,   1000,
                                   4096, 5000, 20000, 32768, 40000, 3000000};

    for (size_t alignment = 1; alignment <= (size_t)8 << 20; alignment *= 2) {
        for (unsigned s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            for (unsigned i = 0; i < 3; i++) {
                objects[i] = prudence_aligned_alloc(alignment, sizes[s]);
                assert_non_null(objects[i]);
                assert_int_equal((uintptr_t)objects[i] % alignment, 0);
                assert_true(prudence_usable_size(objects[i]) >= sizes[s]);
                memset(objects[i], 1, sizes[s]);
            }
            prudence_free(objects[0]);
            prudence_free_deferred(objects[1]);
            prudence_free(objects[2]);
        }
    }
}

/* Uses many slabs, whose first objects have different offsets. */
TEST(in_slabs_of_every_color)
{
    static void *many[300];

    for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
        for (unsigned i = 0; i < 300; i++) {
            many[i] = prudence_aligned_alloc(alignment, 1024);
            assert_int_equal((uintptr_t)many[i] % alignment, 0);
        }
        for (unsigned i = 0; i < 300; i++)
            prudence_free(many[i]);
    }
}

TEST(bad_ones_are_refused)
{
    static const size_t bad[] = {0, 3, 12, 48, 4097, SIZE_MAX};

    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        errno = 0;
        objects[0] = prudence_aligned_alloc(bad[i], 100);
        assert_null(objects[0]);
        assert_int_equal(errno, EINVAL);
    }
    errno = 0;
    objects[0] = prudence_aligned_alloc((size_t)1 << 63, 100);
    assert_null(objects[0]);
    assert_int_equal(errno, ENOMEM);
}

TEST(of_cache_objects)
{
    for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
        for (size_t size = 1; size <= 32768; size = size * 3 + 1) {
            struct prudence_cache_attr attr = {.size = sizeof attr, .alignment = alignment};
            struct prudence_cache *cache = prudence_cache_create("aligned", size, &attr);

            assert_non_null(cache);
            allocate_all(cache, objects, 20);
            for (unsigned i = 0; i < 20; i++) {
                assert_int_equal((uintptr_t)objects[i] % alignment, 0);
                memset(objects[i], 1, size);
            }
            free_all(cache, objects, 20);
            assert_int_equal(prudence_cache_destroy(cache), 0);
        }
    }
}

SUITE(pin_thread())
