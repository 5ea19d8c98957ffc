/* SPDX-License-Identifier: MIT */
/*
 * Memory of an aligned object: the size rounded up to the alignment and then to a size class, which
 * adds at most an eighth (ADR 10). Checks every combination of alignment and size by the library's
 * own statistics. Also checks that objects keep their contents, however they are freed, and that
 * sizes given to sized frees are accepted.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "heap/malloc.h"
#include "heap/size_class.h"
#include "support/slab_test.h"

#include "support/gp_child.h"

#define OBJECTS 300 /* more than two slabs of the smallest objects, and many slabs of larger ones */

static void *objects[OBJECTS];

static const size_t sizes[] = {1,    16,   33,   48,   63,   100,  150,   200,   288,   300,
                               513,  544,  600,  1000, 1088, 1500, 2100,  2500,  3000,  4097,
                               4160, 5000, 6000, 7000, 9000, 9999, 15000, 20000, 26000, 32768};
#define SIZES (sizeof sizes / sizeof *sizes)

/* Returns the most bytes that an object of a size class may take, including the line that spreads
 * some strides (ADR 3). */
static size_t bound(size_t size, size_t alignment)
{
    size_t least = round_up(size, max_size(alignment, 16));

    return least + (alignment > CACHE_LINE ? 0 : CACHE_LINE) + (least > LINEAR_MAX ? least / 8 : 0);
}

static struct prudence_cache *cache_of(const void *object)
{
    return slab_of(object)->cache;
}

static void allocate_aligned(size_t size, size_t alignment)
{
    for (unsigned i = 0; i < OBJECTS; i++) {
        objects[i] = prudence_aligned_alloc(alignment, size);
        assert_non_null(objects[i]);
        assert_int_equal((uintptr_t)objects[i] % alignment, 0);
        assert_true(prudence_usable_size(objects[i]) >= size);
        fill_pattern(objects[i], size);
    }
}

/* Frees one object in three at once, defers one, and reallocates one first. */
static void free_aligned(size_t size)
{
    for (unsigned i = 0; i < OBJECTS; i++) {
        assert_true(has_pattern(objects[i], size));
        if (i % 3 == 0)
            prudence_free_sized(objects[i], size);
        else if (i % 3 == 1)
            prudence_free_deferred(objects[i]);
        else
            prudence_free(prudence_realloc(objects[i], size + size / 2));
    }
}

static size_t slab_bytes(const struct prudence_cache_stats *stats)
{
    return stats->slabs_now * stats->slab_size;
}

static void objects_take_little(void **state)
{
    for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
        for (unsigned i = 0; i < SIZES; i++) {
            size_t size = sizes[i], most = bound(size, alignment);
            struct prudence_cache_stats stats;
            struct prudence_cache *cache;

            allocate_aligned(size, alignment);
            cache = cache_of(objects[0]);
            stats = stats_of(cache);
            if (stats.object_stride > most)
                print_error("alignment %zu, size %zu: %zu bytes\n", alignment, size,
                            stats.object_stride);
            assert_true(stats.object_stride <= most);
            free_aligned(size);
        }
    }
}

/* Except for the remainder, slabs waste less than one object in eight. */
static void slabs_are_full(void **state)
{
    for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
        for (unsigned i = 0; i < SIZES; i++) {
            struct prudence_cache_stats stats;
            struct prudence_cache *cache;

            allocate_aligned(sizes[i], alignment);
            cache = cache_of(objects[0]);
            check_books(cache);
            stats = stats_of(cache);
            assert_true(stats.slab_size - cache->body->capacity * cache->body->stride <=
                        stats.slab_size / 8);
            assert_true(stats.objects_live >= OBJECTS);
            assert_true(slab_bytes(&stats) <=
                        (stats.objects_live + stats.objects_cached + stats.objects_latent +
                         (uint64_t)cache->body->capacity * (cache->body->free_limit + 1)) *
                            stats.object_stride * 8 / 7);
            free_aligned(sizes[i]);
        }
    }
}

/* Aligned classes give up no object for colors, and their slabs have a number of pages that leaves
 * little over. Larger pages leave more over, because fewer numbers of pages are possible. */
