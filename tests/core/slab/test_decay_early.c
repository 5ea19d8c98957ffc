/* SPDX-License-Identifier: MIT */
/*
 * Free slabs that a slab cache keeps for its own demand are available to others: when a cache
 * grows, others' free slabs go to the page source, whatever that has. Of the process 1 MiB stays,
 * and up to 4 MiB if caches take turns. Objects that a CPU keeps go as well if nothing moves while
 * others grow by 4 MiB. The test's clock stands still. A long `decay` makes the page source allow
 * many free slabs, as after regrets (os_pages_spare).
 *
 * ctest: not-with thread (one thread)
 */
#include <limits.h>

#include "slab/cpu_cache.h"
#include "slab/node_lists.h"
#include "slab/reclaim/decay.h"
#include "support/pages.h"

#define SPARE MIB /* not given to other caches */

static void *objects[OBJECTS_MAX];

static int begin(void **state)
{
    posix_clock_injected = our_clock;
    os_pages_set_decay(UINT64_C(4000000000));
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

static void use(struct prudence_cache *cache, size_t bytes)
{
    unsigned count = (unsigned)(bytes / cache->body->stride);

    allocate_all(cache, objects, count);
    free_all(cache, objects, count);
}

/* Of its own free slabs a cache keeps what the page source finds worth it. */
TEST(most_of_a_fall_goes_at_once, begin, end)
{
    struct prudence_cache *cache = fixed_cache(4096, 16, manual_domain());

    os_pages_set_decay(UINT64_C(100000000));
    use(cache, 16 * MIB);
    assert_true(slab_bytes_of(cache) <= 4 * MIB);
    assert_true(slab_bytes_of(cache) >= 2 * MIB);
    destroy_empty(cache);
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

TEST(a_little_stays, begin, end)
{
    struct prudence_cache *first = cache_with_free(4096, SPARE / 4 * 3), *second;
    uint64_t before = slab_bytes_of(first);

    second = cache_with_free(2048, 8 * MIB);
    assert_int_equal(slab_bytes_of(first), before);
    destroy_empty(first);
    destroy_empty(second);
}

TEST(pages_that_are_there_are_no_reason, begin, end)
{
    struct prudence_cache *first = cache_with_free(4096, 16 * MIB), *second;
    char *block = os_pages_alloc(8 * MIB, OS_PAGE_SIZE, 0, NULL);

    assert_non_null(block);
    os_pages_free(block, 8 * MIB);
    assert_int_equal(pages().retained, 8 * MIB);
    second = cache_with_free(2048, 6 * MIB);
    assert_true(slab_bytes_of(first) <= 10 * MIB);
    destroy_empty(first);
    destroy_empty(second);
}

static uint64_t grows_of(struct prudence_cache *cache)
{
    uint64_t grows = 0;

    for (unsigned i = 0; i < os_node_count(); i++)
        grows += cache->body->nodes[i].counts.grows;
    return grows;
}

/* Two caches that take turns do not remake the slabs that 4 MiB hold. */
TEST(what_is_regretted_is_kept, begin, end)
{
    struct prudence_cache *caches[2] = {fixed_cache(4096, 16, manual_domain()),
                                        fixed_cache(2048, 16, manual_domain())};
    uint64_t before = 0, grows;

    for (unsigned turn = 0; turn < 24; turn++) {
        if (turn == 22)
            before = grows_of(caches[0]) + grows_of(caches[1]);
        use(caches[turn % 2], 6 * MIB);
    }
    grows = grows_of(caches[0]) + grows_of(caches[1]) - before;
    assert_true(grows <= 100); /* 144 slabs are used in two turns */
    destroy_empty(caches[0]);
    destroy_empty(caches[1]);
}

/* What many caches in turn keep would be wanted again only when it is gone anyway. */
TEST(many_in_turn_keep_little, begin, end)
{
    struct prudence_cache *caches[8];

    for (unsigned i = 0; i < 8; i++)
        caches[i] = fixed_cache(1024 + 256 * i, 16, manual_domain());
    for (unsigned turn = 0; turn < 40; turn++) {
        use(caches[turn % 8], 6 * MIB);
        assert_true(turn < 16 || node_lists_free_bytes() <= 6 * MIB + SPARE + MIB / 4);
    }
    for (unsigned i = 0; i < 8; i++)
        destroy_empty(caches[i]);
}

/* Returns how many of 512 objects of one cache stay on the CPU while another grows by 12 MiB. After
 * each MiB, `wanted` objects are allocated and freed. */
static unsigned stay(unsigned wanted)
{
    struct prudence_cache *cache = fixed_cache(512, 512, manual_domain());
    struct prudence_cache *other = fixed_cache(2048, 16, manual_domain());
    static void *others[12 * MIB / 2048];
    unsigned stayed;
    uint64_t rounds;

    while (decay_some(UINT_MAX, UINT_MAX))
        ;
    rounds = decay_rounds();
    allocate_all(cache, objects, 512);
    free_all(cache, objects, 512);
    for (unsigned i = 0; i < 12; i++) {
        allocate_all(other, others + i * MIB / 2048, MIB / 2048);
        allocate_all(cache, objects, wanted);
        free_all(cache, objects, wanted);
    }
    stayed = stack_count(&cpu_here(cache)->line);
    assert_int_equal(decay_rounds(), rounds); /* early ones are none of them */
    free_all(other, others, 12 * MIB / 2048);
    destroy_empty(cache);
    destroy_empty(other);
    return stayed;
}

TEST(objects_in_no_use_go, begin, end)
{
    assert_int_equal(stay(0), 0);
    assert_true(stay(500) >= 500);
}

SUITE(pin_thread())
