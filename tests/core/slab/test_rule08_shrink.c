/* SPDX-License-Identifier: MIT */
/*
 * Rule 8: a node with more free slabs than the limit shrinks to the limit, and on request to none.
 * It never gives away a slab with a latent bit.
 *
 * ctest: not-with thread (one thread)
 */
#include <unistd.h>

#include "support/slab_test.h"

#define SLABS 20
#define MANY  40 /* caches */

static void *objects[OBJECTS_MAX];

/* Makes SLABS full slabs, whose objects are taken past the object cache. */
static struct prudence_cache *full_slabs(const char *decay)
{
    struct prudence_cache *cache = fixed_cache(1024, 16, manual_domain());

    assert_int_equal(prudence_option_set("decay", decay), 0);
    for (unsigned i = 0; i < SLABS; i++) {
        node_add_slab(node_here(cache), slab_grow(cache, 0, OS_ALLOC_DEFAULT), NULL, 0);
        node_take_all(cache, node_here(cache), objects + i * cache->body->capacity,
                      cache->body->capacity);
    }
    assert_int_equal(stats_of(cache).slabs_now, SLABS);
    return cache;
}

TEST(free_slabs_beyond_the_limit_go_back)
{
    struct prudence_cache *cache = full_slabs("0");

    node_put(cache, objects, SLABS * cache->body->capacity);
    assert_int_equal(stats_of(cache).slabs_now, cache->body->free_limit);
    assert_int_equal(stats_of(cache).shrinks, SLABS - cache->body->free_limit);
    check_books(cache);
    assert_int_equal(prudence_cache_shrink(cache),
                     cache->body->free_limit * cache->body->slab_bytes);
    assert_int_equal(stats_of(cache).slabs_now, 0);
    check_books(cache);
}

TEST(slabs_wanted_just_now_are_kept_for_a_while)
{
    struct prudence_cache *cache = full_slabs("1s");

    node_put(cache, objects, SLABS * cache->body->capacity);
    assert_int_equal(stats_of(cache).slabs_now, SLABS);
    assert_int_equal(prudence_cache_shrink(cache), SLABS * cache->body->slab_bytes);
    check_books(cache);
}

/* The limit is each cache's. A program with many sizes that frees all has little use for so many
 * slabs, so together the caches keep fewer, also if none of them reaches its limit. */
TEST(many_caches_keep_few_free_slabs_together)
{
    size_t kept = 0, freed = 0;

    for (unsigned i = 0; i < MANY; i++) {
        struct prudence_cache *cache = full_slabs("0");
        unsigned capacity = cache->body->capacity, most = cache->body->free_limit;

        for (unsigned slab = 0; slab < most; slab++)
            node_put(cache, objects + slab * capacity, capacity);
        assert_true(stats_of(cache).slabs_now > SLABS - most);
        kept += (stats_of(cache).slabs_now - (SLABS - most)) * cache->body->slab_bytes;
        freed += most * cache->body->slab_bytes;
        check_books(cache);
    }
    assert_true(kept < freed / 2);
}

static void pause_until_later(void)
{
    uint64_t now = os_clock_coarse_ns();

    while (os_clock_coarse_ns() == now)
        usleep(1000);
}

TEST(slabs_wanted_long_ago_go_back)
{
    struct prudence_cache *cache = full_slabs("1us");

    node_put(cache, objects, SLABS * cache->body->capacity);
    for (unsigned i = 0; i < 3; i++) {
        void *object;

        pause_until_later();
        node_take_all(cache, node_here(cache), &object, 1);
        node_put(cache, &object, 1);
    }
    assert_true(stats_of(cache).slabs_now <= cache->body->free_limit + 1);
    check_books(cache);
}

TEST(a_slab_with_a_latent_bit_stays)
{
    struct prudence_cache *cache = full_slabs("0");
    unsigned capacity = cache->body->capacity;

    for (unsigned i = 0; i < SLABS; i++) /* some in `waiting`, some in `next` */
        node_put_latent(slab_of(objects[i * capacity]), objects[i * capacity], false);
    for (unsigned i = 0; i < SLABS; i++)
        node_put(cache, objects + i * capacity + 1, capacity - 1);
    assert_int_equal(stats_of(cache).slabs_now, SLABS);
    assert_int_equal(prudence_cache_shrink(cache), 0);
    assert_int_equal(stats_of(cache).slabs_now, SLABS);
    check_books(cache);
    prudence_manual_advance(cache->domain);
    assert_int_equal(prudence_cache_shrink(cache), SLABS * cache->body->slab_bytes);
    check_books(cache);
}

SUITE(pin_thread())
