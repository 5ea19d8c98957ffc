/* SPDX-License-Identifier: MIT */
/*
 * A flush takes the objects that were pushed longest ago. The ones that stay are likely in the
 * processor's caches, and their pages are already touched, unlike those of objects never handed
 * out. A large stack loses its top instead, because the other objects would have to move far.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

static void *objects[OBJECTS_MAX];

/* Fills the object cache, and frees one more object. Returns the number of flushed objects. */
static unsigned overflow(struct prudence_cache *cache, unsigned room)
{
    struct cpu_cache *cpu;
    unsigned next = 0;

    allocate_all(cache, objects, 2 * room);
    cpu = cpu_here(cache);
    while (stack_count(&cpu->line)) /* taken there by a refill */
        objects[2 * room + next++] = prudence_cache_alloc(cache);
    free_all(cache, objects, room + 1);
    check_books(cache);
    return (unsigned)stats_of(cache).flushed_objects;
}

/* Empties the object cache. Returns the object at the bottom. */
static void *lowest(struct prudence_cache *cache)
{
    void *object = NULL;

    while (stack_count(&cpu_here(cache)->line))
        object = prudence_cache_alloc(cache);
    return object;
}

TEST(of_a_small_stack)
{
    const unsigned room = 64;
    struct prudence_cache *cache = fixed_cache(64, room, manual_domain());
    unsigned flushed = overflow(cache, room);

    assert_int_equal(flushed, room / 2);
    for (unsigned i = room; i > flushed; i--)
        assert_ptr_equal(prudence_cache_alloc(cache), objects[i]);
    assert_ptr_equal(lowest(cache), objects[flushed]);
}

#define LARGE 2048

TEST(of_a_large_stack)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = manual_domain()};
    struct prudence_cache *cache;

    attr.object_cache_bytes = (size_t)64 * LARGE;
    cache = prudence_cache_create("test", 64, &attr);
    assert_non_null(cache);
    objects[0] = prudence_cache_alloc(cache);
    assert_true(cpu_cache_grow(cache, LARGE));
    free_all(cache, objects, 1);
    assert_true(overflow(cache, LARGE) > 0);
    assert_ptr_equal(lowest(cache), objects[0]);
}

SUITE(pin_thread())
