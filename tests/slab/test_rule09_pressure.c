/* SPDX-License-Identifier: MIT */
/*
 * Rule 9: before an allocation fails, with latent objects outstanding, the open batches of all
 * caches are closed, one grace period is waited for, everything is merged and shrunk, and the
 * allocation tried again. So nothing fails while what is deferred would do.
 */
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

static void without_any_memory_latent_objects_do(void **state)
{
    struct prudence_cache *caches[2];

    (void)state;
    deferred_caches(caches);
    memory_fail(0, UINT32_MAX);
    for (unsigned i = 0; i < 2 * COUNT; i++) { /* as long as their own slabs last */
        void *object = prudence_cache_alloc(caches[0]);

        if (!object)
            fail_msg("allocation %u", i);
        objects[0][i % 100] = object;
        if (i >= 100)
            break;
    }
    memory_succeed();
    check_books(caches[0]);
    check_books(caches[1]);
    free_all(caches[0], objects[0] + 1, 99);
    os_pages_set_limit(0);
    assert_int_equal(prudence_cache_destroy(caches[0]), EBUSY); /* the two that were overwritten */
    destroy_empty(caches[1]);
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
        cmocka_unit_test(without_any_memory_latent_objects_do),
        cmocka_unit_test(the_open_batch_is_closed),
    };

    pin_thread();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
