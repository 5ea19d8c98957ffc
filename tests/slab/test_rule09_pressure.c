/* SPDX-License-Identifier: MIT */
/*
 * Rule 9: before an allocation fails, with latent objects outstanding, the open batches of all
 * caches are closed, one grace period is waited for, everything is merged and shrunk, and the
 * allocation tried again. So nothing fails while what is deferred would do.
 */
#include <pthread.h>
#include <unistd.h>

#include "support/slab_test.h"

#define COUNT 1000

static void *objects[2][COUNT];

/* Two caches of the default domain (it has no readers here), every object of theirs deferred, the
 * last ones in open batches. */
static void deferred_caches(struct prudence_cache *caches[2])
{
    prudence_trim();
    for (unsigned c = 0; c < 2; c++) {
        caches[c] = fixed_cache(512, 16, NULL);
        allocate_all(caches[c], objects[c], COUNT);
    }
    for (unsigned c = 0; c < 2; c++)
        defer_all(caches[c], objects[c], COUNT);
}

static void done(struct prudence_cache *caches[2], unsigned held)
{
    os_pages_set_limit(0);
    memory_succeed();
    free_all(caches[0], objects[0], held);
    for (unsigned c = 0; c < 2; c++)
        destroy_empty(caches[c]);
}

/* The limit leaves room for what two caches hold now: one of them alone can have twice as much,
 * but only after the other one's latent objects have become free pages. */
static void at_the_limit_other_caches_give_back(void **state)
{
    struct prudence_cache *caches[2];
    struct os_pages_stats pages;

    (void)state;
    deferred_caches(caches);
    os_pages_stats(&pages);
    os_pages_set_limit(pages.used);
    allocate_all(caches[0], objects[0], COUNT);
    allocate_all(caches[0], objects[1], COUNT / 2);
    assert_true(stats_of(caches[0]).pressure_waits > 0);
    os_pages_stats(&pages);
    assert_true(pages.used <= os_pages_limit());
    free_all(caches[0], objects[1], COUNT / 2);
    done(caches, COUNT);
}

static bool stop;

/* Ends grace periods from the moment on at which somebody waits. */
static void *advance_for_waiters(void *domain)
{
    while (!load_acquire(&stop)) {
        usleep(1000);
        if (load_relaxed(&throttle_counts.pressure_waits))
            prudence_manual_advance(domain);
    }
    return NULL;
}

/* What was not safe before the wait is merged and given back after it, in other caches too. */
static void after_the_wait_other_caches_give_back(void **state)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache *wants = fixed_cache(512, 128, domain);
    struct prudence_cache *has = fixed_cache(512, 128, domain);
    struct os_pages_stats pages;
    pthread_t thread;
    unsigned capacity = wants->capacity;

    (void)state;
    assert_int_equal(prudence_option_set("wait_max", "20s"), 0);
    allocate_all(has, objects[0], capacity);
    allocate_all(wants, objects[1], capacity);
    defer_all(has, objects[0], capacity); /* all in its latent cache, none safe */
    os_pages_stats(&pages);
    os_pages_set_limit(pages.used);
    throttle_counts.pressure_waits = 0;
    assert_int_equal(pthread_create(&thread, NULL, advance_for_waiters, domain), 0);
    allocate_all(wants, objects[1] + capacity, 1); /* in the pages of the other one's slab */
    store_release(&stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(stats_of(has).slabs_now, 0);
    assert_int_equal(stats_of(wants).pressure_waits, 1);
    os_pages_set_limit(0);
    free_all(wants, objects[1], capacity + 1);
    destroy_empty(wants);
    destroy_empty(has);
}

/* One grace period makes one object of each slab safe, the next all others: only then a slab is free. */
static void one_wait_may_not_be_enough(void **state)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache *wants = fixed_cache(512, 128, domain);
    struct prudence_cache *has = fixed_cache(512, 128, domain);
    unsigned capacity = wants->capacity;
    struct os_pages_stats pages;
    pthread_t thread;

    (void)state;
    store_release(&stop, false);
    allocate_all(has, objects[0], 2 * capacity);
    allocate_all(wants, objects[1], capacity);
    for (unsigned i = 0; i < 2 * capacity; i++)
        assert_true(node_put_latent(slab_known(objects[0][i]), objects[0][i], true));
    os_pages_stats(&pages);
    os_pages_set_limit(pages.used);
    throttle_counts.pressure_waits = 0;
    assert_int_equal(pthread_create(&thread, NULL, advance_for_waiters, domain), 0);
    allocate_all(wants, objects[1] + capacity, 1);
    store_release(&stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(stats_of(wants).pressure_waits, 2);
    os_pages_set_limit(0);
    free_all(wants, objects[1], capacity + 1);
    destroy_empty(wants);
    destroy_empty(has);
}

/* What was latent has been waited for, and was not enough: nothing more comes of going on till wait_max. */
static void nothing_latent_is_left_to_wait_for(void **state)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache *has = fixed_cache(512, 128, domain);
    pthread_t thread;
    uint64_t began;

    (void)state;
    assert_int_equal(prudence_option_set("wait_max", "20s"), 0);
    store_release(&stop, false);
    prudence_free(prudence_malloc((size_t)1 << 20)); /* there is a cache of large blocks */
    allocate_all(has, objects[0], 100);
    defer_all(has, objects[0], 100); /* none safe */
    throttle_counts.pressure_waits = 0;
    assert_int_equal(pthread_create(&thread, NULL, advance_for_waiters, domain), 0);
    memory_fail(0, UINT32_MAX);
    began = os_clock_ns();
    assert_null(prudence_malloc((size_t)64 << 20));
    assert_true(os_clock_ns() - began < 10 * UINT64_C(1000000000));
    memory_succeed();
    store_release(&stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(throttle_counts.pressure_waits, 1);
    destroy_empty(has);
}

static void without_any_memory_latent_objects_do(void **state)
{
    struct prudence_cache *caches[2];

    (void)state;
    deferred_caches(caches);
    memory_fail(0, UINT32_MAX);
    allocate_all(caches[0], objects[0], COUNT); /* as many as were deferred */
    memory_succeed();
    check_books(caches[0]);
    check_books(caches[1]);
    done(caches, COUNT);
}

/* An open batch of one object is all that there is to have. */
static void the_open_batch_is_closed(void **state)
{
    struct prudence_cache *cache = fixed_cache(512, 16, manual_domain());
    struct prudence_domain *domain = cache->domain;
    unsigned held = 0;

    (void)state;
    assert_int_equal(prudence_option_set("wait_max", "1ms"), 0);
    memory_fail(1000, UINT32_MAX);
    objects[0][held++] = prudence_cache_alloc(cache);
    memory_fail(0, UINT32_MAX);
    while ((objects[0][held] = prudence_cache_alloc(cache)))
        held++;
    prudence_cache_free_deferred(cache, objects[0][--held]);
    assert_null(prudence_cache_alloc(cache));
    assert_int_equal(cpu_here(cache)->closed, cpu_here(cache)->line.ring_tail);
    prudence_manual_advance(domain);
    assert_ptr_equal(prudence_cache_alloc(cache), objects[0][held]);
    held++;
    memory_succeed();
    free_all(cache, objects[0], held);
    destroy_empty(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_the_limit_other_caches_give_back),
        cmocka_unit_test(after_the_wait_other_caches_give_back),
        cmocka_unit_test(one_wait_may_not_be_enough),
        cmocka_unit_test(nothing_latent_is_left_to_wait_for),
        cmocka_unit_test(without_any_memory_latent_objects_do),
        cmocka_unit_test(the_open_batch_is_closed),
    };

    pin_thread();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
