/* SPDX-License-Identifier: MIT */
/*
 * Windows (ADR 50): every address that inlined code takes for an object of a cache is one, no
 * matter which slabs come and go and where the pointer leads. Without a window, the page map
 * decides.
 *
 * ctest: not-with thread (one thread)
 */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slab/cache.h"
#include "support/process_memory.h"
#include "support/window_test.h"

#define SLABS_MAX 1100

extern unsigned windows_max; /* in pages/window.c */

static struct slab *slabs[SLABS_MAX];
static const size_t sizes[] = {8, 16, 24, 48, 64, 112, 512, 700, 1000, 1024, 4096, 5000, 16000};

static struct prudence_cache *windowed(size_t size)
{
    struct prudence_cache *cache = prudence_cache_create("windowed", size, NULL);

    assert_non_null(cache);
    want_window(cache);
    return cache;
}

static void grow(struct prudence_cache *cache, unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++) {
        slabs[i] = slab_grow(cache, 0, OS_ALLOC_DEFAULT);
        assert_non_null(slabs[i]);
    }
}

static void shrink(unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++) {
        slab_count(slabs[i]->cache); /* normally done by the node */
        slab_unmake(slabs[i]);
    }
}

static void *of(unsigned slab, unsigned index)
{
    return slab_object(slabs[slab], index, slabs[slab]->cache->body->stride);
}

static void end(struct prudence_cache *cache)
{
    size_t live;

    assert_true(cache_destroy(cache, &live));
    cache_forget(cache);
}

/* Checks that window and page map agree on each address of the slab. */
static void expect_agreement(const struct prudence_cache *cache, unsigned slab)
{
    const char *pages = slabs[slab]->pages;
    unsigned starts = 0;

    for (size_t at = 0; at < slabs[slab]->bytes; at++) {
        bool is = is_of(cache, pages + at);

        if (is != (slab_of_cache(cache, pages + at) != NULL))
            fail_msg("%zu bytes: offset %zu", cache->object_size, at);
        starts += is;
    }
    assert_int_equal(starts, slabs[slab]->capacity);
}

TEST(each_address)
{
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct prudence_cache *cache = windowed(sizes[i]);

        grow(cache, 0, 3);
        assert_true(is_shown(cache, of(0, 0)) || !cache->body->window);
        for (unsigned slab = 0; slab < 3; slab++)
            expect_agreement(cache, slab);
        shrink(0, 3);
        end(cache);
    }
}

TEST(tags_and_far_away)
{
    struct prudence_cache *cache = windowed(64), *other = windowed(64);
    char *object, *others;

    grow(other, 10, 1);
    grow(cache, 0, 4);
    object = of(1, 3);
    others = of(10, 0);
    assert_true(is_of(cache, object) && is_of(other, others));
    for (unsigned bit = 0; bit < 64; bit++) {
        const void *tagged = (void *)((uintptr_t)object ^ (uintptr_t)1 << bit);

        assert_true(is_of(cache, tagged) == (slab_of_cache(cache, tagged) != NULL));
        assert_false(bit >= 26 && is_of(cache, tagged));
    }
    assert_false(is_of(cache, others) || is_of(other, object));
    assert_false(is_of(cache, NULL) || is_of(NULL, object));
    assert_false(is_of(cache, (char *)slabs[0]->pages - 64));
    assert_false(
        is_of(cache, (char *)slabs[3]->pages + slabs[3]->bytes)); /* where there is no slab yet */
    assert_false(is_of(cache, (char *)slabs[0]->pages + ((size_t)64 << 20)));
    shrink(0, 4);
    shrink(10, 1);
    assert_false(is_of(cache, object));
    end(cache);
    assert_false(is_shown(other, others));
    end(other);
}

