/* SPDX-License-Identifier: MIT */
/*
 * Small objects that share a cache line go to the same CPU, as far as slabs allow, because threads
 * on two CPUs would slow down each other's writes (docs/adr/0150). A refill takes whole lines
 * first. The first object that a CPU frees comes from another CPU, so it returns to its slab.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

#define ROOM 64 /* objects in an object cache */

static void *objects[OBJECTS_MAX];

static uintptr_t line_of(const void *object)
{
    return (uintptr_t)object / CACHE_LINE;
}

/* Returns whether the last byte of the object is in the line of the first of `other`, or the other
 * way round. */
static bool share_a_line(const void *object, const void *other, size_t size)
{
    const char *end = (const char *)object + size - 1, *other_end = (const char *)other + size - 1;

    return line_of(end) >= line_of(other) && line_of(object) <= line_of(other_end);
}

static void each_thread_has_lines(size_t size, unsigned group)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .alignment = 8};
    struct prudence_cache *cache = prudence_cache_create("small", size, &attr);
    void *mine, *another;

    assert_int_equal(cache->body->line_objects, group);

    injected_cpu = 0;
    allocate_all(cache, objects, 2); /* as the first thread, which hands the second one over */
    assert_true(share_a_line(objects[0], objects[1], size));
    injected_cpu = 1;
    prudence_cache_free(cache, objects[1]);
    another = prudence_cache_alloc(cache);
    injected_cpu = 0;
    prudence_cache_free(cache, objects[0]);
    mine = prudence_cache_alloc(cache);
    assert_ptr_equal(mine, objects[0]);
    assert_false(share_a_line(mine, another, size));
    check_books(cache);
    prudence_cache_free(cache, mine);
    injected_cpu = 1;
    prudence_cache_free(cache, another);
    assert_ptr_equal(prudence_cache_alloc(cache), another); /* this CPU's: it stays here */
    prudence_cache_free(cache, another);
    destroy_empty(cache);
}

TEST(an_object_of_another_cpu_does_not_bring_its_line)
{
    each_thread_has_lines(8, 8);
    each_thread_has_lines(16, 4);
    each_thread_has_lines(24, 8);
    each_thread_has_lines(32, 2);
    each_thread_has_lines(48, 4);
    each_thread_has_lines(56, 8);
}

/* Objects of a line or more share none that matters, and stay warm where they were freed. */
TEST(a_large_object_stays_where_it_was_freed)
{
    struct prudence_cache *cache = fixed_cache(64, ROOM, manual_domain());

    injected_cpu = 0;
    objects[0] = prudence_cache_alloc(cache);
    injected_cpu = 1;
    prudence_cache_free(cache, objects[0]);
    assert_ptr_equal(prudence_cache_alloc(cache), objects[0]);
    prudence_cache_free(cache, objects[0]);
    destroy_empty(cache);
}

TEST(a_refill_takes_whole_lines_first)
{
    struct prudence_cache *cache = fixed_cache(16, ROOM, manual_domain());
    unsigned last = cache->body->capacity - 4;
    void *taken[8];

    allocate_all(cache, objects, cache->body->capacity);
    for (unsigned i = 0; i < last; i++)
        if (i % 4 < 3)
            node_put(cache, &objects[i], 1);
    node_put(cache, &objects[last], 4);
    assert_int_equal(node_take(cache, node_here(cache), taken, 8), 8);
    for (unsigned i = 0; i < 4; i++)
        assert_ptr_equal(taken[i], objects[last + i]);
    for (unsigned i = 0; i < 3; i++)
        assert_ptr_equal(taken[4 + i], objects[i]); /* no other line is whole */
    assert_ptr_equal(taken[7], objects[4]);
    assert_int_equal(cache->body->slabs_now, 1);
    node_put(cache, taken, 1);
    node_flush(cache, taken + 1, 7); /* as if a refill had put them on a stack */
    for (unsigned i = 0; i < last; i++)
        if (i % 4 == 3)
            node_put(cache, &objects[i], 1);
    destroy_empty(cache);
}

SUITE(inject_topology())
