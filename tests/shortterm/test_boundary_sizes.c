/* SPDX-License-Identifier: MIT */
/*
 * Tries every size that callers choose, at every boundary (support/boundary_sizes.h): a call
 * returns memory of the full size, or fails with the right errno and changes nothing. Covers all
 * functions of the public interface that take a size, a count or an alignment;
 * preload/test_boundary_sizes.c covers malloc() and its family.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include <prudence/scm.h>

#include "support/boundary_sizes.h"
#include "support/slab_test.h"

#include "base/checked.h"

/* Sizes between these are skipped, because writing or keeping every byte would take long. */
static size_t most = SIZE_MAX, hopeless = (size_t)1 << 44;

static bool is_tried(size_t size)
{
    return size <= most || size >= hopeless;
}

/* Checks that the caller owns the block from the first byte to the last, and writes there. */
static void use(char *block, size_t size)
{
    assert_true(prudence_usable_size(block) >= size);
    assert_ptr_equal(os_page_owner(block), os_page_owner(block + (size ? size - 1 : 0)));
    for (size_t at = 0; at < size; at += BOUNDARY_MIB)
        block[at] = 'x';
    if (size)
        block[size - 1] = 'x';
}

/* Returns whether there is a block, after checking that this is right. */
static bool is_right(char *block, size_t size)
{
    if (!block) {
        assert_int_equal(errno, ENOMEM);
        assert_true(size > BOUNDARY_SURE);
        return false;
    }
    assert_true(size < BOUNDARY_NEVER);
    use(block, size);
    return true;
}

static void try_alloc(void *(*alloc)(size_t size), size_t size)
{
    char *block;

    if (!is_tried(size))
        return;
    errno = 0;
    block = alloc(size);
    if (is_right(block, size))
        prudence_free(block);
}

TEST(allocating)
{
    for (unsigned i = 0; i < BOUNDARY_SIZES; i++) {
        try_alloc(prudence_malloc, boundary_size(i));
        try_alloc(scm_malloc, boundary_size(i));
    }
}

static void try_calloc(void *(*alloc)(size_t count, size_t size), size_t count, size_t size)
{
    size_t bytes;
    char *block;

    if (!checked_multiply(count, size, &bytes))
        bytes = SIZE_MAX;
    if (!is_tried(bytes) || (bytes > BOUNDARY_SURE && bytes < hopeless))
        return;
    errno = 0;
    block = alloc(count, size);
    if (!is_right(block, bytes))
        return;
    for (size_t at = 1; at < bytes; at = 2 * at + 1) /* where use() wrote nothing */
        assert_true(block[at] == 0 || at % BOUNDARY_MIB == 0 || at == bytes - 1);
    prudence_free(block);
}

TEST(allocating_products)
{
    for (unsigned i = 0; i < BOUNDARY_FACTORS; i++) {
        for (unsigned k = 0; k < BOUNDARY_FACTORS; k++) {
            try_calloc(prudence_calloc, boundary_factors[i], boundary_factors[k]);
            try_calloc(scm_calloc, boundary_factors[i], boundary_factors[k]);
        }
    }
    for (unsigned i = 0; i < BOUNDARY_SIZES; i++) {
        try_calloc(prudence_calloc, boundary_size(i), 1);
        try_calloc(prudence_calloc, 1, boundary_size(i));
        try_calloc(prudence_calloc, boundary_size(i), 3);
    }
}

static void try_aligned(size_t alignment, size_t size)
{
    char *block;

    if (!is_tried(size))
        return;
    errno = 0;
    block = prudence_aligned_alloc(alignment, size);
    if (!is_power_of_two(alignment)) {
        assert_null(block);
        assert_int_equal(errno, EINVAL);
        return;
    }
    if (!block && alignment > BOUNDARY_SURE) {
        assert_int_equal(errno, ENOMEM);
        return;
    }
    if (!is_right(block, size))
        return;
    assert_true((uintptr_t)block % alignment == 0);
    (size == 1 ? prudence_free_deferred : prudence_free)(block); /* one of each alignment */
}