/* The shown range has no gap. Objects beyond the first gap are found by the page map. */
TEST(gaps)
{
    struct prudence_cache *cache = windowed(64);
    size_t bytes = cache->body->slab_bytes;
    void *gone;

    grow(cache, 0, 16);
    assert_int_equal(cache->window_words.extent, 16 * bytes);
    gone = of(14, 0);
    shrink(14, 1);
    assert_int_equal(cache->window_words.extent, 14 * bytes);
    assert_false(is_of(cache, gone));
    assert_true(is_of(cache, of(15, 1)) && !is_shown(cache, of(15, 1)));
    gone = of(3, 0);
    shrink(3, 1);
    assert_int_equal(cache->window_words.extent, 0); /* most would be beyond the gap */
    assert_false(is_of(cache, gone));
    for (unsigned i = 0; i < 16; i++)
        assert_true(i == 3 || i == 14 || is_of(cache, of(i, i)));
    grow(cache, 3, 1); /* fills the lowest gap first */
    assert_ptr_equal(of(3, 0), gone);
    assert_true(is_of(cache, gone));
    assert_int_equal(cache->window_words.extent, 14 * bytes);
    grow(cache, 14, 1);
    assert_int_equal(cache->window_words.extent, 16 * bytes);
    shrink(0, 16);
    assert_int_equal(cache->window_words.extent, 0);
    end(cache);
}

/* Makes slabs, and counts them as a node does. */
static void grow_counted(struct prudence_cache *cache, unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++) {
        grow(cache, i, 1);
        slab_count(cache);
    }
}

/* Slabs made before inlined code wanted the window lie outside. While they are many, no extent is
 * shown, because the check would go one way for some objects and another way for others. */
TEST(slabs_outside)
{
    struct prudence_cache *cache = prudence_cache_create("filled by calls", 64, NULL);

    grow_counted(cache, 0, 2);
    assert_null(cache->body->window);
    want_window(cache);
    grow_counted(cache, 2, 4);
    assert_non_null(cache->body->window);
    assert_false(is_shown(cache, of(0, 0)));
    assert_false(is_shown(cache, of(2, 0)));
    expect_agreement(cache, 2);
    grow_counted(cache, 6, 12); /* two of 18 are fewer than an eighth */
    assert_true(is_shown(cache, of(2, 0)));
    for (unsigned i = 6; i < 18; i++)
        slab_unmake(slabs[i]);
    assert_false(is_shown(cache, of(2, 0)));
    for (unsigned i = 0; i < 2; i++)
        slab_unmake(slabs[i]);
    assert_true(is_shown(cache, of(2, 0))); /* those outside have gone */
    expect_agreement(cache, 2);
    for (unsigned i = 2; i < 6; i++)
        slab_unmake(slabs[i]);
    end(cache);
}

/* A slab that cannot be entered in the page map never becomes live. */
TEST(slabs_that_fail)
{
    for (unsigned first = 0, calls = 1; first < calls; first++) {
        struct prudence_cache *cache = windowed(64);
        unsigned made = 0;

        memory_fail(first, 2);
        for (unsigned i = 0; i < 40; i++) {
            struct slab *slab = slab_grow(cache, 0, OS_ALLOC_DEFAULT);

            if (slab)
                slabs[made++] = slab;
        }
        calls = memory_calls;
        memory_succeed();
        for (unsigned i = 0; i < made; i++) {
            assert_true(is_of(cache, of(i, 1)));
            assert_false(is_of(cache, (char *)of(i, 1) + 8));
        }
        shrink(0, made);
        end(cache);
    }
}

TEST(full)
{
    struct prudence_cache *cache = windowed(512);

    grow(cache, 0, SLABS_MAX); /* slabs of 64 KiB, of which 1,024 fit */
    assert_int_equal(cache->window_words.extent, (size_t)64 << 20);
    for (unsigned i = 0; i < SLABS_MAX; i++) {
        assert_true(is_of(cache, of(i, 1)) && !is_of(cache, (char *)of(i, 1) + 16));
        assert_int_equal(is_shown(cache, of(i, 1)), i < 1024);
    }
    shrink(0, SLABS_MAX);
    end(cache);
}

