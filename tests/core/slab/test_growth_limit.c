/* SPDX-License-Identifier: MIT */
/*
 * Growth is held back, as a kernel does instead of throttling deferrals: past slab_growth_limit
 * latent bytes, an allocation that has found nothing waits for a grace period, at most for
 * wait_max, and checks again before the cache grows. It does not wait below the limit, inside a
 * section, or again while the reader of an expired wait is still there.
 */
#include "slab/latent_cache.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"
#include "support/gp_reader.h"
#include "support/slab_test.h"

#define COUNT  1024
#define LIMIT  ((uint64_t)2 << 20)
#define SIZE   4096
#define PASSES 600 /* objects of SIZE that exceed the limit */

static void *objects[COUNT];

static uint64_t grows(struct prudence_cache *cache)
{
    return stats_of(cache).grows;
}

static uint64_t waits(void)
{
    return wait_counts.waits;
}

/* Allocates until the cache grows or `most` objects are live. Returns the number of objects. */
static unsigned allocate_until_it_grows(struct prudence_cache *cache, void **into, unsigned most)
{
    uint64_t before = grows(cache);
    unsigned count = 0;

    while (count < most && grows(cache) == before) {
        into[count] = prudence_cache_alloc(cache);
        assert_non_null(into[count++]);
    }
    return count;
}

static int set_limits(void **state)
{
    slab_growth_limit = LIMIT;
    return prudence_option_set("wait_max", "20s") | prudence_option_set("latent_limit", "0");
}

static int reset_limits(void **state)
{
    slab_growth_limit = 0;
    return 0;
}

static uint64_t waits_before;

/* Lets the reader leave while the test waits for it. */
static void *leave_later(void *reader)
{
    while (load_relaxed(&wait_counts.waits) == waits_before)
        pause_ms(1);
    pause_ms(50);
    sem_post(&((struct held_reader *)reader)->leave);
    return NULL;
}

/* Allocates at least 64 objects, and all that the cache's slabs have. Returns the number of
 * objects. */
static unsigned allocate_to_the_last(struct prudence_cache *cache)
{
    unsigned live = 1;

    allocate_all(cache, objects, 1);
    while (live < 64 || live < stats_of(cache).slabs_now * cache->body->capacity)
        allocate_all(cache, objects + live++, 1);
    return live;
}

/* All deferred objects are in this CPU's latent cache, which is merged after the wait. */
static void the_latent_cache_is_merged_first(void **state)
{
    struct prudence_cache *cache = fixed_cache(SIZE, 16, NULL);
    struct held_reader reader = {.domain = NULL};
    uint64_t grown, waited = waits_before = waits();
    unsigned live = allocate_to_the_last(cache);
    pthread_t ender;

    slab_growth_limit = 8 * SIZE;
    grown = grows(cache);
    held_reader_start(&reader);
    defer_all(cache, objects, 16);
    assert_int_equal(pthread_create(&ender, NULL, leave_later, &reader), 0);
    allocate_all(cache, objects, 16);
    assert_int_equal(waits(), waited + 1);
    assert_int_equal(grows(cache), grown);
    pthread_join(ender, NULL);
    held_reader_end(&reader);
    free_all(cache, objects, live);
    destroy_empty(cache);
}

/* All deferred objects are in latent slabs, so the node is read again after the wait. */
static void latent_slabs_are_merged_first(void **state)
{
    struct prudence_cache *cache = fixed_cache(SIZE, 16, NULL);
    struct held_reader reader = {.domain = NULL};
    uint64_t grown, waited = waits_before = waits();
    unsigned live = allocate_to_the_last(cache);
    struct cpu_cache *cpu;
    pthread_t ender;

    slab_growth_limit = 8 * SIZE;
    grown = grows(cache);
    held_reader_start(&reader);
    cpu = cpu_cache_take(cache, &cpu); /* makes deferrals bypass the CPU */
    assert_non_null(cpu);
    defer_all(cache, objects, 16);
    cpu_cache_release(cpu);
    assert_int_equal(latent_cache_count(cpu), 0);
    assert_int_equal(pthread_create(&ender, NULL, leave_later, &reader), 0);
    allocate_all(cache, objects, 16);
    assert_true(waits() > waited); /* the first objects of a slab are safe before the others */
    assert_int_equal(grows(cache), grown);
    pthread_join(ender, NULL);
    held_reader_end(&reader);
    free_all(cache, objects, live);
    destroy_empty(cache);
}

