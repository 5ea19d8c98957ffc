/* SPDX-License-Identifier: MIT */
/*
 * A double free is detected at the call, without any option, if the object is on top of this CPU's
 * stack. preload/test_faults.py tests the search at the end of the process; here, a forked child
 * makes no such search.
 *
 * ctest: inlined-too
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

static struct prudence_cache *cache;
static void *object, *other;

static void free_twice(void)
{
    prudence_cache_free(cache, object);
    prudence_cache_free(cache, object);
    os_report("not at the call");
}

static void free_twice_without_sequences(void)
{
    struct prudence_cache *slow;

    os_percpu_rseq = false;
    slow = fixed_cache(64, 16, manual_domain());
    object = prudence_cache_alloc(slow);
    prudence_cache_free(slow, object);
    prudence_cache_free(slow, object);
}

/* Nothing is flushed for an object that is already on the full stack. */
static void free_twice_on_a_full_stack(void)
{
    struct prudence_cache *small = fixed_cache(64, 8, manual_domain());
    void *objects[16];

    allocate_all(small, objects, 16);
    for (unsigned i = 0; i < 16; i++) {
        prudence_cache_free(small, objects[i]);
        if (stack_count(&cpu_here(small)->line) == cpu_here(small)->size)
            prudence_cache_free(small, objects[i]);
    }
}

static void first_is_freed_again(void)
{
    prudence_cache_free(cache, object);
    prudence_cache_free(cache, other);
    prudence_cache_free(cache, object);
    exit(0);
}

TEST(it_is_reported_at_the_call)
{
    void *others[4]; /* leave room on the stack, so that the fast path serves both frees */

    cache = fixed_cache(100, 16, manual_domain());
    allocate_all(cache, others, 4);
    object = prudence_cache_alloc(cache);
    expect_death(free_twice(), "free: double free", "already free", "check=1");
    expect_death(free_twice_without_sequences(), "double free", "already free");
    expect_death(free_twice_on_a_full_stack(), "double free", "already free");
    prudence_cache_free(cache, object);
    if (os_percpu_rseq) {
        expect_death(prudence_usable_size(object), "prudence_usable_size", "already free");
        expect_death(discard(prudence_realloc(object, 101)), "prudence_realloc", "already free");
    }
    free_all(cache, others, 4);
    destroy_empty(cache);
}

TEST(a_child_does_not_look_when_it_ends)
{
    cache = fixed_cache(100, 16, manual_domain());
    object = prudence_cache_alloc(cache);
    other = prudence_cache_alloc(cache);
    expect_survival(first_is_freed_again(), "");
    assert_string_equal(last_child.output, "");
    prudence_cache_free(cache, object);
    prudence_cache_free(cache, other);
    destroy_empty(cache);
}

TEST(what_is_used_again_is_live)
{
    void *again, *moved;

    cache = fixed_cache(100, 16, manual_domain());
    for (unsigned i = 0; i < 100; i++) {
        object = prudence_cache_alloc(cache);
        prudence_cache_free(cache, object);
        again = prudence_cache_alloc(cache);
        assert_ptr_equal(again, object);
        prudence_cache_free(cache, again);
    }
    for (unsigned i = 0; i < 100; i++) {
        object = prudence_malloc(100);
        prudence_free(object);
        again = prudence_malloc(100);
        assert_true(prudence_usable_size(again) >= 100);
        moved = prudence_realloc(again, 101);
        prudence_free(moved);
    }
    destroy_empty(cache);
}

SUITE(pin_thread())