TEST(allocating_aligned)
{
    static const size_t sizes[] = {0, 1, 100, 4097, 40000, PTRDIFF_MAX, SIZE_MAX - 4095, SIZE_MAX};
    static const size_t alignments[] = {
        1, 16, 48, 64, 4096, 8192, (size_t)2 << 20, (size_t)1 << 62, (size_t)1 << 63, SIZE_MAX};

    for (unsigned i = 0; i < BOUNDARY_ALIGNMENTS; i++)
        for (unsigned k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
            try_aligned(boundary_alignment(i), sizes[k]);
    for (unsigned i = 0; i < BOUNDARY_SIZES; i++)
        for (unsigned k = 0; k < sizeof alignments / sizeof alignments[0]; k++)
            try_aligned(alignments[k], boundary_size(i));
}

/* Without a new block, the old one must be intact; otherwise the new block has the old contents. */
static void try_realloc(void *(*reallocate)(void *object, size_t size), size_t old_size,
                        size_t size)
{
    char *old = is_tried(size) ? prudence_malloc(old_size) : NULL, copy[64], *block;
    size_t length = min_size(sizeof copy, old_size), usable = prudence_usable_size(old);

    if (!old)
        return;
    fill_pattern(old, old_size);
    memcpy(copy, old, length);
    errno = 0;
    block = reallocate(old, size);
    if (!block) {
        assert_int_equal(errno, ENOMEM);
        assert_true(size > BOUNDARY_SURE);
        assert_int_equal(prudence_usable_size(old), usable);
        assert_true(has_pattern(old, old_size));
        prudence_free(old);
        return;
    }
    assert_memory_equal(block, copy, min_size(length, size));
    is_right(block, size);
    prudence_free(block);
}

static void *realloc_aligned(void *object, size_t size)
{
    return prudence_aligned_realloc(object, 256, size);
}

static void *realloc_of_nothing(size_t size)
{
    return prudence_realloc(NULL, size);
}

TEST(reallocating)
{
    static const size_t old_sizes[] = {1, 100, 32768, 65536, 3 * BOUNDARY_MIB};
    void *small[64];

    for (unsigned i = 0; i < 64; i++) {
        small[i] = prudence_malloc(16);
        fill_pattern(small[i], 16);
    }
    for (unsigned k = 0; k < sizeof old_sizes / sizeof old_sizes[0]; k++) {
        for (unsigned i = 0; i < BOUNDARY_SIZES; i++) {
            try_realloc(prudence_realloc, old_sizes[k], boundary_size(i));
            try_realloc(scm_realloc, old_sizes[k], boundary_size(i));
        }
    }
    for (unsigned i = 0; i < BOUNDARY_SIZES; i++) {
        try_alloc(realloc_of_nothing, boundary_size(i));
        try_realloc(realloc_aligned, 100, boundary_size(i));
    }
    for (unsigned i = 0; i < 64; i++) { /* no neighbour was overwritten */
        assert_true(has_pattern(small[i], 16));
        prudence_free(small[i]);
    }
}

/* A block with dates stays where it is, whether or not the reallocation succeeds. */
TEST(reallocating_short_term)
{
    assert_int_equal(scm_register_thread(), 0);
    for (unsigned i = 0; i < BOUNDARY_SIZES; i++) {
        char *old = prudence_malloc(65536), *block;

        fill_pattern(old, 65536);
        assert_int_equal(scm_refresh(old, 0), 0);
        errno = 0;
        block = scm_realloc(old, boundary_size(i));
        assert_true(has_pattern(old, 65536));
        if (block != old && is_right(block, boundary_size(i)))
            prudence_free(block);
        scm_tick();
        scm_tick();
    }
    assert_int_equal(scm_unregister_thread(), 0);
}

static void try_cache(size_t size, size_t alignment, size_t cache_bytes)
{
    struct prudence_cache_attr attr = {
        .size = sizeof attr, .alignment = alignment, .object_cache_bytes = cache_bytes};
    bool valid =
        size && size <= 131072 && (!alignment || (is_power_of_two(alignment) && alignment <= 4096));
    struct prudence_cache *cache;
    void *objects[5];

    errno = 0;
    cache = prudence_cache_create("boundary", size, &attr);
    if (!valid) {
        assert_null(cache);
        assert_int_equal(errno, EINVAL);
        return;
    }
    assert_non_null(cache);
    assert_int_equal(prudence_cache_alloc_bulk(cache, 5, objects), 5);
    for (unsigned i = 0; i < 5; i++) {
        use(objects[i], size);
        assert_true((uintptr_t)objects[i] % (alignment ? alignment : 1) == 0);
    }
    prudence_cache_free_bulk(cache, 5, objects);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

TEST(creating_caches)
{
    for (unsigned i = 0; i < BOUNDARY_SIZES; i++) {
        try_cache(boundary_size(i), 0, 0);
        try_cache(boundary_size(i), 4096, 0);
        try_cache(100, boundary_size(i), 0);
        try_cache(100, 0, boundary_size(i));
        try_cache(32768, 4096, boundary_size(i));
    }
    for (unsigned i = 0; i < BOUNDARY_ALIGNMENTS; i++) {
        try_cache(1, boundary_alignment(i), 0);
        try_cache(1093, boundary_alignment(i), 0);
        try_cache(32768, boundary_alignment(i), 0);
    }
}

/* A larger attribute structure with members that are not 0 is refused, and a size that none has. */
TEST(creating_caches_by_attributes_of_another_size)
{
    static union {
        struct prudence_cache_attr attr;
        unsigned char bytes[4096];
    } larger;

    memset(larger.bytes + sizeof larger.attr, 1, sizeof larger - sizeof larger.attr);
    for (unsigned i = 0; i < BOUNDARY_SIZES; i++) {
        larger.attr.size = boundary_size(i);
        errno = 0;
        assert_null(prudence_cache_create("boundary", 64, &larger.attr));
        assert_int_equal(errno, EINVAL);
    }
}

/* A bulk call serves any count as far as memory lasts, here as far as `limit` allows. */
TEST(bulk_stops_where_memory_ends)
{
    struct prudence_cache *cache = prudence_cache_create("bulk", 32768, NULL);
    static void *objects[1024];
    size_t got;

    prudence_trim();
    assert_int_equal(prudence_option_set("limit", "8M"), 0);
    errno = 0;
    got = prudence_cache_alloc_bulk(cache, SIZE_MAX, objects);
    assert_int_equal(errno, ENOMEM);
    assert_in_range(got, 64, 256);
    for (unsigned i = 0; i < got; i++)
        use(objects[i], 32768);
    prudence_cache_free_bulk(cache, got, objects);
    assert_int_equal(prudence_option_set("limit", "0"), 0);
    assert_int_equal(prudence_cache_alloc_bulk(cache, 0, NULL), 0);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

/* Extensions and periods at their boundaries are refused or accepted exactly. */
TEST(refreshing)
{
    static const unsigned extensions[] = {
        0,         1,       4094,           4095,           4096,
        1048576,   1048577, UINT32_MAX / 2, UINT32_MAX - 2, UINT32_MAX - 1,
        UINT32_MAX};
    static const unsigned periods[] = {0, 1, 86400000, 86400001, UINT32_MAX - 1, UINT32_MAX};
    char *object = prudence_malloc(100);

    assert_int_equal(scm_register_thread(), 0);
    for (unsigned i = 0; i < sizeof extensions / sizeof extensions[0]; i++) {
        int expected = extensions[i] <= 4095 ? 0 : ERANGE;

        assert_int_equal(scm_refresh(object, extensions[i]), expected);
        assert_int_equal(scm_global_refresh(object, extensions[i]), expected);
    }
    for (unsigned i = 0; i < sizeof periods / sizeof periods[0]; i++) {
        struct scm_clock *clock = scm_clock_create_realtime(periods[i]);
        bool valid = periods[i] && periods[i] <= 86400000;

        assert_true(valid == (clock != NULL));
        if (!clock)
            continue;
        for (unsigned k = 0; k < sizeof extensions / sizeof extensions[0]; k++) {
            uint64_t units = ((uint64_t)extensions[k] + periods[i] - 1) / periods[i];

            assert_int_equal(scm_clock_refresh(clock, object, extensions[k]),
                             units <= 4095 ? 0 : ERANGE);
        }
        assert_int_equal(scm_clock_destroy(clock), 0);
    }
    memset(object, 1, 100); /* the local date of 4095 ticks has not ended */
    assert_int_equal(scm_unregister_thread(), 0);
}

/* Numbers of bytes or of time that overflow are refused, and the largest valid ones do no harm. */
TEST(setting_options)
{
    static const char *const names[] = {"limit",    "latent_limit",  "call_limit", "retain",
                                        "wait_max", "stall_timeout", "decay"};
    static const char *const too_large[] = {
        "9223372036854775808", "18446744073709551615", "18446744073709551616",   "17179869184G",
        "8589934592G",         "9223372036854775807s", "99999999999999999999999"};
    static const char *const defaults[] = {"0", "32M", "64M", "2M", "500ms", "10s", "100ms"};

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        bool is_time = i >= 4;

        for (unsigned k = 0; k < sizeof too_large / sizeof too_large[0]; k++)
            assert_int_equal(prudence_option_set(names[i], too_large[k]), EINVAL);
        assert_int_equal(
            prudence_option_set(names[i], is_time ? "9223372036854775us" : "9223372036854775807"),
            0);
        for (size_t size = 1; size <= 2 * BOUNDARY_MIB; size *= 4) {
            prudence_free(prudence_malloc(size));
            prudence_free_deferred(prudence_malloc(size));
        }
        prudence_synchronize();
        prudence_trim();
        assert_int_equal(prudence_option_set(names[i], defaults[i]), 0);
    }
}

/* --------------------------------------------------------------------------- checked arithmetic */

TEST(checked_arithmetic)
{
    size_t result;

    assert_true(checked_add(SIZE_MAX - 1, 1, &result) && result == SIZE_MAX);
    assert_false(checked_add(SIZE_MAX, 1, &result));
    assert_true(checked_multiply(SIZE_MAX, 1, &result) && result == SIZE_MAX);
    assert_true(checked_multiply(0, SIZE_MAX, &result) && result == 0);
    assert_false(checked_multiply(SIZE_MAX / 2 + 1, 2, &result));
    assert_true(checked_round_up(SIZE_MAX - 4095, 4096, &result) && result == SIZE_MAX - 4095);
    assert_false(checked_round_up(SIZE_MAX - 4094, 4096, &result));
    assert_true(checked_round_up(1, 4096, &result) && result == 4096);
    assert_true(checked_round_up(0, 4096, &result) && result == 0);
    assert_true(checked_round_up(SIZE_MAX, 1, &result) && result == SIZE_MAX);
}

/* ------------------------------------------------------------------------- with options that find
 * bugs */

static void all_of_it(void *options)
{
    for (const char *const *option = options; *option; option += 2)
        if (prudence_option_set(option[0], option[1]))
            abort();
    most = 3 * BOUNDARY_MIB;
    allocating(NULL);
    allocating_products(NULL);
    allocating_aligned(NULL);
    reallocating(NULL);
}

/* First, because it sets start options. */
TEST_FIRST(the_same_on_watched_paths)
{
    static const char *const options[][5] = {{"check", "1"},
                                             {"guard", "3"},
                                             {"guard_empty", "1", "guard", "3"},
                                             {"quarantine", "1M"},
                                             {"zero_on_free", "1"}};

    for (unsigned i = 0; i < sizeof options / sizeof options[0]; i++)
        expect_survival(all_of_it((void *)options[i]), "");
}

SUITE()
