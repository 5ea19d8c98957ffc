/* SPDX-License-Identifier: MIT */
/*
 * Rule 9 and Waiting: the wait before an allocation fails ends at wait_max. The allocation then
 * returns NULL with ENOMEM, and the cache stays usable. Without latent objects, or inside a
 * read-side critical section, there is no wait.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

#define WAIT_MS UINT64_C(30)

static void *objects[OBJECTS_MAX];

/* Uses up all memory. Returns the number of live objects. */
static unsigned exhaust(struct prudence_cache *cache)
{
    unsigned held = 0;

    allocate_all(cache, objects, 100);
    memory_fail(0, UINT32_MAX);
    for (held = 100; (objects[held] = prudence_cache_alloc(cache)); held++)
        ;
    return held;
}

static uint64_t failing_allocation_ms(struct prudence_cache *cache)
{
    uint64_t began = os_clock_ns();

    errno = 0;
    assert_null(prudence_cache_alloc(cache));
    assert_int_equal(errno, ENOMEM);
    return (os_clock_ns() - began) / 1000000;
}

TEST(at_wait_max)
{
    struct prudence_cache *cache = fixed_cache(512, 16, manual_domain());
    unsigned held = exhaust(cache);
    uint64_t ms;

    prudence_cache_free_deferred(cache, objects[--held]);
    ms = failing_allocation_ms(cache);
    assert_true(ms >= WAIT_MS);
    assert_int_equal(stats_of(cache).pressure_waits, 1);
    assert_int_equal(stats_of(cache).objects_live, held);
    assert_int_equal(stats_of(cache).objects_latent, 1);
    memory_succeed();
    objects[held++] = prudence_cache_alloc(cache);
    assert_non_null(objects[held - 1]);
    check_books(cache);
    free_all(cache, objects, held);
    destroy_empty(cache);
}

TEST(without_latent_objects_at_once)
{
    struct prudence_cache *cache = fixed_cache(512, 16, manual_domain());
    unsigned held = exhaust(cache);

    failing_allocation_ms(cache);
    assert_int_equal(stats_of(cache).pressure_waits, 0);
    memory_succeed();
    free_all(cache, objects, held);
    destroy_empty(cache);
}

TEST(inside_a_section_at_once)
{
    struct prudence_cache *cache = fixed_cache(512, 16, manual_domain());
    unsigned held;

    prudence_read_lock(); /* a section of any domain counts */
    held = exhaust(cache);
    prudence_cache_free_deferred(cache, objects[--held]);
    failing_allocation_ms(cache);
    prudence_read_unlock();
    assert_int_equal(stats_of(cache).pressure_waits, 0);
    memory_succeed();
    free_all(cache, objects, held);
    destroy_empty(cache);
}

static int set_wait(void **state)
{
    return prudence_option_set("wait_max", "30ms");
}

SUITE_BETWEEN(set_wait, NULL, pin_thread())
