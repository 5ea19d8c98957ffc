/* SPDX-License-Identifier: MIT */
/*
 * Latent objects of a hazard domain become safe one by one: of rings, latent slabs, and blocks; at
 * the limit, with a reader that stays, in a cache that goes, without memory.
 *
 * ctest: not-with thread (one thread)
 */
#include <prudence/hazard.h>
#include <prudence/structure.h>

#include "support/slab_test.h"
#include "support/stats.h"

static struct prudence_domain *domain;
static void *objects[OBJECTS_MAX], *fresh[OBJECTS_MAX];

static int set_up(void **state)
{
    pin_thread();
    domain = prudence_domain_create("hazards", PRUDENCE_DOMAIN_HAZARD, NULL);
    return domain == NULL;
}

static int tear_down(void **state)
{
    return prudence_domain_destroy(domain);
}

static unsigned latent_in(struct prudence_cache *cache)
{
    return (unsigned)stats_of(cache).objects_latent;
}

TEST(a_ring_is_polled)
{
    struct prudence_cache *cache = fixed_cache(128, 256, domain);
    struct prudence_hazard *hazard = prudence_hazard_acquire();

    allocate_all(cache, objects, 200);
    prudence_hazard_set(hazard, objects[77]);
    defer_all(cache, objects, 200);
    assert_int_equal(latent_in(cache), 200);
    prudence_cache_shrink(cache);
    assert_int_equal(latent_in(cache), 1);
    check_books(cache);
    allocate_all(cache, fresh, 1000);
    assert_false(contains(fresh, 1000, objects[77]));
    prudence_hazard_release(hazard);
    free_all(cache, fresh, 1000);
    prudence_cache_shrink(cache);
    assert_int_equal(latent_in(cache), 0);
    check_books(cache);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

/* A name that stays after its object goes back to a latent slab that waits already: by `next`. */
TEST(what_is_named_goes_back)
{
    struct prudence_cache *cache = fixed_cache(128, 16, domain);
    struct prudence_hazard *hazards[3];

    allocate_all(cache, objects, 256);
    for (unsigned i = 0; i < 3; i++) {
        hazards[i] = prudence_hazard_acquire();
        prudence_hazard_set(hazards[i], (char *)objects[3 * i] + 9);
    }
    defer_all(cache, objects, 256); /* mostly to latent slabs, because the ring is short */
    for (unsigned i = 0; i < 3; i++) {
        prudence_cache_shrink(cache);
        assert_int_equal(latent_in(cache), 3 - i);
        check_books(cache);
        prudence_hazard_release(hazards[i]);
    }
    prudence_cache_shrink(cache);
    assert_int_equal(latent_in(cache), 0);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

/* Two named objects of one slab, deferred one after the other: the second is in `next`, and waits
 * once the first has gone. */
TEST(the_next_ones_wait_when_the_waiting_have_gone)
{
    struct prudence_cache *cache = fixed_cache(128, 16, domain);
    struct prudence_hazard *hazards[2];

    allocate_all(cache, objects, 2);
    for (unsigned i = 0; i < 2; i++) {
        hazards[i] = prudence_hazard_acquire();
        prudence_hazard_set(hazards[i], objects[i]);
        prudence_cache_free_deferred(cache, objects[i]);
        prudence_cache_shrink(cache);
        assert_int_equal(latent_in(cache), i + 1);
        check_books(cache);
    }
    prudence_hazard_release(hazards[0]);
    prudence_hazard_release(hazards[1]);
    prudence_cache_shrink(cache);
    assert_int_equal(latent_in(cache), 0);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

/* Without a shrink, too: allocations and deferrals poll what they need. */
TEST(garbage_with_a_reader_that_stays_is_bounded)
{
    struct prudence_cache *cache = fixed_cache(512, 0, domain);
    struct prudence_hazard *hazard = prudence_hazard_acquire();
    struct prudence_stats before = stats_now(), after;
    void *named = prudence_cache_alloc(cache);
    uint64_t most = 0;

    prudence_hazard_set(hazard, named);
    prudence_cache_free_deferred(cache, named);
    for (unsigned i = 0; i < 400000; i++) {
        void *object = prudence_cache_alloc(cache);

        assert_ptr_not_equal(object, named);
        prudence_cache_free_deferred(cache, object);
        if (i % 1000 == 0 && stats_of(cache).objects_latent > most)
            most = stats_of(cache).objects_latent;
    }
    prudence_stats(&after);
    assert_true(most < 8192);
    assert_int_equal(after.throttle_waits, before.throttle_waits);
    check_books(cache);
    prudence_hazard_release(hazard);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

/* The limit is reached by what is live in rings, and no reader is waited for. */
TEST(the_limit_holds_without_a_wait_for_the_reader)
{
    struct prudence_cache *cache = fixed_cache(4096, 0, domain);
    struct prudence_hazard *hazard = prudence_hazard_acquire();
    struct prudence_stats before, after;

    prudence_option_set("latent_limit", "1M");
    before = stats_now();
    allocate_all(cache, objects, 2000);
    prudence_hazard_set(hazard, objects[5]);
    for (unsigned i = 0; i < 2000; i++) {
        prudence_cache_free_deferred(cache, objects[i]);
        assert_true(stats_now().bytes_latent <= 1 << 20);
    }
    after = stats_now();
    assert_int_equal(after.throttle_expiries, before.throttle_expiries);
    check_books(cache);
    prudence_hazard_release(hazard);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    prudence_option_set("latent_limit", "32M");
}

TEST(blocks_are_polled)
{
    struct prudence_cache *cache = prudence_cache_create_blocks("blocks", domain);
    struct prudence_hazard *hazard = prudence_hazard_acquire();

    assert_non_null(cache);
    for (unsigned i = 0; i < 10; i++) {
        objects[i] = prudence_cache_alloc_block(cache, (i + 1) * 50000, NULL);
        assert_non_null(objects[i]);
    }
    prudence_hazard_set(hazard, (char *)objects[9] + 499999); /* the last byte that was asked for */
    for (unsigned i = 0; i < 10; i++)
        prudence_cache_free_deferred(cache, objects[i]);
    prudence_cache_shrink(cache);
    assert_int_equal(latent_in(cache), 1);
    *((volatile char *)objects[9] + 499999) = 1; /* still there */
    prudence_hazard_release(hazard);
    prudence_cache_shrink(cache);
    assert_int_equal(latent_in(cache), 0);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

/* A name of something else does not hold up the end of a cache. (A slot that other threads may
 * release is not this thread's own name, which would be refused.) */
TEST(a_cache_is_destroyed_whatever_else_is_named)
{
    struct prudence_cache *cache = fixed_cache(64, 0, domain);
    struct prudence_hazard *hazard = prudence_hazard_acquire_movable();
    static char something_else;

    prudence_hazard_set(hazard, &something_else);
    allocate_all(cache, objects, 1000);
    defer_all(cache, objects, 1000);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    prudence_hazard_release(hazard);
}

static unsigned destroyed;

static void destructor(void *object, void *context)
{
    destroyed++;
}

TEST(destructors_run_for_what_is_polled)
{
    struct prudence_cache_attr attr = {
        .size = sizeof attr, .destructor = destructor, .domain = domain};
    struct prudence_cache *cache = prudence_cache_create("destructed", 96, &attr);
    struct prudence_hazard *hazard = prudence_hazard_acquire();

    destroyed = 0;
    allocate_all(cache, objects, 300);
    prudence_hazard_set(hazard, objects[299]);
    defer_all(cache, objects, 300);
    prudence_cache_shrink(cache);
    assert_int_equal(latent_in(cache), 1);
    prudence_hazard_release(hazard);
    assert_int_equal(prudence_cache_barrier(cache), 0);
    assert_int_equal(destroyed, 300);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

/* Allocations that get no page find all that no hazard pointer names. */
TEST(no_memory)
{
    struct prudence_cache *cache = fixed_cache(1024, 0, domain);
    struct prudence_hazard *hazard = prudence_hazard_acquire();
    unsigned got = 0;

    allocate_all(cache, objects, 500);
    prudence_hazard_set(hazard, objects[0]);
    defer_all(cache, objects, 500);
    memory_fail(1, ~0u);
    while (got < 500 && (fresh[got] = prudence_cache_alloc(cache)))
        got++;
    memory_succeed();
    assert_true(got >= 499);
    assert_false(contains(fresh, got, objects[0]));
    prudence_hazard_release(hazard);
    free_all(cache, fresh, got);
    prudence_cache_shrink(cache);
    check_books(cache);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

SUITE_BETWEEN(set_up, tear_down)
