/* SPDX-License-Identifier: MIT */
/*
 * No failure of a call to the page source, metadata or page map may crash the allocator or damage
 * objects: the statistics add up, and in the end every slab goes back (support/every_call.h). A
 * call fails alone, with the next two, and with all that follow.
 *
 * ctest: inlined-too
 * ctest: small-pages (counts on many small slabs)
 * ctest: not-with thread (one thread)
 */
#include "support/every_call.h"

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

static void cache_lives(void)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .object_cache_bytes = 96 * 64};
    struct os_pages_stats before, after;
    struct prudence_domain *domain;
    struct prudence_cache *cache = NULL;

    os_pages_stats(&before);
    failures_begin();
    domain = prudence_domain_create("failing", PRUDENCE_DOMAIN_MANUAL, NULL);
    attr.domain = domain;
    if (domain)
        cache = prudence_cache_create("failing", 96, &attr);
    if (cache) {
        use(cache);
        assert_int_equal(stats_of(cache).objects_live, held);
        check_books(cache);
    }
    failures_end();
    if (failing.calls <= failing.first)
        assert_int_equal(held, 450);
    if (cache) {
        free_all(cache, objects, held);
        destroy_empty(cache);
    }
    if (domain)
        assert_int_equal(prudence_domain_destroy(domain), 0);
    os_pages_stats(&after);
    assert_int_equal(after.used, before.used);
}

static const char *const plain[] = {"wait_max", "100us", NULL};
static const char *const checked[] = {"wait_max", "100us", "check", "1", NULL};

static const struct failure_row rows[] = {
    {"a cache", cache_lives, plain, 10, false},
    {"a cache with a state for every object", cache_lives, checked, 10, false},
};

TEST(no_failure_crashes_or_loses_memory)
{
    every_call_of(rows, 2);
    every_call(&rows[0], 3);
}

SUITE(pin_thread())
