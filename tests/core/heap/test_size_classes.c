/* SPDX-License-Identifier: MIT */
/*
 * Size classes: every size has one that holds it, in order. Above 128 bytes, at most 12.5 % of an
 * object is unused; below, at most 15 bytes.
 *
 * ctest: not-with thread (one thread)
 */
#include "heap/size_class.h"
#include "support/slab_test.h"

TEST(every_size_fits_its_class)
{
    unsigned last = 0;

    for (size_t size = 1; size <= OBJECT_SIZE_MAX; size++) {
        unsigned class = size_class_of(size);
        bool failed = false;
        struct prudence_cache *cache = size_class_cache(size, 1, &failed);
        size_t waste;

        assert_non_null(cache);
        assert_false(failed);
        assert_ptr_equal(cache, size_classes[class]);
        assert_ptr_equal(cache, size_class_ready(size));
        if (os_percpu_rseq)
            assert_ptr_equal(cache, size_class_open(size_place(size)));
        assert_ptr_equal(size_tables.counted[size_place(size)], os_percpu_owned_lines);
        assert_true(class == last || class == last + 1);
        assert_true(cache->object_size >= size);
        assert_true(cache->body->stride - cache->object_size <= CACHE_LINE);
        waste = cache->object_size - size;
        assert_true(size <= 128 ? waste < 16 : 8 * waste <= cache->object_size);
        last = class;
    }
    assert_int_equal(last, CLASSES - 1);
}

TEST(a_class_ends_at_its_size)
{
    for (unsigned class = 0; class < CLASSES; class ++) {
        size_t size = size_classes[class]->object_size;

        assert_int_equal(size_class_of(size), class);
        assert_int_equal(size_class_of(size + 1), class + 1);
    }
    assert_int_equal(size_classes[CLASSES - 1]->object_size, OBJECT_SIZE_MAX);
}

/* A few large objects seldom fill a power of two of pages. */
TEST(slabs_leave_little_over)
{
    for (unsigned class = 0; class < CLASSES && os_page_size == OS_PAGE_SIZE; class ++) {
        const struct prudence_cache *cache = size_classes[class];
        size_t left = cache->body->slab_bytes - cache->body->capacity * cache->body->stride;

        assert_true(left <= cache->body->slab_bytes / 32);
        assert_true(cache->body->slab_bytes % os_page_size == 0);
        assert_true(cache->body->slab_bytes <=
                    max_size((size_t)128 << 10, 22 * cache->body->stride));
    }
}

/* A slab's metadata takes 200 bytes and more, which is much compared with 4 KiB of small
 * objects. */
TEST(slabs_of_small_classes_are_roomy)
{
    struct prudence_cache *named = prudence_cache_create("named", 64, NULL);

    assert_non_null(named);
    for (unsigned class = 0; class < CLASSES; class ++) {
        const struct prudence_cache *cache = size_classes[class];

        assert_true(cache->body->slab_bytes >= (size_t)16 << 10);
        if (cache->body->stride <= 64 && os_page_size == OS_PAGE_SIZE)
            assert_true(cache->body->free_limit <=
                        3); /* as many bytes as of slabs of one page or two */
    }
    assert_true(named->body->slab_bytes == max_size(8192, os_page_size));
    prudence_cache_destroy(named);
}

/* Buffers of 64 KB are common. A node's lock for each of them cost a hundred times as much. */
TEST(large_classes_have_caches_of_cpus)
{
    uint64_t refills = 0;

    for (unsigned i = 0; i < 100; i++) {
        void *object = prudence_malloc(60000);
        struct prudence_cache_stats stats;

        assert_non_null(object);
        prudence_cache_stats(slab_of(object)->cache, &stats);
        assert_true(i == 0 || stats.refills == refills);
        refills = stats.refills;
        prudence_free(object);
    }
}

/* One object that lives keeps a slab's pages. */
TEST(slabs_of_large_classes_have_few_objects)
{
    for (unsigned class = size_class_of(MEDIUM_MAX + 1); class < CLASSES; class ++) {
        const struct cache_body *body = size_classes[class]->body;

        assert_in_range(body->capacity, 4, 8);
        assert_true(body->slab_bytes <= (size_t)576 << 10);
    }
}

TEST(other_sizes_have_none)
{
    bool failed = false;

    assert_null(size_class_ready(OBJECT_SIZE_MAX + 1));
    assert_null(size_class_ready(SIZE_MAX));
    assert_null(size_class_open(size_place(OBJECT_SIZE_MAX + 1)));
    assert_null(size_class_open(size_place(SIZE_MAX)));
    assert_null(size_class_cache(OBJECT_SIZE_MAX + 1, 1, &failed));
    assert_null(size_class_cache(SIZE_MAX, 1, &failed));
    assert_null(size_class_cache(100, 8192, &failed));
    assert_false(failed);
}

TEST(usable_size_is_the_class)
{
    for (size_t size = 0; size <= OBJECT_SIZE_MAX; size += 1 + size / 64) {
        char *object = prudence_malloc(size);

        assert_non_null(object);
        assert_int_equal(prudence_usable_size(object),
                         size_classes[size_class_of(max_size(size, 1))]->object_size);
        memset(object, 1, prudence_usable_size(object));
        prudence_free_sized(object, size);
    }
    assert_int_equal(prudence_usable_size(NULL), 0);
}

SUITE(pin_thread())
