/* SPDX-License-Identifier: MIT */
/*
 * With check=1, every free or deferral of an object that is already free or deferred dies at the
 * call, for cache objects, for any size, and in bulk.
 *
 * ctest: inlined-too
 * ctest: not-with thread (one thread)
 */
#include "slab/preflush.h"
#include "support/slab_test.h"

static struct prudence_cache *cache;
static void *object;
static char pointer[32];

static void give(void *how)
{
    for (const char *step = how; *step; step++) {
        switch (*step) {
        case 'f':
            prudence_cache_free(cache, object);
            break;
        case 'd':
            prudence_cache_free_deferred(cache, object);
            break;
        case 'F':
            prudence_free(object);
            break;
        case 'D':
            prudence_free_deferred(object);
            break;
        case 'b':
            prudence_cache_free_bulk(cache, 1, &object);
            break;
        case 'e':
            prudence_cache_free_deferred_bulk(cache, 1, &object);
            break;
        case 'a': /* ends a grace period, and sends all objects to their slabs */
            prudence_cache_shrink(cache);
            prudence_manual_advance(cache->domain);
            prudence_cache_shrink(cache);
            break;
        }
    }
}

static void expect_at_call(const char *how, const char *what)
{
    expect_death(give, (void *)(uintptr_t)how, pointer, what, NULL);
}

TEST(of_a_cache)
{
    void *neighbour;

    cache = fixed_cache(100, 16, manual_domain());
    neighbour = prudence_cache_alloc(cache);
    object = prudence_cache_alloc(cache);
    snprintf(pointer, sizeof pointer, "%p of cache 'test'", object);
    expect_at_call("ff", "is already free");
    expect_at_call("dd", "already deferred and not yet safe");
    expect_at_call("df", "already deferred and not yet safe");
    expect_at_call("fd", "is already free");
    expect_at_call("FF", "is already free");
    expect_at_call("DD", "already deferred and not yet safe");
    expect_at_call("DF", "already deferred and not yet safe");
    expect_at_call("FD", "is already free");
    expect_at_call("bb", "is already free");
    expect_at_call("ee", "already deferred and not yet safe");
    expect_at_call("daf", "is already free"); /* merged in between */
    expect_at_call("dad", "is already free");
    prudence_cache_free(cache, object);
    prudence_cache_free(cache, neighbour);
    destroy_empty(cache);
}

TEST(of_any_size)
{
    object = prudence_malloc(50);
    snprintf(pointer, sizeof pointer, "%p of cache 'size-64'", object);
    expect_at_call("FF", "is already free");
    expect_at_call("DD", "already deferred and not yet safe");
    prudence_free(object);
    object = prudence_malloc(100000);
    snprintf(pointer, sizeof pointer, "%p of cache 'large'", object);
    prudence_read_lock(); /* keeps the deferred block */
    expect_at_call("DD", "already deferred and not yet safe");
    expect_at_call("DF", "already deferred and not yet safe");
    prudence_read_unlock();
    prudence_free(object);
}

/* A correct program survives: frees and allocates in every way, many times. */
TEST(right_use_survives)
{
    static void *objects[500];

    cache = fixed_cache(100, 16, manual_domain());
    for (unsigned round = 0; round < 20; round++) {
        allocate_all(cache, objects, 300);
        assert_int_equal(prudence_cache_alloc_bulk(cache, 200, objects + 300), 200);
        free_all(cache, objects, 100);
        defer_all(cache, objects + 100, 200);
        prudence_cache_free_bulk(cache, 100, objects + 300);
        prudence_cache_free_deferred_bulk(cache, 100, objects + 400);
        preflush_cpu(cache, os_cpu_current(), 3);
        prudence_manual_advance(cache->domain);
        prudence_free(prudence_malloc(100000));
        prudence_free_deferred(prudence_malloc(100000));
        check_books(cache);
    }
    destroy_empty(cache);
}

static int check_on(void **state)
{
    return prudence_option_set("check", "1");
}

SUITE_BETWEEN(check_on, NULL, pin_thread())
