/* SPDX-License-Identifier: MIT */
/*
 * No failure of a call to the page source, metadata or page map may crash the allocator or damage
 * objects: the statistics add up, and in the end every slab goes back. The n-th call fails, for n =
 * 0, 1, ... until the scenario makes fewer calls; alone, with the next two, and with all that
 * follow.
 *
 * ctest: inlined-too
 * ctest: small-pages (counts on many small slabs)
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

#define COUNT 700

static void *objects[COUNT];
static unsigned held;

static void take(struct prudence_cache *cache, unsigned count)
{
    for (unsigned i = 0; i < count && held < COUNT; i++) {
        errno = 0;
        objects[held] = prudence_cache_alloc(cache);
        if (objects[held])
            fill_pattern(objects[held++], 96);
        else
            assert_int_equal(errno, ENOMEM);
    }
}

static void use(struct prudence_cache *cache)
{
    held = 0;
    take(cache, 300);
    while (held > 200)
        prudence_cache_free_deferred(cache, objects[--held]);
    prudence_manual_advance(cache->domain);
    take(cache, 300);
    while (held > 100)
        prudence_cache_free(cache, objects[--held]);
    while (held > 50)
        prudence_cache_free_deferred(cache, objects[--held]);
    prudence_cache_shrink(cache);
    take(cache, 400);
    for (unsigned i = 0; i < held; i++)
        assert_true(has_pattern(objects[i], 96));
}

/* Returns whether no call failed. */
static bool scenario(unsigned first, unsigned count)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .object_cache_bytes = 96 * 64};
    struct prudence_domain *domain;
    struct prudence_cache *cache = NULL;
    bool untouched;

    memory_fail(first, count);
    domain = prudence_domain_create("failing", PRUDENCE_DOMAIN_MANUAL, NULL);
    attr.domain = domain;
    if (domain)
        cache = prudence_cache_create("failing", 96, &attr);
    if (cache) {
        use(cache);
        assert_int_equal(stats_of(cache).objects_live, held);
        check_books(cache);
    }
    untouched = memory_calls <= first;
    if (untouched)
        assert_int_equal(held, 450);
    memory_succeed();
    if (cache) {
        free_all(cache, objects, held);
        destroy_empty(cache);
    }
    if (domain)
        assert_int_equal(prudence_domain_destroy(domain), 0);
    return untouched;
}

static void every_call(unsigned count, const char *check)
{
    struct os_pages_stats before, after;
    unsigned first = 0;

    assert_int_equal(prudence_option_set("wait_max", "100us"), 0);
    assert_int_equal(prudence_option_set("check", check), 0);
    os_pages_stats(&before);
    while (!scenario(first, count))
        first++;
    assert_true(first > 10);
    os_pages_stats(&after);
    assert_int_equal(after.used, before.used);
}

TEST(one_call_fails)
{
    every_call(1, "0");
}

TEST(three_calls_fail)
{
    every_call(3, "0");
}

TEST(all_calls_fail_from_then_on)
{
    every_call(UINT32_MAX, "0");
}

TEST(with_a_state_for_every_object)
{
    every_call(1, "1");
    every_call(UINT32_MAX, "1");
}

SUITE(pin_thread())
