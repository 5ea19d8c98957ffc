/* SPDX-License-Identifier: MIT */
/*
 * Rule 6: a gentle pre-flush uses only as many transfer batches as allowed, even if objects of
 * several nodes alternate. When the pool of transfer batches is used up, every object is still
 * counted once.
 *
 * ctest: not-with thread (one thread)
 */
#include "slab/preflush.h"
#include "support/slab_test.h"

#define ROOM 256 /* batches of 128 */

/* Makes a full object cache, and a closed batch of 128 objects that alternate between two nodes. */
static struct prudence_cache *alternating_cache(void)
{
    struct prudence_cache *cache = fixed_cache(64, ROOM, manual_domain());
    void *here[2 * ROOM], *there[ROOM];

    injected_cpu = 63; /* node 3 */
    allocate_all(cache, there, ROOM);
    injected_cpu = 0;
    allocate_all(cache, here, 2 * ROOM);
    for (unsigned i = 0; i < ROOM; i++)
        assert_int_not_equal(slab_of(here[i])->node, slab_of(there[i])->node);
    for (unsigned i = 0; stack_count(&cpu_here(cache)->line) < ROOM; i++)
        free_all(cache, here + 2 * ROOM - 1 - i, 1);
    for (unsigned i = 0; i < 65; i++) {
        defer_all(cache, here + i, 1);
        defer_all(cache, there + i, 1);
    }
    return cache;
}

TEST(two_transfer_batches_are_two)
{
    struct prudence_cache *cache = alternating_cache();
    unsigned moved = preflush_cpu(cache, 0, 2);

    assert_true(moved >= 1 && moved <= 3); /* one object in each, and the one carried over */
    check_books(cache);
}

TEST(beyond_the_pool_every_object_counts_once)
{
    struct prudence_cache *cache = alternating_cache();
    struct prudence_cache_stats before = stats_of(cache), after;

    preflush_cpu(cache, 0, 1000);
    after = stats_of(cache);
    assert_int_equal(after.deferred_frees, before.deferred_frees);
    assert_int_equal(after.objects_live, before.objects_live);
    assert_int_equal(after.objects_latent, before.objects_latent);
    check_books(cache);
}

SUITE(pin_thread(), inject_topology())
