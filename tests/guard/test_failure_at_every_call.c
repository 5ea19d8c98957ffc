/* SPDX-License-Identifier: MIT */
/*
 * Tries objects of all sizes while each call to the page source, metadata or page map fails in
 * turn (support/every_call.h): no crash, ENOMEM, intact contents, and in the end nothing is held.
 * Repeats this with each option that finds bugs.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 * ctest: cost 24
 */
#include "support/every_call.h"

#define SIZES 9

static const size_t sizes[SIZES] = {1, 100, 2000, 30000, 32768, 40000, 500000, 2200000, 64};

static void *allocate(unsigned i)
{
    void *object;

    errno = 0;
    object = i == 8  ? prudence_aligned_alloc(2048, sizes[i])
             : i % 2 ? prudence_calloc(1, sizes[i])
                     : prudence_malloc(sizes[i]);
    if (object) {
        fill_pattern(object, sizes[i]);
        if (i % 2 == 0) { /* moves, or stays intact */
            void *moved = prudence_realloc(object, 3 * sizes[i]);

            assert_true(moved || has_pattern(object, sizes[i]));
            object = moved ? moved : object;
            fill_pattern(object, sizes[i]);
        }
    } else {
        assert_int_equal(errno, ENOMEM);
    }
    return object;
}

static void use_all_sizes(void)
{
    void *objects[SIZES];
    struct prudence_stats stats;

    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < SIZES; i++)
            objects[i] = allocate(i);
        for (unsigned i = 0; i < SIZES; i++) {
            if (objects[i])
                assert_true(has_pattern(objects[i], sizes[i]));
            (round == 1 ? prudence_free_deferred : prudence_free)(objects[i]);
        }
    }
    failures_end();
    prudence_synchronize();
    prudence_trim();
    prudence_synchronize();
    prudence_trim();
    prudence_stats(&stats);
    assert_false(stats.objects_live || stats.objects_latent || stats.slabs_now || stats.slab_bytes);
}

static const char *const checked[] = {"check", "1", "zero_on_free", "1", NULL};
static const char *const guarded[] = {"guard", "1", NULL};
static const char *const resting[] = {"quarantine", "1M", "guard", "1", "check", "1", NULL};

static const struct failure_row rows[] = {
    {"all sizes", use_all_sizes, NULL, 20, true},
    {"all sizes, checked", use_all_sizes, checked, 20, true},
    {"all sizes, guarded", use_all_sizes, guarded, 20, true},
    {"all sizes, resting", use_all_sizes, resting, 20, true},
};

TEST(failures_lose_nothing)
{
    every_call_of(rows, sizeof rows / sizeof rows[0]);
}

SUITE(pin_thread())
