/* SPDX-License-Identifier: MIT */
/*
 * realloc() keeps the bytes up to the smaller size, between all kinds of blocks. A size of 0 frees
 * nothing, and a failure leaves the old object untouched.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

TEST(bytes_are_kept)
{
    static const size_t sizes[] = {1,    15,   16,    17,    100,    128,    129,
                                   1000, 5000, 32768, 32769, 100000, 3 << 20};
    const unsigned count = sizeof sizes / sizeof sizes[0];

    for (unsigned from = 0; from < count; from++) {
        for (unsigned to = 0; to < count; to++) {
            unsigned char *object = prudence_malloc(sizes[from]);

            for (size_t i = 0; i < sizes[from]; i++)
                object[i] = (unsigned char)(i * 13 + from);
            object = prudence_realloc(object, sizes[to]);
            assert_non_null(object);
            assert_true(prudence_usable_size(object) >= sizes[to]);
            for (size_t i = 0; i < min_size(sizes[from], sizes[to]); i++)
                if (object[i] != (unsigned char)(i * 13 + from))
                    fail_msg("byte %zu of %zu to %zu", i, sizes[from], sizes[to]);
            prudence_free(object);
        }
    }
}

TEST(null_and_zero)
{
    void *object = prudence_realloc(NULL, 100);

    assert_true(prudence_usable_size(object) >= 100);
    object = prudence_realloc(object, 0);
    assert_non_null(object);
    assert_true(prudence_usable_size(object) > 0);
    prudence_free(object);
}

TEST(large_memory_is_given_back)
{
    struct os_pages_stats before, after;
    void *object;

    prudence_free(prudence_malloc(64));
    os_pages_stats(&before);
    object = prudence_realloc(prudence_malloc(8 << 20), 64);
    os_pages_stats(&after);
    assert_true(after.used - before.used < 1 << 20);
    prudence_free(object);
}

TEST(a_failure_leaves_the_object)
{
    char *object = prudence_malloc(100);

    fill_pattern(object, 100);
    errno = 0;
    assert_null(prudence_realloc(object, SIZE_MAX / 2));
    assert_int_equal(errno, ENOMEM);
    memory_fail(0, UINT32_MAX);
    errno = 0;
    assert_null(prudence_realloc(object, 1 << 20));
    assert_int_equal(errno, ENOMEM);
    memory_succeed();
    assert_true(has_pattern(object, 100));
    prudence_free(object);
}

/* Without memory for a move, the object stays in place, and is freed with the last requested
 * size. First, because no smaller object is cached yet. */
TEST_FIRST(a_failure_to_shrink_is_none)
{
    char *object = prudence_malloc(6000);

    fill_pattern(object, 6000);
    memory_fail(0, UINT32_MAX);
    assert_ptr_equal(prudence_realloc(object, 1), object);
    memory_succeed();
    assert_true(has_pattern(object, 6000));
    prudence_free_sized(object, 1);
}

SUITE(pin_thread())
