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

static struct prudence_cache *gone;
static void *object; /* from another cache, because the destroyed cache has no objects */

/* Destroys the cache, and then as many others as `later` says. */
static void destroy(const char *check, unsigned later)
{
    prudence_option_set("check", check);
    gone = prudence_cache_create("gone", 64, NULL);
    object = prudence_cache_alloc(prudence_cache_create("other", 64, NULL));
    prudence_cache_free_deferred(gone, prudence_cache_alloc(gone));
    if (prudence_cache_destroy(gone))
        _exit(1);
    while (later--)
        prudence_cache_destroy(prudence_cache_create("later", 64, NULL));
}

#define EXPECT_SAID(name, call)                                                                    \
    expect_death((destroy(check, later), call), name ":", "cache 'gone'", "was destroyed",         \
                 strcmp(check, "1") == 0 ? "destroyed by:" : "")

static void each_says_so(const char *check, unsigned later)
{
    EXPECT_SAID("prudence_cache_alloc", discard(prudence_cache_alloc(gone)));
    EXPECT_SAID("prudence_cache_alloc_bulk", prudence_cache_alloc_bulk(gone, 1, &object));
    EXPECT_SAID("prudence_cache_free", prudence_cache_free(gone, object));
    EXPECT_SAID("prudence_cache_free_deferred", prudence_cache_free_deferred(gone, object));
    EXPECT_SAID("prudence_cache_free_bulk", prudence_cache_free_bulk(gone, 1, &object));
    EXPECT_SAID("prudence_cache_free_deferred_bulk",
                prudence_cache_free_deferred_bulk(gone, 1, &object));
    EXPECT_SAID("prudence_cache_shrink", prudence_cache_shrink(gone));
    EXPECT_SAID("prudence_cache_barrier", prudence_cache_barrier(gone));
    EXPECT_SAID("prudence_cache_stats", stats_of(gone));
    EXPECT_SAID("prudence_cache_destroy", prudence_cache_destroy(gone));
}

TEST(each_function_says_so)
{
    each_says_so("0", 0);
    each_says_so("1", 0);
    each_says_so("1", 50);
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
    expect_exit(0, destroy_with_live_objects((void *)(uintptr_t) "0"),
                "cache 'inhabited' has 2 live objects");
    assert_int_equal(said("inhabited"), 1); /* only once for all attempts */
    expect_exit(0, destroy_with_live_objects((void *)(uintptr_t) "1"), "");
    assert_int_equal(said("allocated by:"), 1);
    assert_true(said("2 objects, of which 0x"));
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
static int leak_everywhere(void)
{
    struct prudence_cache *cache;

    prudence_option_set("check", "1");
    cache = prudence_cache_create("leaky", 64, NULL);
    for (unsigned i = 0; i < 100; i++)
        leak_at(cache, i % 10);
    return prudence_cache_destroy(cache) == EBUSY ? 0 : 1;
}

TEST(objects_of_the_same_calls_are_one_group)
{
    expect_exit(0, leak_everywhere(), "cache 'leaky' has 100 live objects");
    assert_int_equal(said("  10 objects, of which 0x"), 8);
    assert_true(said("and 20 more, allocated by other calls"));
}

SUITE()
