/* SPDX-License-Identifier: MIT */
/*
 * realloc() of large blocks in place keeps all books right: statistics, latent bytes, states,
 * owners of pages. Misuse is caught, and a failure at any call loses nothing.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/every_call.h"
#include "support/stats.h"

#define MIB ((size_t)1 << 20)

static const size_t sizes[] = {140000,  160000,   133000,  200000, 2 * MIB,      2 * MIB + 1,
                               5 * MIB, 40 * MIB, 3 * MIB, MIB,    12 * MIB + 5, 36864};

static void walk(void)
{
    struct prudence_stats before = stats_now(), after;
    char *block = prudence_malloc(150000), *last = block;
    size_t size = 150000;

    fill_pattern(block, size);
    for (unsigned i = 0; i < 3 * sizeof sizes / sizeof sizes[0]; i++) {
        size_t wanted = sizes[i % (sizeof sizes / sizeof sizes[0])];
        char copy[64];

        memcpy(copy, block, sizeof copy);
        block = prudence_realloc(block, wanted);
        assert_non_null(block);
        assert_memory_equal(block, copy, sizeof copy);
        assert_true(prudence_usable_size(block) >= wanted);
        assert_ptr_equal(os_page_owner(block + wanted - 1), os_page_owner(block));
        if (last != block)
            assert_ptr_not_equal(os_page_owner(last), os_page_owner(block));
        last = block;
        size = wanted;
        memset(block, (int)i, size);
        prudence_realloc(NULL, 0) ? (void)0 : fail();
    }
    after = stats_now();
    assert_true(after.slabs_now > before.slabs_now);
    prudence_free_deferred(block);
    assert_true(stats_now().bytes_latent >= 36864);
    prudence_synchronize();
    prudence_trim();
    after = stats_now();
    assert_int_equal(after.bytes_latent, 0);
    assert_int_equal(after.objects_latent, 0);
}

static void walk_checked(void)
{
    if (prudence_option_set("check", "1"))
        abort();
    walk();
    prudence_free(prudence_realloc(prudence_malloc(5 * MIB), 50 * MIB));
}

TEST(books_are_right_under_check)
{
    expect_survival(walk_checked(), "");
}

static void resize_deferred(size_t size)
{
    char *block = prudence_malloc(size);

    prudence_read_lock();
    prudence_free_deferred(block);
    block = prudence_realloc(block, 50 * MIB);
}

static char *resized(size_t from, size_t to)
{
    return prudence_realloc(prudence_malloc(from), to);
}

TEST(misuse_is_caught)
{
    expect_death(resize_deferred(5 * MIB), "prudence_realloc: 0x", "large",
                 "deferred and not yet safe");
    expect_death((discard(prudence_malloc(5 * MIB)), resize_deferred(200000)),
                 "prudence_realloc: ", "large",
                 "deferred and not yet safe"); /* found earlier in one of the first blocks */
    expect_death(prudence_free(resized(5 * MIB, 50 * MIB) + 30 * MIB),
                 "points into an object of cache 'large'", "31457280 bytes after");
    expect_death(prudence_free(resized(50 * MIB, 5 * MIB) + 30 * MIB), "foreign pointer");
}

static void resize_while_calls_fail(void)
{
    size_t size = 150000;
    char *block, kept[64];

    memory_succeed();
    block = prudence_malloc(size);
    fill_pattern(block, 64);
    memcpy(kept, block, 64);
    failures_begin();
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *resized = prudence_realloc(block, sizes[i]);

        assert_true(resized || sizes[i] > size); /* shrinking needs no memory */
        if (resized) {
            block = resized;
            size = sizes[i];
        }
        assert_memory_equal(block, kept, 64);
        assert_true(prudence_usable_size(block) >= size);
        block[size - 1] = 1;
    }
    failures_end();
    prudence_free(block);
    prudence_trim();
    assert_false(stats_now().objects_live || stats_now().slab_bytes || stats_now().retained_bytes);
}

TEST(failures_lose_nothing)
{
    static const struct failure_row row = {"resizes", resize_while_calls_fail, .least = 8};

    every_call_of(&row, 1);
}

/* Last, because the others need a process without caches. */
TEST(books_are_right)
{
    walk();
}

SUITE(pin_thread())
