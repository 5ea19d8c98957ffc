/* SPDX-License-Identifier: MIT */
/*
 * Each CPU has one budget: object caches and rings grow within this budget, the least used ones
 * give to those that want more, and safe objects in rings count as cached. All CPUs together stay
 * below a total.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "gp/user/domain.h"
#include "slab/latent_cache.h"
#include "slab/object_cache.h"
#include "slab/reclaim/budget.h"
#include "slab/reclaim/budget_share.h"
#include "slab/reclaim/limit.h"
#include "support/slab_test.h"

#define MANY 32
#define KIB  ((size_t)1 << 10)
#define MIB  ((size_t)1 << 20)
#define OWN  ((int64_t)(2 * MIB)) /* option cache_per_cpu of this test */

static void *objects[OBJECTS_MAX], *latent[3000];

static int64_t used(unsigned cpu)
{
    return load_relaxed(&slab_budgets[cpu].used);
}

static int64_t used_here(void)
{
    return used(os_cpu_current());
}

static unsigned size_here(struct prudence_cache *cache)
{
    return cpu_here(cache)->size;
}

static int64_t charge_here(struct prudence_cache *cache)
{
    return budget_charge(cache, cpu_here(cache), size_here(cache));
}

/* Makes a cache that has deferred an object, so that its ring counts. */
static struct prudence_cache *deferring_cache(size_t size, struct prudence_domain *domain)
{
    struct prudence_cache *cache = fixed_cache(size, 0, domain);
    void *object = prudence_cache_alloc(cache);

    assert_non_null(object);
    prudence_cache_free_deferred(cache, object);
    return cache;
}

/* Allocates and frees bursts that want an object cache of `count` objects. */
static void churn(struct prudence_cache *cache, unsigned count, unsigned bursts)
{
    for (unsigned i = 0; i < bursts; i++) {
        allocate_all(cache, objects, count);
        free_all(cache, objects, count);
    }
}

TEST(sizes_stay_within_the_budget)
{
    struct prudence_cache *caches[MANY];
    int64_t floors = 0, bytes = 0;

    for (unsigned i = 0; i < MANY; i++) {
        caches[i] = deferring_cache(32 * (i + 1), NULL);
        floors += budget_charge(caches[i], cpu_here(caches[i]), budget_least(caches[i]));
        churn(caches[i], 2000, 10);
        assert_true(used_here() <= OWN + OWN / 8 + floors); /* the first cache was alone */
    }
    for (unsigned i = 0; i < MANY; i++)
        bytes += charge_here(caches[i]);
    assert_int_equal(bytes, used_here());
    assert_true(bytes >= OWN / 2); /* and the budget is used */
    for (unsigned i = 0; i < MANY; i++)
        destroy_empty(caches[i]);
    assert_int_equal(used_here(), 0);
}

/* The largest possible charge of one cache uses up the default budget, and the other cache gets a
 * small part. */
TEST(one_that_is_nearly_alone_may_have_what_it_wants)
{
    struct prudence_cache *cache, *other;

    assert_int_equal(prudence_option_set("cache_per_cpu", "8M"), 0);
    cache = deferring_cache(4096, NULL);
    other = deferring_cache(4096, NULL);
    churn(other, 64, 10);
    churn(cache, 1024, 30);
    assert_int_equal(size_here(cache), cache->body->size_max);
    assert_true(used_here() > (int64_t)(8 * MIB));
    assert_true(used_here() <= (int64_t)((8 + 1) * MIB));
    destroy_empty(cache);
    destroy_empty(other);
    assert_int_equal(prudence_option_set("cache_per_cpu", "2M"), 0);
}

/* Without demand, caches use only a part of the budget; later caches start at their floor and grow
 * with demand. */
TEST(a_quarter_is_for_those_that_come_first)
{
    struct prudence_cache *caches[MANY];
    unsigned last = 0;

    for (unsigned i = 0; i < MANY; i++) {
        caches[i] = fixed_cache(512, 0, NULL);
        allocate_all(caches[i], objects, 1000);
        if (i == 0)
            assert_true(size_here(caches[i]) >= 2 * caches[i]->body->batch);
        last = size_here(caches[i]);
        free_all(caches[i], objects, 1000);
    }
    assert_int_equal(last, caches[0]->body->size_min);
    assert_true(used_here() <= OWN / 2);
    churn(caches[MANY - 1], 1000, 12);
    assert_true(size_here(caches[MANY - 1]) >= 2 * caches[0]->body->batch);
    for (unsigned i = 0; i < MANY; i++)
        destroy_empty(caches[i]);
}

