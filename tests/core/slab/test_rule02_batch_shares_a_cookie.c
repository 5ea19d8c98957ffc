/* SPDX-License-Identifier: MIT */
/*
 * Rule 2: objects are not tracked one by one. Consecutive deferrals share a batch and the batch's
 * one cookie. The deferral after the last slot closes a full batch.
 *
 * ctest: inlined-too
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

#define ROOM 32 /* batches of 16 */

static void *objects[ROOM];

TEST(sixteen_in_a_row_are_one_batch)
{
    struct prudence_cache *cache = fixed_cache(64, ROOM, manual_domain());
    struct cpu_cache *cpu;

    assert_int_equal(cache->body->batch, ROOM / 2);
    allocate_all(cache, objects, ROOM);
    cpu = cpu_here(cache);
    defer_all(cache, objects, 16);
    assert_int_equal(cpu->batch_tail, cpu->batch_head); /* all in the open batch */
    defer_all(cache, objects + 16, 1);
    assert_int_equal(cpu->batch_tail - cpu->batch_head, 1);
    assert_int_equal(batches_of(cpu)[0].end, 16);
    assert_int_equal(cpu->closed, 16);
    prudence_manual_advance(cache->domain);
    defer_all(cache, objects + 17, 15);
    assert_int_equal(cpu->batch_tail - cpu->batch_head, 1);
    destroy_empty(cache);
}

TEST(a_batch_becomes_safe_as_a_whole)
{
    struct prudence_cache *cache = fixed_cache(64, ROOM, manual_domain());
    void *after[ROOM];

    allocate_all(cache, objects, ROOM);
    defer_all(cache, objects, 17); /* a closed batch of 16, and an open one of 1 */
    prudence_manual_advance(cache->domain);
    after[0] = prudence_cache_alloc(cache); /* a miss merges the whole safe batch */
    assert_int_equal(stats_of(cache).merged_objects, 16);
    assert_int_equal(stats_of(cache).merges, 1);
    allocate_all(cache, after + 1, 15);
    for (unsigned i = 0; i < 16; i++)
        assert_true(contains(after, 16, objects[i]));
    free_all(cache, after, 16);
    free_all(cache, objects + 17, 15);
    destroy_empty(cache);
}

/* Misses close batches of single objects while a reader delays a grace period. Batches with the
 * same cookie become one batch, so none stays open for lack of a place for the cookie. */
TEST(closed_under_one_cookie_they_are_one)
{
    struct prudence_cache *cache = fixed_cache(64, 256, manual_domain());
    static void *many[OBJECTS_MAX], *others[300];
    struct cpu_cache *cpu;
    unsigned held = 300, deferred;

    allocate_all(cache, many, held);
    cpu = cpu_here(cache);
    while (stack_count(&cpu->line))
        allocate_all(cache, many + held++, 1);
    defer_all(cache, many, 200);
    for (deferred = 200; deferred < 250; deferred++) {
        while (stack_count(&cpu->line))
            allocate_all(cache, many + held++, 1);
        allocate_all(cache, many + held++, 1); /* a miss */
        defer_all(cache, many + deferred, 1);
    }
    assert_true(cpu->batch_tail - cpu->batch_head <= 2);
    while (stack_count(&cpu->line))
        allocate_all(cache, many + held++, 1);
    allocate_all(cache, many + held++, 1);
    assert_int_equal(cpu->closed, cpu->line.ring_tail);
    prudence_manual_advance(cache->domain);
    while (stack_count(&cpu->line))
        allocate_all(cache, many + held++, 1);
    allocate_all(cache, others, 250); /* one grace period is enough for all */
    for (unsigned i = 0; i < 250; i++)
        assert_true(contains(many, 250, others[i]));
    free_all(cache, others, 250);
    free_all(cache, many + 250, held - 250);
    destroy_empty(cache);
}

SUITE(pin_thread())
