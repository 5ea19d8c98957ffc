/* SPDX-License-Identifier: MIT */
/*
 * Bound on garbage: a deferral beyond latent_limit waits until grace periods bring the garbage
 * below the limit, at most for wait_max, and then succeeds in any case. Inside a read-side section
 * it never waits.
 *
 * ctest: inlined-too
 */
#include "slab/reclaim/limit.h"
#include "support/gp_reader.h"
#include "support/slab_test.h"
#include "support/stats.h"

#define COUNT 4000

static void *objects[COUNT];

static uint64_t defer_ms(struct prudence_cache *cache, unsigned first, unsigned count)
{
    uint64_t began = os_clock_ns();

    defer_all(cache, objects + first, count);
    return (os_clock_ns() - began) / 1000000;
}

/* Sets the limit to the bytes of `count` objects, as the account counts them. */
static uint64_t limit_to(const struct prudence_cache *cache, unsigned count)
{
    uint64_t bytes = count * cache->body->stride;
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
    assert_int_equal(prudence_option_set("latent_limit", text), 0);
    return bytes;
}

TEST(garbage_stays_under_the_limit)
{
    struct prudence_cache *cache = fixed_cache(4096, 0, NULL);

    assert_int_equal(prudence_option_set("latent_limit", "4M"), 0);
    for (unsigned round = 0; round < 5; round++) {
        allocate_all(cache, objects, COUNT);
        for (unsigned i = 0; i < COUNT; i++) {
            prudence_cache_free_deferred(cache, objects[i]);
            assert_true(stats_of(cache).bytes_latent <= 4 << 20);
        }
    }
    destroy_empty(cache);
}

/* Fast paths append only to space that was reserved before. */
TEST(the_account_is_never_below_the_truth)
{
    struct prudence_cache *cache = fixed_cache(4096, 0, manual_domain());

    assert_int_equal(prudence_option_set("latent_limit", "0"), 0);
    allocate_all(cache, objects, COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
        prudence_cache_free_deferred(cache, objects[i]);
        assert_true(limit_used() >= stats_of(cache).bytes_latent);
        assert_true(limit_used() - stats_of(cache).bytes_latent <=
                    cache->body->batch * cache->body->stride);
        assert_true(limit_used_peak() >= limit_used());
    }
    destroy_empty(cache);
    assert_int_equal(limit_used(), 0);
}

TEST(a_deferral_waits_no_longer_than_wait_max)
{
    struct prudence_cache *cache = fixed_cache(4096, 0, manual_domain());
    struct prudence_stats before;

    assert_int_equal(prudence_option_set("latent_limit", "4M"), 0);
    assert_int_equal(prudence_option_set("wait_max", "20ms"), 0);
    allocate_all(cache, objects, COUNT);
    before = stats_now();
    defer_all(cache, objects, 512); /* half of the limit */
    assert_int_equal(before.throttle_waits, stats_now().throttle_waits);
    assert_true(defer_ms(cache, 512, 700) >= 20); /* no thread ends a grace period */
    assert_true(stats_now().throttle_waits > before.throttle_waits);
    assert_true(stats_now().throttle_expiries > before.throttle_expiries);
    assert_int_equal(stats_of(cache).objects_latent, 1212);
    check_books(cache);
    assert_int_equal(prudence_option_set("latent_limit", "0"), 0);
    free_all(cache, objects + 1212, COUNT - 1212);
    destroy_empty(cache);
}

/* Garbage of one domain fills the limit, and no thread drives its grace periods any more. A thread
 * that defers in another domain drives them. */
TEST(garbage_of_other_domains_makes_room)
{
    struct prudence_cache *cache = fixed_cache(4096, 0, NULL);
    struct prudence_cache *other = fixed_cache(4096, 0, manual_domain());
    struct prudence_stats before = stats_now();
    struct held_reader reader = {.domain = NULL};

    allocate_all(cache, objects, 1024);
    allocate_all(other, objects + 1024, 16);
    prudence_option_set("wait_max", "10s");
    assert_int_equal(prudence_option_set("latent_limit", "0"), 0);
    held_reader_start(&reader);
    defer_all(cache, objects, 1024);
    held_reader_end(&reader);
    assert_int_equal(stats_now().bytes_latent, limit_to(cache, 1024));
    defer_all(other, objects + 1024, 16);
    assert_int_equal(stats_now().throttle_expiries, before.throttle_expiries);
    assert_int_equal(stats_now().latent_overruns, before.latent_overruns);
    destroy_empty(cache);
    destroy_empty(other);
}

