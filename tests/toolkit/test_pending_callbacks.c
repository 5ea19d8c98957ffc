/* SPDX-License-Identifier: MIT */
/*
 * An object whose head is queued for a callback will soon be free. Until the callback has run,
 * refills avoid the object's slab, as they avoid slabs with latent objects.
 */
#include <prudence/call.h>

#include "support/gp_reader.h"
#include "support/slab_test.h"

static struct prudence_cache *cache;
static struct prudence_domain *domain;
static struct slab_node *node;
static void *objects[2][256]; /* by slab */
static struct slab *slabs[2];

static void nothing(struct prudence_head *head)
{
}

/* Makes two partial slabs, the first with more live objects. */
static void two_slabs(void)
{
    cache = fixed_cache(1024, 16, manual_domain());
    node = node_here(cache);
    for (unsigned i = 0; i < 2; i++) {
        slabs[i] = slab_grow(cache, (unsigned)(node - cache->body->nodes), OS_ALLOC_DEFAULT);
        assert_non_null(slabs[i]);
        node_add_slab(node, slabs[i], NULL, 0);
        node_take_all(cache, node, objects[i], cache->body->capacity);
    }
    node_put(cache, objects[0] + 10, cache->body->capacity - 10);
    node_put(cache, objects[1] + 6, cache->body->capacity - 6);
}

static struct slab *slab_taken_from(void)
{
    void *object;

    assert_int_equal(node_take(cache, node, &object, 1), 1);
    node_put(cache, &object, 1);
    return slab_of(object);
}

/* Returns a place for a head in the middle of the object. */
static struct prudence_head *head_in(void *object)
{
    return (struct prudence_head *)((char *)object + 500 / 16 * 16);
}

/* Waits for all callbacks. A callback's cookie may be taken after an advance, so advance
 * repeatedly. */
static void all_callbacks_run(void)
{
    while (load_relaxed(&slabs[0]->leaving) || load_relaxed(&slabs[1]->leaving)) {
        prudence_manual_advance(domain);
        pause_ms(1);
    }
    assert_int_equal(prudence_domain_barrier(domain), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(refills_avoid_slabs_with_pending_callbacks)
{
    domain = prudence_domain_create("manual", PRUDENCE_DOMAIN_MANUAL, NULL);
    two_slabs();
    assert_ptr_equal(slab_taken_from(), slabs[0]);
    for (unsigned i = 0; i < 5; i++)
        prudence_domain_call(domain, head_in(objects[0][i]), nothing);
    assert_int_equal(slabs[0]->leaving, 5);
    assert_ptr_equal(slab_taken_from(), slabs[1]); /* 6 objects remain there, 5 here */
    all_callbacks_run();
    assert_ptr_equal(slab_taken_from(), slabs[0]);
}

/* If all slabs have such objects, a refill takes from them rather than grow the cache. */
TEST(such_a_slab_is_used_before_the_cache_grows)
{
    unsigned taken;

    domain = prudence_domain_create("manual", PRUDENCE_DOMAIN_MANUAL, NULL);
    two_slabs();
    for (unsigned i = 0; i < 10; i++)
        prudence_domain_call(domain, head_in(objects[0][i]), nothing);
    for (unsigned i = 0; i < 6; i++)
        prudence_domain_call(domain, head_in(objects[1][i]), nothing);
    taken = node_take(cache, node, objects[0] + 10, cache->body->capacity - 10);
    assert_int_equal(taken, cache->body->capacity - 10);
    all_callbacks_run();
}

SUITE(pin_thread())
