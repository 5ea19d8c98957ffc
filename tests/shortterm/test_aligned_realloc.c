/* SPDX-License-Identifier: MIT */
/*
 * prudence_aligned_realloc() keeps the bytes up to the smaller size and gives the alignment, for
 * objects of any size and alignment. A refused call leaves the object as it was.
 *
 * ctest: not-with thread (one thread)
 */
#include <prudence/scm.h>

#include "support/slab_test.h"

static const size_t sizes[] = {1, 7, 40, 128, 5000, 32768, 32769, 100000, 3 << 20};
static const size_t alignments[] = {1, 8, 16, 64, 4096, 65536};
#define SIZES      (sizeof sizes / sizeof sizes[0])
#define ALIGNMENTS (sizeof alignments / sizeof alignments[0])

static bool is_aligned(const void *object, size_t alignment)
{
    return (uintptr_t)object % alignment == 0;
}

static void write_bytes(unsigned char *object, size_t size)
{
    for (size_t i = 0; i < size; i++)
        object[i] = (unsigned char)(i * 13 + 5);
}

static void expect_bytes(const unsigned char *object, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (object[i] != (unsigned char)(i * 13 + 5))
            fail_msg("byte %zu of %zu", i, size);
}

TEST(bytes_are_kept)
{
    for (size_t from = 0; from < SIZES; from++)
        for (size_t to = 0; to < SIZES; to++)
            for (size_t i = 0; i < ALIGNMENTS; i++) {
                unsigned char *object = prudence_malloc(sizes[from]);

                write_bytes(object, sizes[from]);
                object = prudence_aligned_realloc(object, alignments[i], sizes[to]);
                assert_true(is_aligned(object, alignments[i]));
                assert_true(prudence_usable_size(object) >= sizes[to]);
                expect_bytes(object, min_size(sizes[from], sizes[to]));
                object = prudence_aligned_realloc(object, alignments[i], sizes[to] + 100);
                assert_true(is_aligned(object, alignments[i]));
                expect_bytes(object, min_size(sizes[from], sizes[to]));
                prudence_free_sized(object, sizes[to] + 100);
            }
}

/* An object of 8 bytes of a cache is aligned to 8. */
TEST(a_small_object_of_a_cache_moves)
{
    struct prudence_cache *cache = fixed_cache(8, 16, NULL);
    unsigned char *objects[2];

    for (unsigned i = 0; i < 2; i++) {
        objects[i] = prudence_cache_alloc(cache);
        write_bytes(objects[i], 8);
        objects[i] = prudence_aligned_realloc(objects[i], 16, 8);
        assert_true(is_aligned(objects[i], 16));
        expect_bytes(objects[i], 8);
    }
    for (unsigned i = 0; i < 2; i++)
        prudence_free(objects[i]);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

TEST(what_fits_stays)
{
    void *object = prudence_aligned_alloc(64, 200);

    assert_ptr_equal(prudence_aligned_realloc(object, 64, 199), object);
    prudence_free_sized(object, 199);
}

TEST(refused_calls_change_nothing)
{
    static const size_t wrong[] = {0, 3, 24, SIZE_MAX};
    unsigned char *object = prudence_malloc(100);

    write_bytes(object, 100);
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        errno = 0;
        assert_null(prudence_aligned_realloc(object, wrong[i], 200));
        assert_int_equal(errno, EINVAL);
        errno = 0;
        assert_null(prudence_aligned_realloc(NULL, wrong[i], 200));
        assert_int_equal(errno, EINVAL);
    }
    errno = 0;
    assert_null(prudence_aligned_realloc(object, 64, SIZE_MAX / 2));
    assert_int_equal(errno, ENOMEM);
    expect_bytes(object, 100);
    prudence_free(object);
    object = prudence_aligned_realloc(NULL, 256, 10);
    assert_true(is_aligned(object, 256));
    prudence_free(object);
}

/* The old one stays until its dates have expired, and the new one has none. */
TEST(a_short_term_object_is_copied)
{
    unsigned char *object = prudence_malloc(100), *moved;

    write_bytes(object, 100);
    assert_int_equal(scm_refresh(object, 0), 0);
    moved = prudence_aligned_realloc(object, 4096, 1000);
    assert_ptr_not_equal(moved, object);
    expect_bytes(moved, 100);
    expect_bytes(object, 100);
    assert_int_equal(scm_tick(), 0);
    assert_int_equal(scm_collect(), 0);
    expect_bytes(moved, 100);
    prudence_free(moved);
    assert_int_equal(scm_unregister_thread(), 0);
}

SUITE()
