/* SPDX-License-Identifier: MIT */
/*
 * Using a destroyed cache never goes unnoticed, with or without check=1: each function that takes a
 * cache names the destroyed one and stops. A cache with live objects is not destroyed; the report
 * has their number, and with check=1 their allocations.
 *
 * ctest: inlined-too
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

#include <prudence/stats.h>

#include "support/gp_child.h"

static void *object; /* from another cache, because the destroyed cache has no objects */

static void act_alloc(struct prudence_cache *cache)
{
    object = prudence_cache_alloc(cache);
}

static void act_alloc_bulk(struct prudence_cache *cache)
{
    prudence_cache_alloc_bulk(cache, 1, &object);
}

static void act_free(struct prudence_cache *cache)
{
    prudence_cache_free(cache, object);
}

static void act_free_deferred(struct prudence_cache *cache)
{
    prudence_cache_free_deferred(cache, object);
}

static void act_free_bulk(struct prudence_cache *cache)
{
    prudence_cache_free_bulk(cache, 1, &object);
}

static void act_free_deferred_bulk(struct prudence_cache *cache)
{
    prudence_cache_free_deferred_bulk(cache, 1, &object);
}

static void act_shrink(struct prudence_cache *cache)
{
    prudence_cache_shrink(cache);
}

static void act_barrier(struct prudence_cache *cache)
{
    prudence_cache_barrier(cache);
}

static void act_stats(struct prudence_cache *cache)
{
    struct prudence_cache_stats stats;

    prudence_cache_stats(cache, &stats);
}

static void act_destroy(struct prudence_cache *cache)
{
    prudence_cache_destroy(cache);
}

static const struct use {
    void (*act)(struct prudence_cache *cache);
    const char *says;
} uses[] = {
    {act_alloc, "prudence_cache_alloc:"},
    {act_alloc_bulk, "prudence_cache_alloc_bulk:"},
    {act_free, "prudence_cache_free:"},
    {act_free_deferred, "prudence_cache_free_deferred:"},
    {act_free_bulk, "prudence_cache_free_bulk:"},
    {act_free_deferred_bulk, "prudence_cache_free_deferred_bulk:"},
    {act_shrink, "prudence_cache_shrink:"},
    {act_barrier, "prudence_cache_barrier:"},
    {act_stats, "prudence_cache_stats:"},
    {act_destroy, "prudence_cache_destroy:"},
};

#define USES (sizeof uses / sizeof uses[0])

struct attempt {
    const struct use *use;
    const char *check; /* value of the option */
    unsigned later;    /* number of caches destroyed after this one */
};

static int use_after_destroy(void *attempt_)
{
    const struct attempt *attempt = attempt_;
    struct prudence_cache *cache;

    prudence_option_set("check", attempt->check);
    cache = prudence_cache_create("gone", 64, NULL);
    object = prudence_cache_alloc(prudence_cache_create("other", 64, NULL));
    prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    assert_int_equal(prudence_cache_destroy(cache), 0);
    for (unsigned i = 0; i < attempt->later; i++)
        prudence_cache_destroy(prudence_cache_create("later", 64, NULL));
    attempt->use->act(cache);
    return 0;
}

static void expect_said(struct attempt attempt)
{
    struct child_result result;

    child_run(use_after_destroy, &attempt, &result);
    if (!child_died(&result) || !child_said(&result, attempt.use->says) ||
        !child_said(&result, "cache 'gone'") || !child_said(&result, "was destroyed"))
        fail_msg("%s with check=%s said: %s", attempt.use->says, attempt.check, result.output);
    if (strcmp(attempt.check, "1") == 0 && !child_said(&result, "destroyed by:"))
        fail_msg("the report has no stack of the destruction: %s", result.output);
}

TEST(each_function_says_so)
{
    for (unsigned i = 0; i < USES; i++) {
        expect_said((struct attempt){&uses[i], "1", 0});
        expect_said((struct attempt){&uses[i], "0", 0});
    }
}

TEST(though_others_were_destroyed_since)
{
    expect_said((struct attempt){&uses[0], "1", 50});
    expect_said((struct attempt){&uses[2], "0", 50});
}

/* Allocates, always at the same place. */
static __attribute__((noinline)) void *leak(struct prudence_cache *cache)
{
    void *leaked = prudence_cache_alloc(cache);

    __asm__ volatile("" : "+r"(leaked)); /* this call is not the last */
    return leaked;
}

static int destroy_with_live_objects(void *check)
{
    struct prudence_cache *cache;
    void *objects[3];

    prudence_option_set("check", check);
    cache = prudence_cache_create("inhabited", 64, NULL);
    for (volatile unsigned i = 0; i < 3; i++) /* a loop, not three calls */
        objects[i] = leak(cache);
    prudence_cache_free_deferred(cache, objects[0]); /* latent objects are not live */
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(prudence_cache_destroy(cache), EBUSY);
    prudence_cache_free(cache, objects[1]);
    prudence_cache_free(cache, objects[2]);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    return 0;
}

TEST(live_objects_are_counted)
{
    struct child_result result;

    child_run(destroy_with_live_objects, (void *)(uintptr_t) "0", &result);
    assert_true(child_exited_with(&result, 0));
    assert_true(child_said(&result, "cache 'inhabited' has 2 live objects"));
    assert_int_equal(child_count(&result, "inhabited"), 1); /* only once for all attempts */
    child_run(destroy_with_live_objects, (void *)(uintptr_t) "1", &result);
    assert_true(child_exited_with(&result, 0));
    assert_int_equal(child_count(&result, "allocated by:"), 1);
    assert_true(child_said(&result, "2 objects, of which 0x"));
}

/* Allocates at one of ten places. Each has an instruction of its own, so none are merged. */
static void *leak_at(struct prudence_cache *cache, unsigned place)
{
    void *leaked = NULL;

    switch (place) {
#define PLACE(n)                                                                                   \
    case n:                                                                                        \
        leaked = prudence_cache_alloc(cache);                                                      \
        __asm__ volatile("" : "+r"(leaked) : "i"(n));                                              \
        break;
        PLACE(0)
        PLACE(1)
        PLACE(2)
        PLACE(3)
        PLACE(4)
        PLACE(5)
        PLACE(6)
        PLACE(7)
        PLACE(8)
        PLACE(9)
#undef PLACE
    }
    return leaked;
}

/* Leaks ten objects at each place. */
static int leak_everywhere(void *unused)
{
    struct prudence_cache *cache;

    (void)unused;
    prudence_option_set("check", "1");
    cache = prudence_cache_create("leaky", 64, NULL);
    for (unsigned i = 0; i < 100; i++)
        leak_at(cache, i % 10);
    return prudence_cache_destroy(cache) == EBUSY ? 0 : 1;
}

TEST(objects_of_the_same_calls_are_one_group)
{
    struct child_result result;

    child_run(leak_everywhere, NULL, &result);
    assert_true(child_exited_with(&result, 0));
    assert_true(child_said(&result, "cache 'leaky' has 100 live objects"));
    assert_int_equal(child_count(&result, "  10 objects, of which 0x"), 8);
    assert_true(child_said(&result, "and 20 more, allocated by other calls"));
}

SUITE()
