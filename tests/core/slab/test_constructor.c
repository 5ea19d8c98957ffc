/* SPDX-License-Identifier: MIT */
/*
 * The constructor runs once for each object when the slab is made, with the cache's context, and
 * never when an object is handed out again, no matter how the object was given back.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

struct thing {
    unsigned constructed;
    void *self;
    char body[84];
};

static unsigned runs;

static void construct(void *object, void *context)
{
    struct thing *thing = object;

    assert_ptr_equal(context, &runs);
    thing->constructed = 0xc0de;
    thing->self = thing;
    runs++;
}

TEST(once_for_each_object_of_a_slab)
{
    struct prudence_cache_attr attr = {.size = sizeof attr,
                                       .constructor = construct,
                                       .context = &runs,
                                       .object_cache_bytes = 1600};
    struct prudence_cache *cache;
    void *objects[600];

    attr.domain = manual_domain();
    cache = prudence_cache_create("constructed", sizeof(struct thing), &attr);
    for (unsigned round = 0; round < 20; round++) {
        allocate_all(cache, objects, 600);
        for (unsigned i = 0; i < 600; i++) {
            const struct thing *thing = objects[i];

            assert_int_equal(thing->constructed, 0xc0de);
            assert_ptr_equal(thing->self, thing);
        }
        assert_int_equal(runs, stats_of(cache).grows * cache->body->capacity);
        free_all(cache, objects, 300);
        defer_all(cache, objects + 300, 300);
        prudence_manual_advance(cache->domain);
    }
    assert_true(stats_of(cache).merged_objects > 0);
    assert_true(stats_of(cache).flushes > 0);
    runs = 0;
    destroy_empty(cache);
    assert_int_equal(runs, 0);
}

SUITE(pin_thread())
