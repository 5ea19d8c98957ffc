/* SPDX-License-Identifier: MIT */
/*
 * calloc() zeroes every byte, also of reused memory, and returns ENOMEM for an overflow.
 *
 * ctest: not-with thread (one thread)
 */
#include "heap/malloc.h"
#include "support/slab_test.h"

static bool is_zero(const unsigned char *object, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (object[i])
            return false;
    return true;
}

TEST(reused_memory_is_zeroed)
{
    static const size_t sizes[] = {1, 16, 100, 1000, 4096, 32768, 32769, 200000, 3 << 20};

    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (unsigned round = 0; round < 4; round++) {
            unsigned char *object = prudence_calloc(1, sizes[i]);

            assert_non_null(object);
            assert_true(is_zero(object, sizes[i]));
            memset(object, 0xff, prudence_usable_size(object));
            prudence_free(object);
            object = prudence_malloc(sizes[i]); /* dirties the memory once more */
            memset(object, 0xff, sizes[i]);
            prudence_free(object);
            if (round == 2)
                prudence_trim(); /* also tests fresh pages */
        }
    }
}

/* Their pages are often known to be zero, so what is not touched stays without memory. */
TEST(large_objects_get_pages_of_their_own)
{
    char *zeroed = prudence_calloc(1, 60000), *object = prudence_malloc(60000);

    assert_true(is_large(slab_of(zeroed)));
    assert_false(is_large(slab_of(object)));
    prudence_free_sized(object, 60000);
    prudence_free_sized(zeroed, 60000);
    zeroed = prudence_calloc(1, CALLOC_CLASS_MAX);
    assert_false(is_large(slab_of(zeroed)));
    prudence_free(zeroed);
}

TEST(the_product_counts)
{
    unsigned char *object = prudence_calloc(30, 100);

    assert_true(prudence_usable_size(object) >= 3000);
    assert_true(is_zero(object, 3000));
    prudence_free(object);
    object = prudence_calloc(0, 100);
    assert_non_null(object);
    prudence_free(object);
    object = prudence_calloc(100, 0);
    assert_non_null(object);
    prudence_free(object);
}

TEST(an_overflow_is_refused)
{
    static const size_t pairs[][2] = {
        {SIZE_MAX, 2}, {2, SIZE_MAX}, {(size_t)1 << 32, (size_t)1 << 32}, {SIZE_MAX / 3, 4}};

    for (unsigned i = 0; i < 4; i++) {
        void *object;

        errno = 0;
        object = prudence_calloc(pairs[i][0], pairs[i][1]);
        assert_null(object);
        assert_int_equal(errno, ENOMEM);
    }
}

SUITE(pin_thread())
