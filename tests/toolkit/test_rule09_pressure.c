/* SPDX-License-Identifier: MIT */
/*
 * Rule 9: before an allocation fails with latent objects outstanding, it closes the open batches of
 * all caches, waits for one grace period, merges and shrinks everything, and tries again. So no
 * allocation fails while deferred objects would suffice.
 *
 * ctest: inlined-too
 * ctest: not-with thread (one thread)
 */
#include "slab/reclaim/wait.h"
#include "support/slab_test.h"

#define COUNT 1000

static void *objects[2][COUNT];

/* Makes two caches of the default domain, which has no readers here, and defers all their objects,
 * the last ones in open batches. */
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

/* The limit leaves room for the current contents of both caches. One cache alone can use that room
 * only after the other one's latent objects have become free pages. */
TEST(at_the_limit_other_caches_give_back)
{
    struct prudence_cache *caches[2];
    struct os_pages_stats pages;

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

/* A domain whose grace periods end exactly when an allocation waits for them, because the waiting
 * thread polls them. */
static uint64_t never_the_same(void *unused)
{
    static uint64_t cookies;

    return ++cookies;
}

static bool somebody_waits(void *unused, uint64_t cookie)
{
    (void)unused, (void)cookie;
    return load_relaxed(&wait_counts.pressure_waits) > 0;
}

static struct prudence_domain *domain_of_waiters(void)
{
    struct prudence_domain_ops ops = {
        .size = sizeof ops, .start_poll = never_the_same, .poll_state = somebody_waits};
    struct prudence_domain *domain = prudence_domain_create_external("waiters", &ops, NULL);

    assert_non_null(domain);
    wait_counts.pressure_waits = 0;
    return domain;
}

/* Objects that become safe by the wait are merged and given back, in other caches, too. */
TEST(after_the_wait_other_caches_give_back)
{
    struct prudence_domain *domain = domain_of_waiters();
    struct prudence_cache *wants = fixed_cache(512, 128, domain);
    struct prudence_cache *has = fixed_cache(512, 128, domain);
    struct os_pages_stats pages;
    unsigned capacity = wants->body->capacity;

    allocate_all(has, objects[0], capacity);
    allocate_all(wants, objects[1], capacity);
    defer_all(has, objects[0], capacity); /* all in the latent cache, none safe */
    os_pages_stats(&pages);
    os_pages_set_limit(pages.used);
    allocate_all(wants, objects[1] + capacity, 1); /* uses the pages of the other cache's slab */
    assert_int_equal(stats_of(has).slabs_now, 0);
    assert_int_equal(stats_of(wants).pressure_waits, 1);
    os_pages_set_limit(0);
    free_all(wants, objects[1], capacity + 1);
    destroy_empty(wants);
    destroy_empty(has);
}

/* The first grace period makes only one object of each slab safe, and the second all others, which
 * frees a slab. */
TEST(one_wait_may_not_be_enough)
{
    struct prudence_domain *domain = domain_of_waiters();
    struct prudence_cache *wants = fixed_cache(512, 128, domain);
    struct prudence_cache *has = fixed_cache(512, 128, domain);
    unsigned capacity = wants->body->capacity;
    struct os_pages_stats pages;

    allocate_all(has, objects[0], 2 * capacity);
    allocate_all(wants, objects[1], capacity);
    for (unsigned i = 0; i < 2 * capacity; i++)
        assert_true(node_put_latent(slab_known(objects[0][i]), objects[0][i], true));
    os_pages_stats(&pages);
    os_pages_set_limit(pages.used);
    allocate_all(wants, objects[1] + capacity, 1);
    assert_int_equal(stats_of(wants).pressure_waits, 2);
    os_pages_set_limit(0);
    free_all(wants, objects[1], capacity + 1);
    destroy_empty(wants);
    destroy_empty(has);
}

/* All latent objects have been waited for, and were not enough, so the allocation fails without
 * waiting until wait_max, which is longer than this program may take. */
TEST(nothing_latent_is_left_to_wait_for)
{
    struct prudence_cache *has = fixed_cache(512, 128, domain_of_waiters());

    prudence_free(prudence_malloc((size_t)1 << 20)); /* makes a cache of large blocks */
    allocate_all(has, objects[0], 100);
    defer_all(has, objects[0], 100); /* none is safe */
    memory_fail(0, UINT32_MAX);
    assert_null(prudence_malloc((size_t)64 << 20));
    memory_succeed();
    assert_int_equal(wait_counts.pressure_waits, 1);
    destroy_empty(has);
}

/* An object's allocation fails likewise: the latent objects are safe, but no page is available. */
TEST(no_page_is_left_to_wait_for)
{
    struct prudence_domain *domain = domain_of_waiters();
    struct prudence_cache *wants = fixed_cache(512, 128, domain);
    struct prudence_cache *has = fixed_cache(512, 128, domain);

    allocate_all(has, objects[0], 100);
    defer_all(has, objects[0], 100);
    memory_fail(0, UINT32_MAX);
    assert_null(prudence_cache_alloc(wants));
    memory_succeed();
    assert_int_equal(wait_counts.pressure_waits, 1);
    destroy_empty(wants);
    destroy_empty(has);
}

TEST(without_any_memory_latent_objects_do)
{
    struct prudence_cache *caches[2];

    deferred_caches(caches);
    memory_fail(0, UINT32_MAX);
    allocate_all(caches[0], objects[0], COUNT); /* as many as were deferred */
    memory_succeed();
    check_books(caches[0]);
    check_books(caches[1]);
    done(caches, COUNT);
}

/* The only available object is in an open batch. */
TEST(the_open_batch_is_closed)
{
    struct prudence_cache *cache = fixed_cache(512, 16, manual_domain());
    struct prudence_domain *domain = cache->domain;
    unsigned held = 0;

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

SUITE(pin_thread(), assert_int_equal(prudence_option_set("wait_max", "3600s"), 0))
