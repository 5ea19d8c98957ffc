/* SPDX-License-Identifier: MIT */
/*
 * Rule 1: a deferred object keeps every byte until its grace period is over, wherever the object
 * waits: in a latent cache, in a latent slab, between the two, and under memory pressure.
 *
 * ctest: inlined-too
 * ctest: not-with thread (one thread)
 */
#include "slab/latent_cache.h"
#include "slab/preflush.h"
#include "support/slab_test.h"

#define SIZE  96
#define COUNT 400
#define ROOM  32

static void *objects[COUNT];

static void expect_patterns(void)
{
    for (unsigned i = 0; i < COUNT; i++)
        if (!has_pattern(objects[i], SIZE))
            fail_msg("object %u was written", i);
}

static struct prudence_cache *cache_of_deferred(struct prudence_domain *domain)
{
    struct prudence_cache *cache = fixed_cache(SIZE, ROOM, domain);

    allocate_all(cache, objects, COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        fill_pattern(objects[i], SIZE);
    defer_all(cache, objects, COUNT); /* fills the latent cache, and then latent slabs */
    assert_true(latent_cache_count(cpu_here(cache)) > 0);
    assert_true(stats_of(cache).overflowed_objects >= COUNT - ROOM);
    return cache;
}

TEST(in_latent_cache_and_latent_slab)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache *cache = cache_of_deferred(domain);
    void *others[COUNT];

    expect_patterns();
    allocate_all(cache, others, COUNT); /* misses, refills and grows around them */
    for (unsigned i = 0; i < COUNT; i++)
        memset(others[i], 0, SIZE);
    free_all(cache, others, COUNT);
    expect_patterns();
    prudence_cache_shrink(cache);
    prudence_trim();
    expect_patterns();
    destroy_empty(cache);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(during_pre_flush)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache *cache = cache_of_deferred(domain);
    void *others[ROOM];

    allocate_all(cache, others, ROOM);
    free_all(cache, others, ROOM);
    assert_true(preflush_cpu(cache, os_cpu_current(), 1) > 0);
    expect_patterns();
    check_books(cache); /* the node receives them */
    expect_patterns();
    destroy_empty(cache);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(under_memory_pressure)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache *cache = cache_of_deferred(domain);

    assert_int_equal(prudence_option_set("wait_max", "1ms"), 0);
    memory_fail(0, UINT32_MAX);
    while (prudence_cache_alloc(cache)) /* the truly free objects */
        ;
    memory_succeed();
    assert_true(stats_of(cache).pressure_waits > 0);
    expect_patterns();
    assert_int_equal(prudence_cache_destroy(cache), EBUSY);
    expect_patterns();
}

SUITE(pin_thread())
