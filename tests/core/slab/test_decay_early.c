/* SPDX-License-Identifier: MIT */
/*
 * Free slabs that a slab cache keeps for its own demand are available to others: a cache that would
 * grow by pages the process does not have yet takes them instead. The last 4 MiB of the process
 * stay, and the page source is asked first. The test's clock stands still.
 *
 * ctest: not-with thread (one thread)
 */
#include "slab/reclaim/decay.h"
#include "support/pages.h"

#define SPARE (4 * MIB) /* not given to other caches */

static void *objects[OBJECTS_MAX];

static int begin(void **state)
{
    posix_clock_injected = our_clock;
    os_pages_set_retain(0);
    os_pages_trim();
    decay_enabled = true;
    now += UINT64_C(1000000000);
    return 0;
}

static int end(void **state)
{
    decay_enabled = false;
    return 0;
}

static uint64_t slab_bytes_of(struct prudence_cache *cache)
{
    uint64_t slabs = 0;

    for (unsigned i = 0; i < os_node_count(); i++)
        slabs += cache->body->nodes[i].slabs;
    return slabs * cache->body->slab_bytes;
}

/* Makes a cache that had `bytes` bytes in use and keeps the slabs. */
static struct prudence_cache *cache_with_free(size_t size, size_t bytes)
{
    struct prudence_cache *cache = fixed_cache(size, 16, manual_domain());
    unsigned count = (unsigned)(bytes / size);

    allocate_all(cache, objects, count);
    free_all(cache, objects, count);
    assert_true(slab_bytes_of(cache) >= bytes / 16 * 15);
    return cache;
}

TEST(what_one_keeps_another_gets, begin, end)
{
    struct prudence_cache *first = cache_with_free(4096, 16 * MIB), *second;
    uint64_t before = slab_bytes_of(first);

    second = cache_with_free(2048, 12 * MIB);
    assert_true(slab_bytes_of(first) <= SPARE + MIB);
    assert_true(pages().used + pages().retained <= before + 2 * MIB);
    destroy_empty(first);
    destroy_empty(cache_with_free(1024, 8 * MIB)); /* the node's list still works */
    destroy_empty(second);
}

static void keeps_all_while_another_grows(struct prudence_cache *first, unsigned objects_of_another)
{
    struct prudence_cache *second = fixed_cache(2048, 16, manual_domain());
    uint64_t before = slab_bytes_of(first);

    allocate_all(second, objects, objects_of_another);
    assert_int_equal(slab_bytes_of(first), before);
    free_all(second, objects, objects_of_another);
    destroy_empty(first);
    destroy_empty(second);
}

TEST(a_little_stays, begin, end)
{
    struct prudence_cache *first = cache_with_free(4096, 3 * MIB);

    keeps_all_while_another_grows(first, 4000);
}

TEST(pages_that_are_there_come_first, begin, end)
{
    struct prudence_cache *first = cache_with_free(4096, 16 * MIB);
    char *block = os_pages_alloc(8 * MIB, OS_PAGE_SIZE, 0, NULL);

    assert_non_null(block);
    os_pages_free(block, 8 * MIB);
    assert_int_equal(pages().retained, 8 * MIB);
    keeps_all_while_another_grows(first, 3500);
}

SUITE(pin_thread())