/* If those grace periods do not end, only one deferral waits for them. */
TEST(another_domain_that_is_stuck_is_waited_for_once)
{
    struct prudence_cache *cache = fixed_cache(4096, 0, NULL);
    struct prudence_cache *stuck = fixed_cache(4096, 0, manual_domain());
    struct prudence_stats before = stats_now();

    allocate_all(stuck, objects, 1200);
    allocate_all(cache, objects + 1200, 100);
    prudence_option_set("wait_max", "20ms");
    assert_int_equal(prudence_option_set("latent_limit", "0"), 0);
    defer_all(stuck, objects, 1200);
    assert_int_equal(prudence_option_set("latent_limit", "4M"), 0);
    defer_all(cache, objects + 1200, 100);
    assert_int_equal(stats_now().throttle_waits, before.throttle_waits + 1);
    assert_int_equal(stats_now().throttle_expiries, before.throttle_expiries + 1);
    prudence_manual_advance(stuck->domain); /* throttling starts again */
    prudence_cache_shrink(stuck);
    assert_true(stats_now().bytes_latent <= 4 << 20);
    destroy_empty(cache);
    destroy_empty(stuck);
}

/* Consecutive sections, each of which delays a grace period: one lasts less than wait_max, all
 * together longer. */
#define SECTIONS    4
#define SECTION_MS  200
#define WAIT_MAX_MS 350

static uint64_t read_for(struct held_reader *reader, struct held_reader *next)
{
    uint64_t began = os_clock_ns();

    pause_ms(SECTION_MS);
    if (next)
        held_reader_start(next);
    held_reader_end(reader);
    return (os_clock_ns() - began) / 1000000;
}

/* Runs the sections; the first reader is already inside. Returns the duration of the longest
 * section. */
static void *read_in_turns(void *argument)
{
    struct held_reader *readers = argument;
    uint64_t longest = 0;

    for (int i = 0; i < SECTIONS; i++)
        longest =
            max_size(longest, read_for(&readers[i], i + 1 < SECTIONS ? &readers[i + 1] : NULL));
    return (void *)(uintptr_t)longest;
}

/* Defers two objects to a latent slab, where the second's grace period starts after the first's. */
static void leave_garbage(struct prudence_cache *cache)
{
    struct cpu_cache *cpu;

    allocate_all(cache, objects, 2);
    cpu = cpu_cache_take(cache, &cpu);
    assert_non_null(cpu); /* so deferred objects go to their slab */
    defer_all(cache, objects, 2);
    cpu_cache_release(cpu);
}

/* Defers as many bytes as the limit. Returns how long that took. */
static uint64_t defer_as_much_as_the_limit(void)
{
    void *large = prudence_malloc(4 << 20);
    uint64_t began = os_clock_ns();

    assert_non_null(large);
    prudence_free_deferred(large);
    return (os_clock_ns() - began) / 1000000;
}

TEST(readers_that_leave_are_waited_for)
{
    struct prudence_cache *cache = fixed_cache(4096, 0, NULL);
    struct prudence_stats before;
    uint64_t waited;
    void *longest;

    assert_int_equal(prudence_option_set("latent_limit", "4M"), 0);
    assert_int_equal(prudence_option_set("wait_max", "350ms"), 0);
    do { /* repeat if a busy machine made a section longer */
        struct held_reader readers[SECTIONS] = {{.domain = NULL}};
        pthread_t turns;

        before = stats_now();
        held_reader_start(&readers[0]);
        leave_garbage(cache);
        assert_int_equal(pthread_create(&turns, NULL, read_in_turns, readers), 0);
        waited = defer_as_much_as_the_limit();
        pthread_join(turns, &longest);
        prudence_synchronize();
        prudence_trim();
    } while ((uintptr_t)longest >= WAIT_MAX_MS || waited <= WAIT_MAX_MS);
    assert_int_equal(stats_now().throttle_waits, before.throttle_waits + 1);
    assert_int_equal(stats_now().throttle_expiries, before.throttle_expiries);
    assert_int_equal(stats_now().latent_overruns, before.latent_overruns);
    destroy_empty(cache);
}

TEST(never_inside_a_section)
{
    struct prudence_cache *cache = fixed_cache(4096, 0, NULL);
    struct prudence_stats before = stats_now();

    assert_int_equal(prudence_option_set("latent_limit", "4M"), 0);
    assert_int_equal(prudence_option_set("wait_max", "1s"), 0);
    allocate_all(cache, objects, COUNT);
    prudence_read_lock();
    defer_all(cache, objects, COUNT);
    prudence_read_unlock();
    assert_int_equal(stats_now().throttle_waits, before.throttle_waits);
    assert_true(stats_of(cache).bytes_latent > 4 << 20);
    assert_true(stats_now().latent_overruns > before.latent_overruns);
    destroy_empty(cache);
}

SUITE(pin_thread())
