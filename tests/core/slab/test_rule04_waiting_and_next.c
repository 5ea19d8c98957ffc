/* SPDX-License-Identifier: MIT */
/*
 * Rule 4: a latent slab keeps two bitmaps. Objects deferred while others wait go to `next`, are not
 * merged with those, and then wait under their own cookie. So under steady deferral every grace
 * period or two merges something, whereas one cookie renewed at each deferral would never merge.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

static void *objects[OBJECTS_MAX];

/* Returns a full slab whose objects, all live, are in `objects`. */
static struct slab *full_slab(void)
{
    struct prudence_cache *cache = fixed_cache(64, 16, manual_domain());

    allocate_all(cache, objects, cache->body->capacity);
    return slab_of(objects[0]);
}

static bool is_in(uint64_t *bits, struct slab *slab, const void *object)
{
    return bits_test(bits, slab_index(slab, object));
}

TEST(next_is_not_merged_with_waiting)
{
    struct slab *slab = full_slab();
    struct prudence_cache *cache = slab->cache;
    void *others[300];

    node_put_latent(slab, objects[0], false);
    node_put_latent(slab, objects[1], false);
    assert_true(is_in(slab_waiting_bits(slab), slab, objects[0]));
    assert_true(is_in(slab_next_bits(slab), slab, objects[1]));
    prudence_manual_advance(cache->domain);
    node_shrink(node_of(slab), 0); /* a visit */
    assert_true(is_in(slab_free_bits(slab), slab, objects[0]));
    assert_true(is_in(slab_waiting_bits(slab), slab, objects[1]));
    assert_int_equal(slab->latent, 1);
    allocate_all(cache, others, 200);
    assert_true(contains(others, 200, objects[0]));
    assert_false(contains(others, 200, objects[1]));
    prudence_manual_advance(cache->domain);
    allocate_all(cache, others, 100);
    assert_true(contains(others, 100, objects[1]));
    check_books(cache);
}

TEST(a_grace_period_before_next_waits_does_not_count)
{
    struct slab *slab = full_slab();
    struct prudence_cache *cache = slab->cache;

    node_put_latent(slab, objects[0], false);
    prudence_manual_advance(cache->domain);   /* objects[0] is safe */
    node_put_latent(slab, objects[1], false); /* merges objects[0]; objects[1] begins to wait */
    assert_true(is_in(slab_free_bits(slab), slab, objects[0]));
    assert_true(is_in(slab_waiting_bits(slab), slab, objects[1]));
    assert_false(gp_poll(cache->domain, slab->waiting_cookie));
    check_books(cache);
}

TEST(steady_deferral_merges_steadily)
{
    struct slab *slab = full_slab();
    struct prudence_cache *cache = slab->cache;

    for (unsigned i = 0; i < 100; i += 2) {
        node_put_latent(slab, objects[i], false);
        node_put_latent(slab, objects[i + 1], false);
        prudence_manual_advance(cache->domain);
        assert_true(slab->latent <= 4); /* from this grace period and the one before */
    }
    assert_true(stats_of(cache).merged_objects >= 96);
    check_books(cache);
}

SUITE(pin_thread())
