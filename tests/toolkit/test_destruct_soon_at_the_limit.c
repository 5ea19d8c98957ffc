/* SPDX-License-Identifier: MIT */
/*
 * A deferral to a cache with PRUDENCE_CACHE_DESTRUCT_SOON whose latent cache is at its limit while
 * the object cache is full. Safe objects of such a cache are never merged into the object cache, so
 * they must go to their slabs to make room. No object may be lost, and no latent one may come back
 * as free.
 */
#include "toolkit/callbacks/callback_worker.h"
#include "slab/cache.h"
#include "slab/latent_cache.h"
#include "support/slab_test.h"

#define SIZE    64
#define ROOM    16 /* objects in an object cache; a batch is half of that */
#define OBJECTS 100

static void *objects[OBJECTS];
static unsigned char destroyed[OBJECTS];
static struct prudence_cache *cache;

static void destroy(void *object, void *context)
{
    for (unsigned i = 0; i < OBJECTS; i++)
        destroyed[i] += objects[i] == object;
}

static int set_up(void **state)
{
    struct prudence_cache_attr attr = {.size = sizeof attr,
                                       .flags = PRUDENCE_CACHE_DESTRUCT_SOON,
                                       .destructor = destroy,
                                       .domain = manual_domain(),
                                       .object_cache_bytes = ROOM * (SIZE + slab_redzone)};

    memset(destroyed, 0, sizeof destroyed);
    cache = prudence_cache_create("soon", SIZE, &attr);
    assert_non_null(cache);
    assert_int_equal(cache->body->size_max, ROOM);
    assert_int_equal(cache->body->batch, ROOM / 2);
    allocate_all(cache, objects, OBJECTS);
    return 0;
}

/* Fills the object cache, and the ring up to its limit, with two batches. */
static unsigned fill_both(void)
{
    unsigned freed = 0;

    while (stack_count(&cpu_here(cache)->line) < ROOM)
        free_all(cache, objects + freed++, 1);
    defer_all(cache, objects + freed, ROOM);
    assert_int_equal(latent_cache_count(cpu_here(cache)), ROOM);
    return freed + ROOM;
}

/* Checks that each object is destroyed exactly once, and that the books balance. */
static void check_end(unsigned gone)
{
    free_all(cache, objects + gone, OBJECTS - gone);
    destroy_empty(cache);
    for (unsigned i = 0; i < OBJECTS; i++)
        assert_int_equal(destroyed[i], 1);
}

/* A regression test: the latent objects of an overflow used to overwrite the free ones of a
 * flush. */
TEST(a_safe_batch_makes_room, set_up)
{
    unsigned gone = fill_both();

    prudence_manual_advance(cache->domain);
    check_books(cache);
    defer_all(cache, objects + gone, 1);
    check_books(cache);
    assert_int_equal(stats_of(cache).objects_latent, ROOM / 2 + 1); /* the open batch, plus one */
    assert_int_equal(stats_of(cache).overflowed_objects, 0);
    check_end(gone + 1);
}

TEST(nothing_safe_overflows, set_up)
{
    unsigned gone = fill_both();

    defer_all(cache, objects + gone, 1);
    check_books(cache);
    assert_int_equal(stats_of(cache).objects_latent, ROOM + 1);
    assert_true(stats_of(cache).overflowed_objects > 0);
    check_end(gone + 1);
}

/* Ends grace periods between any two deferrals, with frees and deferrals in every order. */
TEST(all_ways_in, set_up)
{
    uint64_t random = 88172645463325252u;
    unsigned gone = 0;

    for (unsigned round = 0; round < 20000; round++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        if (gone == OBJECTS) {
            for (unsigned i = 0; i < OBJECTS; i++) {
                objects[i] = NULL;
                objects[i] = prudence_cache_alloc(cache);
                assert_non_null(objects[i]);
            }
            gone = 0;
            check_books(cache);
        }
        if (random % 7 == 0)
            prudence_manual_advance(cache->domain);
        if (random % 3 == 0)
            free_all(cache, objects + gone++, 1);
        else
            defer_all(cache, objects + gone++, 1);
    }
    free_all(cache, objects + gone, OBJECTS - gone);
    memset(objects, 0, sizeof objects);
    destroy_empty(cache);
}

/* No destructors on the worker, so this thread is alone. */
SUITE(pin_thread(), prudence_free(prudence_malloc(1)), callbacks_other_work = NULL)
