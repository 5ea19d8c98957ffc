/* SPDX-License-Identifier: MIT */
/*
 * Shrink empties the object caches of all CPUs, merges safe objects and returns exactly the bytes
 * of the slabs given back. Trim does this for all caches, and gives the pages back to the system.
 *
 * ctest: inlined-too
 * ctest: not-with thread (one thread)
 */
#include "gp/user/domain.h"
#include "support/slab_test.h"

#define COUNT 2000

static void *objects[COUNT];

TEST(shrink_returns_what_it_gives_back)
{
    struct prudence_cache *cache = fixed_cache(128, 32, manual_domain());
    struct os_pages_stats before, after;
    size_t bytes;

    allocate_all(cache, objects, COUNT);
    assert_int_equal(prudence_cache_shrink(cache), 0);
    free_all(cache, objects, COUNT / 2);
    defer_all(cache, objects + COUNT / 2, COUNT / 2);
    os_pages_stats(&before);
    bytes = prudence_cache_shrink(cache);
    os_pages_stats(&after);
    assert_true(bytes > 0 && bytes % cache->body->slab_bytes == 0);
    assert_int_equal(before.used - after.used, bytes);
    assert_int_equal(stats_of(cache).objects_cached, 0);
    assert_int_equal(stats_of(cache).objects_latent, COUNT / 2);
    check_books(cache);
    prudence_manual_advance(cache->domain);
    prudence_cache_shrink(cache);
    prudence_manual_advance(cache->domain);
    prudence_cache_shrink(cache);
    assert_int_equal(stats_of(cache).slabs_now, 0);
    assert_int_equal(prudence_cache_shrink(cache), 0);
    check_books(cache);
}

TEST(all_cpus_are_emptied)
{
    struct prudence_cache *cache = fixed_cache(128, 32, manual_domain());

    for (unsigned cpu = 0; cpu < 64; cpu++) {
        injected_cpu = cpu;
        allocate_all(cache, objects, 1);
        free_all(cache, objects, 1);
        assert_true(stack_count(&cpu_here(cache)->line) > 0);
    }
    prudence_cache_shrink(cache);
    for (unsigned cpu = 0; cpu < 64; cpu++)
        assert_int_equal(stack_count(&cpu_cache_of(cache, cpu)->line), 0);
    assert_int_equal(stats_of(cache).slabs_now, 0);
    check_books(cache);
}

TEST(trim_gives_pages_to_the_system)
{
    struct prudence_cache *a = fixed_cache(128, 32, manual_domain());
    struct prudence_cache *b = fixed_cache(1280, 32, manual_domain());
    struct os_pages_stats before, after;

    allocate_all(a, objects, COUNT);
    free_all(a, objects, COUNT);
    allocate_all(b, objects, COUNT);
    free_all(b, objects, COUNT);
    os_pages_stats(&before);
    assert_int_equal(prudence_trim(), before.used + before.retained);
    os_pages_stats(&after);
    assert_int_equal(after.used + after.retained, 0);
    assert_int_equal(prudence_trim(), 0);
}

/* Makes a cache of the default domain with far more deferred objects than rings hold: open batches
 * on two CPUs, closed ones, and latent slabs with both bitmaps. A grace period that began later is
 * over. */
static struct prudence_cache *deferred_and_synchronized(void)
{
    struct prudence_cache *cache = fixed_cache(1024, 16, NULL);

    allocate_all(cache, objects, COUNT);
    prudence_read_lock(); /* makes rings overflow */
    defer_all(cache, objects, COUNT / 2);
    injected_cpu = 33;
    defer_all(cache, objects + COUNT / 2, COUNT / 2);
    prudence_read_unlock();
    prudence_synchronize();
    assert_true(stats_of(cache).objects_latent > 0);
    return cache;
}

TEST(shrink_after_synchronize_gives_everything_back)
{
    struct prudence_cache *cache = deferred_and_synchronized();

    prudence_cache_shrink(cache);
    assert_int_equal(stats_of(cache).objects_latent, 0);
    assert_int_equal(stats_of(cache).slabs_now, 0);
    check_books(cache);
}

TEST(trim_after_synchronize_gives_everything_back)
{
    struct prudence_cache *cache = deferred_and_synchronized();

    prudence_trim();
    assert_int_equal(stats_of(cache).objects_latent, 0);
    assert_int_equal(stats_of(cache).slabs_now, 0);
    check_books(cache);
}

/* Stands for another thread that has just begun to drive, perhaps too early for our objects. */
static struct reader_slot *another_drives(const struct prudence_domain *domain)
{
    store_relaxed(&gp_default_domain()->scan_began, os_clock_ns());
    return NULL;
}

TEST(shrink_drives_beside_another_thread)
{
    struct prudence_cache *cache = fixed_cache(1024, 16, NULL);
    struct prudence_domain *domain = gp_default_domain();
    const struct gp_scheme *scheme = domain->scheme;
    struct gp_scheme beside = *scheme;

    allocate_all(cache, objects, 100);
    defer_all(cache, objects, 100);
    beside.held_up_by = another_drives;
    domain->scheme = &beside;
    prudence_cache_shrink(cache);
    domain->scheme = scheme;
    store_relaxed(&domain->scan_began, (uint64_t)0);
    assert_int_equal(stats_of(cache).slabs_now, 0);
}

/* Trim does not wait for the reader inside, which here would never leave, and keeps the objects it
 * may see. */
TEST(a_reader_inside_is_not_waited_for)
{
    struct prudence_cache *cache = fixed_cache(1024, 16, NULL);

    allocate_all(cache, objects, 100);
    prudence_read_lock();
    defer_all(cache, objects, 100);
    prudence_trim();
    prudence_cache_shrink(cache);
    assert_int_equal(stats_of(cache).objects_latent, 100);
    prudence_read_unlock();
    prudence_trim();
    assert_int_equal(stats_of(cache).slabs_now, 0);
}

SUITE(pin_thread(), inject_topology())