static void expect_no_window(void)
{
    struct prudence_cache *cache = windowed(64);

    grow(cache, 0, 2);
    assert_null(cache->body->window);
    assert_true(is_of(cache, of(1, 5)) && !is_of(cache, (char *)of(1, 5) + 1));
    shrink(0, 2);
    end(cache);
}

TEST(no_more_windows)
{
    unsigned before = windows_max;
    struct prudence_cache *cache;

    windows_max = 1;
    cache = windowed(64);
    grow(cache, 10, 1);
    assert_non_null(cache->body->window);
    expect_no_window();
    shrink(10, 1);
    end(cache);
    windows_max = before;
}

TEST(limited_addresses)
{
    struct rlimit before, limit;

    getrlimit(RLIMIT_AS, &before);
    limit = before;
    limit.rlim_cur = (rlim_t)1 << 46;
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    expect_no_window();
    setrlimit(RLIMIT_AS, &before);
}

/* A destroyed cache gives its addresses back. */
TEST(addresses_go_back)
{
    struct prudence_cache *cache = windowed(64);
    size_t before = address_space();

    grow(cache, 0, 2);
    assert_non_null(cache->body->window);
    assert_true(address_space() >= before + ((size_t)64 << 20));
    shrink(0, 2);
    assert_true(address_space() >= before + ((size_t)64 << 20)); /* for the next slabs */
    end(cache);
    assert_true(address_space() < before + ((size_t)32 << 20));
}

/* Addresses are reused: over time there are more windows than may exist at once. */
TEST(destroyed_and_made_again)
{
    unsigned before = windows_max;

    windows_max = 4;
    for (unsigned i = 0; i < 50; i++) {
        struct prudence_cache *cache = windowed(sizes[i % 3]);

        grow(cache, 0, 20);
        assert_non_null(cache->body->window);
        shrink(0, 20);
        end(cache);
    }
    windows_max = before;
}

/* Checks that other caches get none of the window's free, dirty pages. */
static void expect_nobody_else_there(const struct prudence_cache *cache)
{
    void *pages = os_pages_alloc(cache->body->slab_bytes, OS_PAGE_SIZE, 0, NULL);

    assert_false(os_window_has(cache->body->window, pages));
    os_pages_free(pages, cache->body->slab_bytes);
}

/* Pages of a window count like all others: used, kept, given back. */
TEST(pages_of_a_window)
{
    struct prudence_cache *cache = windowed(512);
    struct os_pages_stats before, stats;

    os_pages_trim();
    os_pages_stats(&before);
    grow(cache, 0, 40);
    for (unsigned i = 0; i < 40; i++)
        touch_pages(slabs[i]);
    os_pages_stats(&stats);
    assert_int_equal(stats.used, before.used + 40 * cache->body->slab_bytes);
    shrink(10, 30);
    os_pages_trim();
    os_pages_stats(&stats);
    assert_int_equal(stats.used, before.used + 10 * cache->body->slab_bytes);
    assert_int_equal(stats.retained, before.retained);
    grow(cache, 10, 30);
    assert_true(is_zero(slabs[20])); /* its pages had gone to the system */
    touch_pages(slabs[20]);
    shrink(0, 40);
    expect_nobody_else_there(cache);
    os_pages_trim(); /* purges all pages, but keeps the addresses */
    grow(cache, 0, 40);
    assert_true(is_shown(cache, of(39, 0)));
    touch_pages(slabs[39]);
    shrink(0, 40);
    end(cache); /* gives up remaining dirty pages with the addresses */
    os_pages_stats(&stats);
    assert_int_equal(stats.used, before.used);
    assert_int_equal(stats.retained, before.retained);
}