/* Objects deferred under a reader are reused as soon as the reader has ended, without new pages. */
static void it_waits_for_the_reader_and_does_not_grow(void **state)
{
    struct prudence_cache *cache = fixed_cache(SIZE, 16, NULL);
    struct held_reader reader = {.domain = NULL};
    uint64_t grown, began, waited = waits_before = waits();
    pthread_t ender;
    unsigned live;

    allocate_all(cache, objects, PASSES);
    held_reader_start(&reader);
    began = os_clock_ns();
    assert_int_equal(pthread_create(&ender, NULL, leave_later, &reader), 0);
    defer_all(cache, objects, PASSES);
    grown = grows(cache);
    live = allocate_until_it_grows(cache, objects, 64);
    assert_int_equal(grows(cache), grown);
    assert_true(os_clock_ns() - began >= 40000000);
    assert_true(waits() > waited);
    pthread_join(ender, NULL);
    held_reader_end(&reader);
    free_all(cache, objects, live);
    destroy_empty(cache);
}

static void below_the_limit_nobody_waits(void **state)
{
    struct prudence_cache *cache = fixed_cache(SIZE, 16, manual_domain());
    uint64_t waited = waits();
    unsigned live;

    allocate_all(cache, objects, 400);
    defer_all(cache, objects, 400);
    live = allocate_until_it_grows(cache, objects, COUNT);
    assert_true(live < COUNT);
    assert_int_equal(waits(), waited);
    free_all(cache, objects, live);
    destroy_empty(cache);
}

static void in_vain_it_grows_and_does_not_wait_again(void **state)
{
    struct prudence_cache *cache = fixed_cache(SIZE, 16, manual_domain());
    uint64_t waited = waits(), expired = wait_counts.expiries, began;
    unsigned live;

    assert_int_equal(prudence_option_set("wait_max", "20ms"), 0);
    allocate_all(cache, objects, PASSES);
    defer_all(cache, objects, PASSES);
    began = os_clock_ns();
    live = allocate_until_it_grows(cache, objects, 300);
    assert_true(os_clock_ns() - began >= 20000000);
    assert_true(live < 300);
    live += allocate_until_it_grows(cache, objects + live, 300);
    assert_int_equal(waits(), waited + 1);
    assert_int_equal(wait_counts.expiries, expired + 1);
    free_all(cache, objects, live);
    destroy_empty(cache);
}

static void never_inside_a_section(void **state)
{
    struct prudence_cache *cache = fixed_cache(SIZE, 16, manual_domain());
    uint64_t waited = waits();
    unsigned live;

    allocate_all(cache, objects, PASSES);
    prudence_read_lock();
    defer_all(cache, objects, PASSES);
    live = allocate_until_it_grows(cache, objects, COUNT);
    prudence_read_unlock();
    assert_int_equal(waits(), waited);
    free_all(cache, objects, live);
    destroy_empty(cache);
}

static void large_blocks_wait_too(void **state)
{
    struct prudence_cache *cache = fixed_cache(SIZE, 16, manual_domain());
    uint64_t waited = waits();
    void *large;

    assert_int_equal(prudence_option_set("wait_max", "5ms"), 0);
    allocate_all(cache, objects, PASSES);
    defer_all(cache, objects, PASSES);
    large = prudence_malloc((size_t)64 << 20);
    assert_non_null(large);
    assert_int_equal(waits(), waited + 1);
    prudence_free(large);
    destroy_empty(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_waits_for_the_reader_and_does_not_grow, set_limits,
                                        reset_limits),
        cmocka_unit_test_setup_teardown(the_latent_cache_is_merged_first, set_limits, reset_limits),
        cmocka_unit_test_setup_teardown(latent_slabs_are_merged_first, set_limits, reset_limits),
        cmocka_unit_test_setup_teardown(below_the_limit_nobody_waits, set_limits, reset_limits),
        cmocka_unit_test_setup_teardown(in_vain_it_grows_and_does_not_wait_again, set_limits,
                                        reset_limits),
        cmocka_unit_test_setup_teardown(never_inside_a_section, set_limits, reset_limits),
        cmocka_unit_test_setup_teardown(large_blocks_wait_too, set_limits, reset_limits),
    };

    pin_thread();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