TEST(a_size_that_was_asked_for_is_given)
{
    struct prudence_cache *cache = fixed_cache(64, 0, NULL);
    struct prudence_cache_attr attr = {.size = sizeof attr, .object_cache_bytes = 2 * MIB};
    struct prudence_cache *sized = prudence_cache_create("sized", 512, &attr);

    churn(cache, 8000, 30);
    churn(sized, 4000, 30);
    assert_int_equal(size_here(sized), sized->body->size_max);
    churn(cache, 8000, 30); /* and keeps it */
    assert_int_equal(size_here(sized), sized->body->size_max);
    destroy_empty(cache);
    destroy_empty(sized);
}

/* A cache has all of the budget, with stack and ring full, and is then no longer used. */
TEST(those_that_are_used_least_give)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache *idle = deferring_cache(256, domain);
    struct prudence_cache *busy = deferring_cache(256, domain);
    unsigned before, after, slots;

    churn(idle, 4000, 12);
    allocate_all(idle, objects, 6000);
    memcpy(latent, objects, sizeof latent);
    defer_all(idle, latent, 3000); /* not safe until the end */
    free_all(idle, objects + 3000, 3000);
    before = size_here(idle);
    slots = cpu_here(idle)->slots;
    assert_true(charge_here(idle) >= OWN / 2);
    churn(busy, 3000, 60);
    after = size_here(idle);
    assert_true(after < before / 2);
    assert_true(stack_count(&cpu_here(idle)->line) <= after);
    assert_true(latent_cache_count(cpu_here(idle)) <= after);
    assert_true(cpu_here(idle)->slots < slots / 2); /* the arrays shrink, too */
    assert_true(size_here(busy) >= before / 2);
    assert_true(used_here() <= OWN + OWN / 8);
    check_books(idle);
    check_books(busy);
    allocate_all(idle, objects, 4000);
    for (unsigned i = 0; i < 4000; i++)
        assert_false(contains(latent, 3000, objects[i]));
    free_all(idle, objects, 4000);
    destroy_empty(idle);
    destroy_empty(busy);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(those_that_are_used_more_keep_what_they_have)
{
    struct prudence_cache *busy = deferring_cache(256, NULL);
    struct prudence_cache *other = deferring_cache(256, NULL);
    unsigned before;

    churn(busy, 4000, 12);
    before = size_here(busy);
    for (unsigned i = 0; i < 5; i++) {
        churn(busy, 4000, 5);
        churn(other, 20, 2);
        assert_int_equal(size_here(busy), before);
    }
    destroy_empty(busy);
    destroy_empty(other);
}

/* No cache gives for a long time, so asking pauses. */
TEST(asking_in_vain_is_rare)
{
    struct prudence_cache *busy = deferring_cache(256, NULL);
    struct prudence_cache *other = deferring_cache(256, NULL);
    struct cpu_budget *budget;
    void *object;

    churn(busy, 4000, 12);
    allocate_all(other, &object, 1);
    budget = &slab_budgets[os_cpu_current()];
    store_relaxed(&budget->in_vain, 0u);
    store_relaxed(&budget->pause, 0u);
    for (unsigned i = 0; i < 40; i++) {
        churn(busy, 4000, 1);
        budget_share_for(other, other->body->size_max);
    }
    assert_true(budget->in_vain >= 15);
    free_all(other, &object, 1);
    destroy_empty(busy);
    destroy_empty(other);
}

