/* SPDX-License-Identifier: MIT */
/*
 * The work of one visit under a node's lock is bounded, however much there is to merge or to give
 * back, because a kernel does it with interrupts off.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

#define SLABS         200
#define SLABS_AT_MOST 64 /* per visit */

static void *objects[OBJECTS_MAX];

/* Makes SLABS full slabs, whose objects are taken past the object cache. */
static struct prudence_cache *full_slabs(void)
{
    struct prudence_cache *cache = fixed_cache(4096, 16, manual_domain());

    assert_true(SLABS * cache->body->capacity <= OBJECTS_MAX);
    for (unsigned i = 0; i < SLABS; i++) {
        node_add_slab(node_here(cache), slab_grow(cache, 0, OS_ALLOC_DEFAULT), NULL, 0);
        node_take_all(cache, node_here(cache), objects + i * cache->body->capacity,
                      cache->body->capacity);
    }
    return cache;
}

/* Defers past the latent cache. The first object of a slab waits for one grace period, the others
 * for the next. */
static void defer_everything(struct prudence_cache *cache)
{
    for (unsigned i = 0; i < SLABS * cache->body->capacity; i++)
        assert_true(node_put_latent(slab_known(objects[i]), objects[i], false));
    assert_int_equal(stats_of(cache).objects_latent, SLABS * cache->body->capacity);
    assert_int_equal(stats_of(cache).bytes_latent,
                     SLABS * cache->body->capacity * cache->body->stride);
}

/* Visits the node as long as it reports more work. Returns the number of visits. */
static unsigned visit(struct prudence_cache *cache, size_t *bytes)
{
    struct prudence_cache_stats before, after;
    unsigned visits = 0;
    bool more;

    do {
        before = stats_of(cache);
        more = node_shrink_some(node_here(cache), 0, ~(size_t)0, bytes);
        after = stats_of(cache);
        assert_true(after.merges - before.merges <= SLABS_AT_MOST);
        assert_true(after.shrinks - before.shrinks <= SLABS_AT_MOST);
        check_books(cache);
        visits++;
    } while (more);
    return visits;
}

TEST(merging_and_giving_back)
{
    struct prudence_cache *cache = full_slabs();
    size_t bytes = 0;

    defer_everything(cache);
    prudence_manual_advance(cache->domain);
    assert_true(visit(cache, &bytes) >= SLABS / SLABS_AT_MOST);
    assert_int_equal(stats_of(cache).merged_objects, SLABS);
    prudence_manual_advance(cache->domain);
    assert_true(visit(cache, &bytes) >= SLABS / SLABS_AT_MOST);
    assert_int_equal(stats_of(cache).slabs_now, 0);
    assert_int_equal(stats_of(cache).objects_latent, 0);
    assert_int_equal(stats_of(cache).bytes_latent, 0);
    assert_int_equal(bytes, SLABS * cache->body->slab_bytes);
}

TEST(a_free_of_one_object)
{
    struct prudence_cache *cache = full_slabs();
    void *last = objects[SLABS * cache->body->capacity - 1];

    assert_int_equal(prudence_option_set("decay", "1s"), 0); /* keeps all */
    node_put(cache, objects, SLABS * cache->body->capacity - 1);
    assert_int_equal(stats_of(cache).shrinks, 0);
    assert_int_equal(prudence_option_set("decay", "0"), 0); /* keeps none */
    node_put(cache, &last, 1);
    assert_int_equal(stats_of(cache).shrinks, SLABS_AT_MOST);
    check_books(cache);
}

TEST(shrinking_does_not_stop_before_all_is_done)
{
    struct prudence_cache *cache = full_slabs();

    defer_everything(cache);
    prudence_manual_advance(cache->domain);
    assert_int_equal(node_shrink(node_here(cache), 0), 0);
    prudence_manual_advance(cache->domain);
    assert_int_equal(node_shrink(node_here(cache), 0), SLABS * cache->body->slab_bytes);
    check_books(cache);
}

/* Gives back whole slabs, and no more of them than necessary. */
TEST(as_much_is_given_back_as_is_wanted)
{
    struct prudence_cache *cache = full_slabs();

    assert_int_equal(prudence_option_set("decay", "1s"), 0); /* keeps all */
    node_put(cache, objects, SLABS * cache->body->capacity);
    assert_int_equal(prudence_option_set("decay", "0"), 0);
    assert_int_equal(node_shrink_until(node_here(cache), 0, 1), cache->body->slab_bytes);
    assert_int_equal(node_shrink_until(node_here(cache), 0, 3 * cache->body->slab_bytes),
                     3 * cache->body->slab_bytes);
    assert_int_equal(node_shrink_until(node_here(cache), 0, 70 * cache->body->slab_bytes + 1),
                     71 * cache->body->slab_bytes);
    assert_int_equal(stats_of(cache).slabs_now, SLABS - 75);
    check_books(cache);
}

SUITE(pin_thread(), inject_topology())
