/* SPDX-License-Identifier: MIT */
/*
 * quarantine=BYTES hides no misuse. Freeing, deferring or reallocating a resting object is reported
 * at that call, with or without check=1, for any size. The same holds for deferred objects, and for
 * objects that have left the quarantine.
 *
 * ctest: not-with thread (one thread)
 */
#include <prudence/scm.h>

#include "support/slab_test.h"

#define KIB ((size_t)1 << 10)

struct misuse {
    const char *options[3][2];
    size_t size;
    void (*first)(void *object);
    void (*second)(void *object);
};

static struct prudence_cache *cache;

static void free_sized(void *object)
{
    prudence_free_sized(object, prudence_usable_size(object));
}

static void reallocate(void *object)
{
    assert_non_null(prudence_realloc(object, prudence_usable_size(object)));
}

static void reallocate_less(void *object)
{
    assert_non_null(prudence_realloc(object, prudence_usable_size(object) / 4));
}

static void cache_free(void *object)
{
    prudence_cache_free(cache, object);
}

static void cache_free_bulk(void *object)
{
    prudence_cache_free_bulk(cache, 1, &object);
}

static void cache_free_deferred(void *object)
{
    prudence_cache_free_deferred(cache, object);
}

/* Frees the object, and then enough others to push it out. */
static void free_and_push_out(void *object)
{
    prudence_free(object);
    for (unsigned i = 0; i < 8; i++)
        prudence_free(prudence_malloc(300 * KIB));
}

static void refresh(void *object)
{
    scm_refresh(object, 1);
}

static void misuse(void *argument)
{
    const struct misuse *misuse = argument;
    void *object;

    for (unsigned i = 0; i < 3 && misuse->options[i][0]; i++)
        if (prudence_option_set(misuse->options[i][0], misuse->options[i][1]))
            _Exit(3);
    if (misuse->size) {
        object = prudence_malloc(misuse->size);
    } else {
        cache = prudence_cache_create("mine", 100, NULL);
        object = prudence_cache_alloc(cache);
    }
    prudence_read_lock(); /* keeps deferred objects latent */
    misuse->first(object);
    misuse->second(object);
    _Exit(4);
}

static void is_reported(struct misuse it, const char *text)
{
    static const char *const options[][3][2] = {
        {{"quarantine", "2M"}},
        {{"quarantine", "2M"}, {"check", "1"}},
        {{"quarantine", "2M"}, {"zero_on_free", "1"}},
        {{"quarantine", "2M"}, {"guard", "1"}},
        {{"quarantine", "2M"}, {"rseq", "0"}},
    };

    for (unsigned i = 0; i < sizeof options / sizeof options[0]; i++) {
        memcpy(it.options, options[i], sizeof it.options);
        expect_death(misuse, &it, text, NULL, NULL);
    }
}

static const size_t sizes[] = {16, 100, 1000, 32768, 40000, 256 * KIB};
#define SIZES (sizeof sizes / sizeof sizes[0])

TEST(freed_and_freed_again)
{
    for (unsigned i = 0; i < SIZES; i++)
        is_reported(
            (struct misuse){.size = sizes[i], .first = prudence_free, .second = prudence_free},
            "is already free");
    is_reported((struct misuse){.size = 100, .first = prudence_free, .second = free_sized},
                "is already free");
    is_reported((struct misuse){.size = 100, .first = free_and_push_out, .second = prudence_free},
                "is already free");
}

TEST(freed_and_deferred)
{
    for (unsigned i = 1; i < SIZES; i += 2)
        is_reported((struct misuse){.size = sizes[i],
                                    .first = prudence_free,
                                    .second = prudence_free_deferred},
                    "is already free");
}

TEST(deferred_and_freed)
{
    for (unsigned i = 1; i < SIZES; i += 2)
        is_reported((struct misuse){.size = sizes[i],
                                    .first = prudence_free_deferred,
                                    .second = prudence_free},
                    "is already deferred and not yet safe");
    is_reported((struct misuse){.size = 100,
                                .first = prudence_free_deferred,
                                .second = prudence_free_deferred},
                "is already deferred and not yet safe");
}

TEST(freed_and_reallocated)
{
    for (unsigned i = 1; i < SIZES; i += 2) {
        is_reported((struct misuse){.size = sizes[i], .first = prudence_free, .second = reallocate},
                    "is already free");
        is_reported((struct misuse){.size = sizes[i],
                                    .first = prudence_free_deferred,
                                    .second = reallocate_less},
                    "is already deferred and not yet safe");
    }
}

TEST(freed_and_given_a_date)
{
    is_reported((struct misuse){.size = 100, .first = prudence_free, .second = refresh},
                "is already free");
}

TEST(objects_of_caches)
{
    is_reported((struct misuse){.first = cache_free, .second = cache_free}, "is already free");
    is_reported((struct misuse){.first = cache_free, .second = cache_free_bulk}, "is already free");
    is_reported((struct misuse){.first = cache_free, .second = cache_free_deferred},
                "is already free");
    is_reported((struct misuse){.first = cache_free_deferred, .second = cache_free_bulk},
                "is already deferred and not yet safe");
}

/* Without misuse there is no report: dates end, deferred objects become safe, and all objects rest
 * and leave. */
static void good_program(void *unused)
{
    if (prudence_option_set("quarantine", "64K") || scm_register_thread())
        abort();
    for (unsigned i = 0; i < 3000; i++) {
        void *object = prudence_malloc(i % 3000), *large = prudence_malloc(40000);

        scm_refresh(object, i % 3);
        scm_tick();
        prudence_free(prudence_realloc(prudence_malloc(200), 100 + i));
        prudence_free_deferred(large);
        prudence_free_deferred(prudence_malloc(64));
    }
    if (scm_unregister_thread())
        abort();
    prudence_synchronize();
    prudence_trim();
}

TEST(nothing_else_is_reported)
{
    char output[4096];

    expect_life(good_program, NULL, output, sizeof output);
    assert_string_equal(output, "");
}

SUITE()