/* Object caches that fill the budget, and then begin to defer. */
TEST(a_ring_counts_from_its_first_object_on)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache *cache = fixed_cache(1024, 0, domain);
    struct prudence_cache *other = fixed_cache(1024, 0, domain);
    unsigned before;
    void *object;

    churn(other, 1000, 20);
    churn(cache, 1000, 20);
    before = size_here(cache);
    assert_int_equal(charge_here(cache), (int64_t)before * 1088);
    object = prudence_cache_alloc(cache);
    prudence_cache_free_deferred(cache, object);
    assert_int_equal(size_here(cache), before / 2);
    assert_int_equal(charge_here(cache), (int64_t)before * 1088);
    assert_int_equal(used_here(), charge_here(cache) + charge_here(other));
    check_books(cache);
    destroy_empty(cache);
    destroy_empty(other);
    assert_int_equal(used_here(), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* Destroys the cache that the hand points to. */
TEST(the_hand_passes_over_destroyed_caches)
{
    struct prudence_cache *cache = fixed_cache(256, 0, NULL), *other = deferring_cache(256, NULL);
    struct cpu_budget *budget = &slab_budgets[os_cpu_current()];
    void *object;

    allocate_all(cache, &object, 1);
    budget->hand = &other->link;
    destroy_empty(other);
    assert_true(budget->hand != &other->link);
    churn(cache, 4000, 20);
    free_all(cache, &object, 1);
    destroy_empty(cache);
}

/* With thousands of rings, small ones hold less, so that safe objects in rings leave room under
 * latent_limit. */
TEST(floors_are_lower_where_rings_are_many)
{
    struct prudence_cache *cache = deferring_cache(64, NULL);
    struct prudence_cache *small = fixed_cache(64, 0, NULL);

    churn(cache, 8000, 12);
    assert_int_equal(budget_least(small), 16);
    assert_int_equal(prudence_option_set("latent_limit", "512K"), 0);
    assert_true(used_here() > (int64_t)(512 * KIB));
    assert_int_equal(budget_least(small), 8);
    assert_int_equal(prudence_option_set("latent_limit", "32M"), 0);
    assert_int_equal(budget_least(small), 16);
    destroy_empty(cache);
    destroy_empty(small);
}

/* A full ring that may not grow holds too little for a grace period. */
TEST(a_small_ring_waits_for_what_others_defer)
{
    struct prudence_domain *domain = prudence_domain_create("few", PRUDENCE_DOMAIN_MEMB, NULL);
    struct prudence_cache *cache;
    uint64_t sequence;
    void *object;

    assert_int_equal(prudence_option_set("cache_per_cpu", "1"), 0);
    cache = deferring_cache(64, domain);
    assert_int_equal(size_here(cache), 1);
    while (stack_count(&cpu_here(cache)->line))
        object_cache_pop(cpu_here(cache));
    sequence = load_relaxed(&domain->shared.sequence);
    limit_due_clear(os_cpu_current());
    allocate_all(cache, &object, 1);
    assert_int_equal(latent_cache_count(cpu_here(cache)), 1);
    assert_true(load_relaxed(&domain->shared.sequence) == sequence);
    free_all(cache, &object, 1);
    assert_int_equal(prudence_option_set("cache_per_cpu", "2M"), 0);
    destroy_empty(cache);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(what_is_safe_counts_as_cached)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache *cache = fixed_cache(64, 32, domain);
    struct prudence_cache_stats stats;

    allocate_all(cache, objects, 16);
    defer_all(cache, objects, 16);
    latent_cache_close(cache, cpu_here(cache));
    stats = stats_of(cache);
    assert_int_equal(stats.objects_latent, 16);
    assert_int_equal(stats.bytes_latent, 16 * 64);
    prudence_manual_advance(domain);
    assert_int_equal(stats_of(cache).objects_latent, 0);
    assert_int_equal(stats_of(cache).bytes_latent, 0);
    assert_int_equal(stats_of(cache).objects_cached, stats.objects_cached + 16);
    assert_int_equal(stats_of(cache).bytes_cached, (stats.objects_cached + 16) * 64);
    destroy_empty(cache);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(options_change_the_budget)
{
    struct prudence_cache *cache = deferring_cache(64, NULL);
    struct prudence_cache *other = deferring_cache(64, NULL);
    struct prudence_stats stats;

    assert_int_equal(prudence_option_set("cache_per_cpu", "64K"), 0);
    assert_int_equal(prudence_option_set("cache_total", "1M"), 0);
    prudence_stats(&stats);
    assert_int_equal(stats.cache_per_cpu, 64 * KIB);
    assert_int_equal(stats.cache_total, MIB);
    churn(cache, 2000, 20);
    churn(other, 2000, 20);
    assert_true(used_here() <= (int64_t)((4 + 1) * 64 * KIB)); /* the first cache was alone */
    assert_int_equal(prudence_option_set("cache_per_cpu", "2M"), 0);
    assert_int_equal(prudence_option_set("cache_total", "256M"), 0);
    churn(other, 8000, 20);
    assert_true(charge_here(other) >= (int64_t)(512 * KIB));
    destroy_empty(cache);
    destroy_empty(other);
}

/* The option raises a floor while the budget is used up. A cache that asks for less than the floor
 * gets no more than the arrays have slots for; otherwise stack and ring would leave their block. */
TEST(a_floor_is_no_more_than_was_asked_for)
{
    struct prudence_cache *cache, *greedy[4];
    unsigned before;

    assert_int_equal(prudence_option_set("cache_per_cpu", "1"), 0);
    cache = deferring_cache(64, NULL);
    churn(cache, 40, 3);
    before = size_here(cache);
    for (unsigned i = 0; i < 4; i++) {
        greedy[i] = fixed_cache(32768, 16, NULL);
        churn(greedy[i], 64, 1);
    }
    assert_int_equal(prudence_option_set("cache_per_cpu", "1M"), 0);
    assert_true(used_here() > (int64_t)MIB && before < budget_least(cache) / 2);
    for (unsigned i = 0; i < 10 && size_here(cache) < budget_least(cache); i++) {
        churn(cache, 2000, 1);
        assert_true(size_here(cache) <= cpu_here(cache)->slots);
    }
    assert_int_equal(size_here(cache), budget_least(cache)); /* but reaches the floor */
    destroy_empty(cache);
    for (unsigned i = 0; i < 4; i++)
        destroy_empty(greedy[i]);
    assert_int_equal(prudence_option_set("cache_per_cpu", "2M"), 0);
}

SUITE(pin_thread(), prudence_option_set("cache_per_cpu", "2M"))
