/* SPDX-License-Identifier: MIT */
/*
 * A thread can take a page fault inside a sequence of its CPU while another thread takes the CPU's
 * caches and replaces or drops their arrays. The kernel serves the fault before it restarts the
 * sequence. Therefore arrays stay mapped, and only their memory goes back.
 *
 * ctest: not-with thread (one thread)
 */
#include <sys/mman.h>
#include <unistd.h>

#include "support/slab_test.h"

/* Returns this CPU's arrays after ten rounds of `deferrals` deferrals with a grace period each.
 * These arrays are too large for the lists of small blocks. */
static void *arrays_for(struct prudence_cache *cache, unsigned deferrals, size_t *bytes)
{
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < deferrals; i++)
            prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
        prudence_manual_advance(cache->domain);
    }
    *bytes = cpu_cache_array_bytes(cache, cpu_here(cache)->size);
    assert_true(*bytes > OS_META_LOCK_FREE);
    return cpu_here(cache)->line.stack - 1; /* the slot that is always NULL */
}

/* Checks that the kernel pages after the first, as far as the arrays cover them, are not
 * resident. */
static void assert_mapped(void *arrays, size_t bytes)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE), within = (uintptr_t)arrays % size;
    unsigned char resident[256];

    assert_true((within + bytes) / size < sizeof resident);
    assert_int_equal(mincore((char *)arrays - within, within + bytes, resident), 0);
    for (size_t page = 1; page < (within + bytes) / size; page++)
        assert_false(resident[page] & 1);
}

TEST(when_larger_ones_replace_them)
{
    struct prudence_cache *cache = fixed_cache(64, 0, manual_domain());
    size_t bytes, later_bytes;
    void *arrays = arrays_for(cache, 1000, &bytes);

    assert_ptr_not_equal(arrays_for(cache, 5000, &later_bytes), arrays);
    assert_true(later_bytes > bytes);
    assert_mapped(arrays, bytes);
    destroy_empty(cache);
}

TEST(when_a_trim_drops_them)
{
    struct prudence_cache *cache = fixed_cache(64, 0, manual_domain());
    size_t bytes;
    void *arrays = arrays_for(cache, 1000, &bytes);

    prudence_trim(); /* closes the open batch */
    prudence_manual_advance(cache->domain);
    prudence_trim(); /* empties the caches */
    prudence_trim(); /* finds them empty */
    assert_null(cpu_here(cache)->line.stack);
    assert_mapped(arrays, bytes);
    destroy_empty(cache);
}

TEST(when_the_cache_is_destroyed)
{
    struct prudence_cache *cache = fixed_cache(64, 0, manual_domain());
    size_t bytes;
    void *arrays = arrays_for(cache, 1000, &bytes);

    destroy_empty(cache);
    assert_mapped(arrays, bytes);
}

/* Freed arrays no longer count as metadata, and are zero when they are used again. */
TEST(the_next_cache_gets_them)
{
    size_t bytes = 6 * OS_PAGE_SIZE + 64;
    unsigned char *arrays = os_arrays_alloc(bytes), *again;
    struct os_pages_stats before, after;

    os_pages_stats(&before);
    memset(arrays, 0xaa, bytes);
    os_arrays_free(arrays, bytes);
    os_pages_stats(&after);
    assert_true(before.metadata >= after.metadata + bytes);
    again = os_arrays_alloc(8 * OS_PAGE_SIZE);
    assert_ptr_equal(again, arrays);
    for (size_t i = 0; i < 8 * OS_PAGE_SIZE; i++)
        assert_int_equal(again[i], 0);
    os_arrays_free(again, 8 * OS_PAGE_SIZE);
}

/* With larger pages, arrays of a few KiB share a page. They must not overlap, and each must be zero
 * when reused. */
TEST(those_that_share_a_page_are_apart)
{
    unsigned char *arrays[20];
    size_t bytes = 2 * OS_PAGE_SIZE + 64; /* room for four pages of 4 KiB */

    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 20; i++) {
            arrays[i] = os_arrays_alloc(bytes);
            assert_non_null(arrays[i]);
            for (size_t at = 0; at < bytes; at++)
                assert_int_equal(arrays[i][at], 0);
            memset(arrays[i], (int)(i + 1), bytes);
        }
        for (unsigned i = 0; i < 20; i++)
            for (size_t at = 0; at < bytes; at++)
                assert_int_equal(arrays[i][at], i + 1);
        for (unsigned i = 0; i < 20; i++)
            os_arrays_free(arrays[i], bytes);
    }
}

SUITE(pin_thread())