TEST(limit)
{
    struct prudence_cache *cache = windowed(512);
    struct os_pages_stats stats;
    unsigned made = 0;

    os_pages_trim();
    os_pages_stats(&stats);
    os_pages_set_limit(stats.used + 8 * cache->body->slab_bytes);
    while (made < 20 && (slabs[made] = slab_grow(cache, 0, OS_ALLOC_DEFAULT)))
        made++;
    assert_int_equal(made, 8);
    os_pages_set_limit(0);
    shrink(0, made);
    end(cache);
}

#if PRUDENCE_INLINED

#define OBJECTS 4000

/* Inlined code asks for a window. Calls into the library do not, however many slabs they need,
 * because they never read it (ADR 50). */
TEST(inlined_code_alone_makes_a_window)
{
    static void *objects[OBJECTS];
    struct prudence_cache *called = prudence_cache_create("called", 64, NULL);
    struct prudence_cache *inlined = prudence_cache_create("inlined", 64, NULL);
    void *b = prudence_cache_alloc(inlined);

    assert_int_equal(prudence_cache_alloc_bulk(called, OBJECTS, objects), OBJECTS);
    objects[0] = (prudence_cache_replace)(called, objects[0]);
    assert_null(called->body->window);
    assert_int_equal(inlined->body->window != NULL, os_percpu_rseq);
    assert_int_equal(is_shown(inlined, b), os_percpu_rseq);
    assert_true(is_of(called, objects[0]) && is_of(inlined, b));
    for (unsigned i = 0; i < OBJECTS; i++)
        prudence_cache_free(called, objects[i]);
    assert_null(called->body->window);
    (prudence_cache_free_deferred)(inlined, b);
    prudence_cache_destroy(called);
    prudence_cache_destroy(inlined);
}

static struct prudence_cache *mine;

static void expect_deaths(void *p, const char *text)
{
    expect_death(prudence_cache_free(mine, p), "prudence_cache_free:", text);
    expect_death(prudence_cache_free_deferred(mine, p), "prudence_cache_free_deferred:", text);
    expect_death(discard(prudence_cache_replace(mine, p)), "prudence_cache_replace:", text);
}

TEST(misuse_is_caught_at_the_call)
{
    struct slab *slab;
    char *object;

    mine = prudence_cache_create("mine", 48, NULL);
    object = prudence_cache_alloc(mine);
    slab = slab_of(object);
    assert_true(is_shown(mine, object) || !os_percpu_rseq);
    expect_deaths(object + 16, "16 bytes after its start");
    expect_deaths(slab->base + slab->capacity * mine->body->stride,
                  "none of its objects"); /* the tail */
    expect_deaths((char *)slab->pages + ((size_t)32 << 20), "foreign pointer");
    expect_deaths((char *)((uintptr_t)object | (uintptr_t)1 << 63), "foreign pointer");
    expect_deaths((char *)((uintptr_t)object | (uintptr_t)1 << 56), "foreign pointer");
    expect_deaths(&object, "foreign pointer");
    prudence_cache_free(mine, object);
    prudence_cache_shrink(mine); /* gives back the slab */
    assert_null(slab_of(object));
    expect_deaths(object, "foreign pointer");
    prudence_cache_destroy(mine);
}

TEST(across_fork)
{
    struct prudence_cache *cache = prudence_cache_create("forked", 64, NULL);
    void *object = prudence_cache_alloc(cache);
    int status = -1;
    pid_t child = fork();

    if (!child) {
        struct prudence_cache *own = prudence_cache_create("of the child", 64, NULL);
        void *mine_now = prudence_cache_alloc(own);
        bool right = is_of(cache, object) && is_of(own, mine_now) && !is_of(cache, mine_now);

        prudence_cache_free(own, mine_now);
        prudence_cache_free(cache, object);
        prudence_cache_destroy(own);
        prudence_cache_destroy(cache);
        _exit(right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    prudence_cache_free(cache, object);
    prudence_cache_destroy(cache);
}

#endif

int main(void)
{
    if (!windows_exist())
        return 77;
    return suite_run(NULL, NULL);
}
