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

/* Every function that takes a cache dies of the pointer, and names itself and the texts. */
static void expect_death_by_cache(void *p, const char *text, const char *more)
{
    expect_death(prudence_cache_free(cache, p), "prudence_cache_free:", text, more);
    expect_death(prudence_cache_free_deferred(cache, p), "prudence_cache_free_deferred:", text,
                 more);
    expect_death(prudence_cache_free_bulk(cache, 1, &p), "prudence_cache_free_bulk:", text, more);
    expect_death(prudence_cache_free_deferred_bulk(cache, 1, &p),
                 "prudence_cache_free_deferred_bulk:", text, more);
}

/* Every function dies of this pointer, and names itself and the pointer. */
static void expect_death_by_all(void *p, const char *text)
{
    snprintf(pointer, sizeof pointer, "%p", p);
    expect_death(prudence_free(p), "prudence_free:", pointer, text);
    expect_death(prudence_free_sized(p, 1), "prudence_free_sized:", pointer, text);
    expect_death(prudence_free_deferred(p), "prudence_free_deferred:", pointer, text);
    expect_death(discard(prudence_realloc(p, 1000)), "prudence_realloc:", pointer, text);
    expect_death(prudence_usable_size(p), "prudence_usable_size:", pointer, text);
    expect_death_by_cache(p, pointer, text);
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
    expect_death(prudence_free(block + 4096), "4096 bytes after its start", "large");
    expect_death(prudence_free_deferred(block + 99999), "99999 bytes after its start", "large");
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

    expect_death_by_cache(prudence_cache_alloc(other), "'other'", "'mine'");
    expect_death_by_cache(mine, "'size-112'", "'mine'");
    prudence_free(mine);
}

TEST(cache_is_null)
{
    expect_death(prudence_cache_free(NULL, object), "prudence_cache_free:", "the cache is NULL");
    expect_death(discard(prudence_cache_alloc(NULL)), "prudence_cache_alloc:", "the cache is NULL");
}

TEST(a_size_that_cannot_be)
{
    void *small = prudence_malloc(1000);

    expect_death(prudence_free_sized(small, 1025), "prudence_free_sized:", "1024 bytes", "1025");
    expect_death(prudence_free_sized(small, 100), "prudence_free_sized:", "100");
    prudence_free_sized(small, 1000);
}

static int make(void **state)
{
    cache = prudence_cache_create("mine", 100, NULL);
    other = prudence_cache_create("other", 100, NULL);
    object = prudence_cache_alloc(cache);
    return 0;
}

SUITE_BETWEEN(make, NULL)
