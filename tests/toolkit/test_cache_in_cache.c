/* SPDX-License-Identifier: MIT */
/*
 * prudence_cache_destroy_later() ends a cache that belongs to an object of another, whose
 * destructor may not wait, and one inside a section. Nothing is lost: every destructor runs once,
 * to any depth, while a reader is inside nothing ends, and no cache stays.
 */
#include <assert.h>
#include <errno.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "support/gp_reader.h"
#include "support/suite.h"

struct owner {
    struct prudence_cache *cache; /* of the next level; NULL: the last */
};

static unsigned ended; /* atomic */

static void end_owner(void *object, void *unused)
{
    struct owner *owner = object;

    (void)unused;
    if (owner->cache)
        assert(prudence_cache_destroy_later(owner->cache) == 0);
    __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
}

static struct prudence_cache *make_cache(const char *name)
{
    const struct prudence_cache_attr attr = {
        .size = sizeof attr, .destructor = end_owner, .flags = PRUDENCE_CACHE_DESTRUCT_SOON};
    struct prudence_cache *cache = prudence_cache_create(name, sizeof(struct owner), &attr);

    assert_non_null(cache);
    return cache;
}

#define LEVELS 5
#define EACH   3

/* Returns a cache whose EACH objects, deferred already, own caches of one level less. */
static struct prudence_cache *make_levels(unsigned levels)
{
    struct prudence_cache *cache = make_cache("level");

    for (unsigned i = 0; i < EACH; i++) {
        struct owner *owner = prudence_cache_alloc(cache);

        owner->cache = levels > 1 ? make_levels(levels - 1) : NULL;
        prudence_cache_free_deferred(cache, owner);
    }
    return cache;
}

static unsigned caches_called(const char *name)
{
    struct prudence_walk walk = PRUDENCE_WALK_INIT;
    struct prudence_cache_stats stats;
    unsigned count = 0;

    while (prudence_next_cache(&walk, &stats) == 0)
        count += strcmp(stats.name, name) == 0;
    return count;
}

static void await(const char *name)
{
    while (caches_called(name))
        pause_ms(1);
}

TEST(caches_in_caches_end)
{
    unsigned wanted = 0, objects = 1;

    for (unsigned level = 0; level < LEVELS; level++)
        wanted += objects *= EACH;
    ended = 0;
    assert_int_equal(prudence_cache_destroy_later(make_levels(LEVELS)), 0);
    await("level");
    assert_int_equal(ended, wanted);
}

TEST(a_cache_that_ends_in_a_section_waits_for_it)
{
    struct prudence_cache *cache = make_cache("inside");
    struct owner *owner = prudence_cache_alloc(cache);

    ended = 0;
    owner->cache = NULL;
    prudence_read_lock();
    prudence_cache_free_deferred(cache, owner);
    assert_int_equal(prudence_cache_destroy_later(cache), 0);
    pause_ms(20);
    assert_int_equal(caches_called("inside"), 1);
    assert_int_equal(ended, 0);
    prudence_read_unlock();
    await("inside");
    assert_int_equal(ended, 1);
}

TEST(without_a_destructor_too)
{
    struct prudence_cache *cache = prudence_cache_create("plain", 100, NULL);

    prudence_read_lock();
    for (unsigned i = 0; i < 5000; i++)
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    assert_int_equal(prudence_cache_destroy_later(cache), 0);
    pause_ms(5);
    assert_int_equal(caches_called("plain"), 1);
    prudence_read_unlock();
    await("plain");
}

TEST(elsewhere_it_destroys_at_once)
{
    struct prudence_cache *cache = make_cache("at once");
    struct owner *owner = prudence_cache_alloc(cache);

    owner->cache = NULL;
    assert_int_equal(prudence_cache_destroy_later(cache), EBUSY);
    prudence_cache_free(cache, owner);
    assert_int_equal(prudence_cache_destroy_later(cache), 0);
    assert_int_equal(caches_called("at once"), 0);
    assert_int_equal(prudence_cache_destroy_later(NULL), EINVAL);
}

SUITE()
