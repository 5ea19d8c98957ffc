/* SPDX-License-Identifier: MIT */
/*
 * Some misuse always dies at the call, with pointer, cache and cause in the report: foreign,
 * interior and misaligned pointers, the wrong cache, an impossible size. Covers every function that
 * takes an object; see also the misuse matrix (tests/misuse).
 *
 * ctest: inlined-too
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

static struct prudence_cache *cache, *other;
static char *object;
static char pointer[32];
static size_t wrong_size;

static void by_free(void *p)
{
    prudence_free(p);
}

static void by_free_sized(void *p)
{
    prudence_free_sized(p, wrong_size);
}

static void by_free_deferred(void *p)
{
    prudence_free_deferred(p);
}

static void by_cache_free(void *p)
{
    prudence_cache_free(cache, p);
}

static void by_cache_free_deferred(void *p)
{
    prudence_cache_free_deferred(cache, p);
}

static void by_cache_free_bulk(void *p)
{
    prudence_cache_free_bulk(cache, 1, &p);
}

static void by_cache_free_deferred_bulk(void *p)
{
    prudence_cache_free_deferred_bulk(cache, 1, &p);
}

static void by_realloc(void *p)
{
    if (prudence_realloc(p, 1000))
        _Exit(0);
}

static void by_usable_size(void *p)
{
    prudence_usable_size(p);
}

static void (*const of_any_cache[])(void *) = {by_free, by_free_sized, by_free_deferred, by_realloc,
                                               by_usable_size};
static void (*const of_a_cache[])(void *) = {by_cache_free, by_cache_free_deferred,
                                             by_cache_free_bulk, by_cache_free_deferred_bulk};
static const char *const names[] = {"prudence_free:",
                                    "prudence_free_sized:",
                                    "prudence_free_deferred:",
                                    "prudence_realloc:",
                                    "prudence_usable_size:",
                                    "prudence_cache_free:",
                                    "prudence_cache_free_deferred:",
                                    "prudence_cache_free_bulk:",
                                    "prudence_cache_free_deferred_bulk:"};

/* Checks that every function dies of this pointer, and names itself and the pointer. */
static void expect_death_by_all(void *p, const char *what)
{
    snprintf(pointer, sizeof pointer, "%p", p);
    for (unsigned i = 0; i < 9; i++)
        expect_death(i < 5 ? of_any_cache[i] : of_a_cache[i - 5], p, names[i], pointer, what);
}

TEST(foreign_pointers)
{
    static char data[64];

    expect_death_by_all(data, "foreign pointer");
    expect_death_by_all((void *)16, "foreign pointer");
    expect_death_by_all((void *)UINTPTR_MAX, "prudence");
    expect_death_by_all((void *)((uintptr_t)object ^ (uintptr_t)1 << 47), "prudence");
    expect_death_by_all((void *)((uintptr_t)object | (uintptr_t)1 << 60), "prudence");
}

TEST(freed_large_blocks)
{
    void *block = prudence_malloc(200000);

    prudence_free(block);
    expect_death_by_all(block, "foreign pointer");
}

TEST(interior_pointers)
{
    char *block = prudence_malloc(200000);

    expect_death_by_all(object + 16, "16 bytes after its start");
    expect_death_by_all(object + 111, "111 bytes after its start");
    expect_death(by_free, block + 4096, "4096 bytes after its start", "large", NULL);
    expect_death(by_free_deferred, block + 99999, "99999 bytes after its start", "large", NULL);
}

TEST(pointers_between_objects)
{
    struct slab *slab = slab_of(object);

    expect_death_by_all(slab->base + slab->capacity * cache->body->stride, "none of its objects");
    if (slab->base > (char *)slab->pages)
        expect_death_by_all(slab->pages, "none of its objects");
}

TEST(the_wrong_cache)
{
    void *mine = prudence_malloc(100);

    for (unsigned i = 0; i < 4; i++) {
        expect_death(of_a_cache[i], prudence_cache_alloc(other), names[5 + i], "'other'", "'mine'");
        expect_death(of_a_cache[i], mine, names[5 + i], "'size-112'", "'mine'");
    }
    prudence_free(mine);
}

static void no_cache(void *unused)
{
    prudence_cache_free(NULL, object);
}

static void no_cache_to_allocate_from(void *unused)
{
    if (prudence_cache_alloc(NULL))
        _Exit(0);
}

TEST(cache_is_null)
{
    expect_death(no_cache, NULL, "prudence_cache_free:", "the cache is NULL", NULL);
    expect_death(no_cache_to_allocate_from, NULL, "prudence_cache_alloc:", "the cache is NULL",
                 NULL);
}

TEST(a_size_that_cannot_be)
{
    void *small = prudence_malloc(1000);

    wrong_size = 1025;
    expect_death(by_free_sized, small, "prudence_free_sized:", "1024 bytes", "1025");
    wrong_size = 1;
    prudence_free_sized(small, 1000);
}

TEST(a_size_of_another_class)
{
    void *small = prudence_malloc(1000);

    wrong_size = 100; /* 1000 bytes were requested, not 100 */
    expect_death(by_free_sized, small, "prudence_free_sized:", "100", NULL);
    wrong_size = 1;
}

static int make(void **state)
{
    wrong_size = 1;
    cache = prudence_cache_create("mine", 100, NULL);
    other = prudence_cache_create("other", 100, NULL);
    object = prudence_cache_alloc(cache);
    return 0;
}

SUITE_BETWEEN(make, NULL)
