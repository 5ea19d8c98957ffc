/* SPDX-License-Identifier: MIT */
/*
 * Destroying a cache returns EBUSY while objects are live, and leaves the cache usable; waits for
 * deferred objects of this cache only; and returns EDEADLK inside a read-side critical section.
 *
 * ctest: inlined-too
 */
#include <pthread.h>
#include <unistd.h>

#include "support/patience.h"
#include "support/slab_test.h"

static void *objects[500];

TEST(busy_while_objects_are_live)
{
    struct prudence_cache *cache = fixed_cache(64, 16, manual_domain());

    allocate_all(cache, objects, 300);
    defer_all(cache, objects + 1, 99);
    for (unsigned i = 100; i < 300; i++)
        fill_pattern(objects[i], 64);
    assert_int_equal(prudence_cache_destroy(cache), EBUSY);
    assert_int_equal(stats_of(cache).objects_live, 201);
    assert_int_equal(stats_of(cache).objects_latent, 99);
    check_books(cache);
    for (unsigned i = 100; i < 300; i++)
        assert_true(has_pattern(objects[i], 64));
    allocate_all(cache, objects + 300, 200); /* still usable */
    free_all(cache, objects + 100, 400);
    assert_int_equal(prudence_cache_destroy(cache), EBUSY); /* one object is still live */
    free_all(cache, objects, 1);
    check_books(cache);
    destroy_empty(cache);
}

static void *advance_after_a_while(void *domain)
{
    for (int i = 0; i < 5; i++) {
        usleep(10000);
        prudence_manual_advance(domain);
    }
    return NULL;
}

TEST(waits_for_its_deferred_objects)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache *cache = fixed_cache(64, 16, domain);
    uint64_t began = os_clock_ns();
    pthread_t thread;

    allocate_all(cache, objects, 100);
    defer_all(cache, objects, 100);
    assert_int_equal(pthread_create(&thread, NULL, advance_after_a_while, domain), 0);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_true(os_clock_ns() - began >= 10000000);
    pthread_join(thread, NULL);
    assert_int_equal(prudence_domain_destroy(domain), 0); /* no cache uses it any more */
}

/* No thread ends this domain's grace periods, so a destroy that waited would never return. */
TEST(does_not_wait_for_others)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache *cache = fixed_cache(64, 16, domain), *other;

    other = fixed_cache(64, 16, domain);
    allocate_all(other, objects, 100);
    defer_all(other, objects, 100);
    allocate_all(cache, objects, 100);
    free_all(cache, objects, 100);
    alarm(patience(60));
    assert_int_equal(prudence_cache_destroy(cache), 0);
    alarm(0);
    assert_int_equal(stats_of(other).objects_latent, 100);
    destroy_empty(other);
}

TEST(not_inside_a_section)
{
    struct prudence_domain *own = prudence_domain_create("own", PRUDENCE_DOMAIN_MEMB, NULL);
    struct prudence_cache *cache = fixed_cache(64, 16, NULL);

    prudence_read_lock();
    assert_int_equal(prudence_cache_destroy(cache), EDEADLK);
    prudence_read_unlock();
    prudence_domain_read_lock(own); /* sections of any domain count */
    assert_int_equal(prudence_cache_destroy(cache), EDEADLK);
    prudence_domain_read_unlock(own);
    allocate_all(cache, objects, 1);
    free_all(cache, objects, 1);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_int_equal(prudence_cache_destroy(NULL), EINVAL);
}

TEST(a_thousand_times_gives_everything_back)
{
    struct os_pages_stats before, after;

    for (unsigned i = 0; i < 1000; i++) {
        struct prudence_cache *cache = fixed_cache(64, 16, NULL);

        allocate_all(cache, objects, 200);
        defer_all(cache, objects, 150);
        free_all(cache, objects + 150, 50);
        assert_int_equal(prudence_cache_destroy(cache), 0);
        os_pages_stats(i < 10 ? &before : &after);
    }
    assert_int_equal(after.used, before.used);
    assert_int_equal(after.metadata, before.metadata);
}

SUITE(pin_thread())
