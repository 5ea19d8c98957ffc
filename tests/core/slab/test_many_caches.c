/* SPDX-License-Identifier: MIT */
/*
 * Caches of one CPU share two amounts: a grace period is due for the deferred bytes of all caches,
 * and a ring reserves less of latent_limit ahead when many rings do.
 *
 * ctest: not-with thread (one thread)
 */
#include "gp/user/domain.h"
#include "slab/reclaim/limit.h"
#include "support/slab_test.h"

#define OBJECTS 16

/* Empties the object cache, defers one object, and allocates another, which is a miss. */
static void miss_with_one_deferred(struct prudence_cache *cache, void **objects, unsigned *count)
{
    while (stack_count(&cpu_here(cache)->line))
        allocate_all(cache, objects + (*count)++, 1);
    defer_all(cache, objects + --*count, 1);
    allocate_all(cache, objects + (*count)++, 1);
}

TEST(what_is_due_counts_all_caches)
{
    struct prudence_domain *domain = prudence_domain_create("due", PRUDENCE_DOMAIN_MEMB, NULL);
    struct prudence_cache *cache = fixed_cache(64, OBJECTS, domain);
    uint64_t sequence = load_relaxed(&domain->shared.sequence);
    unsigned cpu = os_cpu_current(), count = 1;
    void *objects[8 * OBJECTS];

    allocate_all(cache, objects, 1);
    limit_due_clear(cpu);
    miss_with_one_deferred(cache, objects, &count);
    assert_true(load_relaxed(&domain->shared.sequence) == sequence); /* not worth a grace period */
    assert_int_equal(limit_due(cpu), 64);
    limit_due_note(cpu, (size_t)4 << 20); /* as if deferred by other caches */
    miss_with_one_deferred(cache, objects, &count);
    assert_true(load_relaxed(&domain->shared.sequence) != sequence);
    assert_int_equal(limit_due(cpu), 0);
    assert_int_equal(stats_of(cache).hits_after_merge, 1); /* the grace period ended at once */
    free_all(cache, objects, count);
    destroy_empty(cache);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(a_ring_reserves_less_where_many_do)
{
    const int64_t all = ((int64_t)64 << 20) / os_cpu_count() / 2;
    unsigned cpu = os_cpu_current(), before, after;

    assert_int_equal(prudence_option_set("latent_limit", "64M"), 0);
    before = limit_ahead_share(cpu, 64, 0, 1 << 20);
    limit_ahead_note(cpu, all);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(limit_ahead_share(cpu, 64, 0, 1 << 20), 0);
    limit_ahead_note(cpu, -all);
    after = limit_ahead_share(cpu, 64, 0, 1 << 20);
    assert_in_range(after, 1, before / 16);
    assert_int_equal(limit_ahead_share(cpu, 64, 0, 1 << 20), after + 1); /* grows again */
    assert_int_equal(prudence_option_set("latent_limit", "32M"), 0);
    assert_int_equal(limit_ahead_share(cpu, 64, 0, 1 << 20), before / 2);
}

SUITE(pin_thread())