static void aligned_classes_are_dense(void **state)
{
    for (size_t alignment = 128; alignment <= 4096; alignment *= 2) {
        for (size_t size = alignment; size <= OBJECT_SIZE_MAX; size += alignment) {
            size_t part = os_page_size == OS_PAGE_SIZE ? 100 : size <= MEDIUM_MAX ? 28 : 16;
            bool failed = false;
            struct prudence_cache *cache = size_class_cache(size, alignment, &failed);

            assert_non_null(cache);
            assert_int_equal(cache->body->stride % alignment, 0);
            assert_int_equal(cache->body->capacity, cache->body->slab_bytes / cache->body->stride);
            assert_true(cache->body->slab_bytes % cache->body->stride <=
                        cache->body->slab_bytes / part);
        }
    }
}

static void aligned_classes_are_dense_on_larger_pages(void **state)
{
    static const char *const options[] = {"page_size=16K", "page_size=64K"};

    for (unsigned i = 0; i < 2; i++) {
        struct child_result result;

        child_again("dense", options[i], &result);
        if (!child_exited_with(&result, 0))
            print_error("%s: %s\n", options[i], result.output);
        assert_true(child_exited_with(&result, 0));
    }
}

/* Alignments share classes with plain sizes, so there are few additional caches. */
static void classes_are_shared(void **state)
{
    bool failed = false;

    assert_ptr_equal(size_class_cache(544, 64, &failed), size_class_cache(544, 1, &failed));
    assert_ptr_equal(size_class_cache(544, 32, &failed), size_class_cache(544, 1, &failed));
    assert_ptr_equal(size_class_cache(4160, 64, &failed), size_class_cache(4160, 1, &failed));
    assert_ptr_equal(size_class_cache(64, 64, &failed), size_class_cache(64, 1, &failed));
    /* Not the class of size 100: a sized free would check there. */
    assert_ptr_not_equal(size_class_cache(100, 64, &failed), size_class_cache(128, 1, &failed));
    assert_ptr_equal(size_class_cache(100, 64, &failed), size_class_cache(128, 128, &failed));
    /* Slabs of plain classes begin with a color of 64 bytes. */
    assert_ptr_not_equal(size_class_cache(1152, 128, &failed), size_class_cache(1152, 1, &failed));
    assert_ptr_equal(size_class_cache(1088, 128, &failed), size_class_cache(1152, 128, &failed));
    assert_false(failed);
}

static void one_class_after_the_other(void **state)
{
    for (size_t alignment = 32; alignment <= 4096; alignment *= 2) {
        size_t last = 0;

        for (size_t size = 1; size <= OBJECT_SIZE_MAX; size++) {
            bool failed = false;
            struct prudence_cache *cache = size_class_cache(size, alignment, &failed);

            assert_non_null(cache);
            assert_true(cache->object_size >= size && cache->object_size >= last);
            assert_int_equal(cache->object_size % alignment, 0);
            last = cache->object_size;
        }
        assert_int_equal(last, OBJECT_SIZE_MAX);
    }
}

/* A sized operator delete searches for the class of the size. The requested size is never
 * refused. */
static void sizes_of_frees(void **state)
{
    for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
        for (size_t size = 1; size <= 9000; size += 1 + size / 20) {
            void *object = prudence_aligned_alloc(alignment, size);

            malloc_require_size(slab_of(object), object, size, "a test");
            prudence_free_sized(object, size);
        }
    }
}

/* Reallocates in place while the size fits. A moved object needs no alignment any more. */
static void realloc_keeps_the_place(void **state)
{
    for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
        for (unsigned i = 0; i < SIZES; i++) {
            char *object = prudence_aligned_alloc(alignment, sizes[i]);
            size_t usable = prudence_usable_size(object), least = max_size(sizes[i], usable / 2);

            fill_pattern(object, sizes[i]);
            assert_ptr_equal(prudence_realloc(object, usable), object);
            assert_ptr_equal(prudence_realloc(object, least), object);
            assert_true(has_pattern(object, sizes[i]));
            prudence_free(object);
        }
    }
}

/* With an argument, runs only the case for larger pages. */
int main(int count, char **arguments)
{
    const struct CMUnitTest dense[] = {cmocka_unit_test(aligned_classes_are_dense)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_take_little),
        cmocka_unit_test(slabs_are_full),
        cmocka_unit_test(aligned_classes_are_dense),
        cmocka_unit_test(aligned_classes_are_dense_on_larger_pages),
        cmocka_unit_test(classes_are_shared),
        cmocka_unit_test(one_class_after_the_other),
        cmocka_unit_test(sizes_of_frees),
        cmocka_unit_test(realloc_keeps_the_place),
    };

    pin_thread();
    if (count > 1)
        return cmocka_run_group_tests(dense, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
