/* SPDX-License-Identifier: MIT */
/*
 * Tries objects of all sizes while each call to the page source, metadata or page map fails in
 * turn: no crash, ENOMEM, intact contents, and in the end nothing is held. A child runs each case,
 * so that size classes and the cache of large blocks are made anew. Repeats this with each option
 * that finds bugs.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 * ctest: cost 24
 */
#include <unistd.h>

#include "support/deep.h"
#include "support/slab_test.h"

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

            if (!moved && !has_pattern(object, sizes[i]))
                abort();
            object = moved ? moved : object;
            fill_pattern(object, sizes[i]);
        }
    } else if (errno != ENOMEM) {
        abort();
    }
    return object;
}

static void scenario(void *report)
{
    void *objects[SIZES];
    struct prudence_stats stats;

    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < SIZES; i++)
            objects[i] = allocate(i);
        for (unsigned i = 0; i < SIZES; i++) {
            if (objects[i] && !has_pattern(objects[i], sizes[i]))
                abort();
            (round == 1 ? prudence_free_deferred : prudence_free)(objects[i]);
        }
    }
    *(unsigned *)report = memory_calls;
    memory_succeed();
    prudence_synchronize();
    prudence_trim();
    prudence_synchronize();
    prudence_trim();
    prudence_stats(&stats);
    if (stats.objects_live || stats.objects_latent || stats.slabs_now || stats.slab_bytes)
        abort();
    fprintf(stderr, "calls=%u", *(unsigned *)report);
}

struct plan {
    unsigned first, count;
    const char *const *options; /* name, value, ... NULL */
};

static void run(void *argument)
{
    const struct plan *plan = argument;
    unsigned calls;

    memory_fail(plan->first, plan->count);
    for (const char *const *option = plan->options; *option; option += 2)
        if (prudence_option_set(option[0], option[1]) != 0)
            abort();
    scenario(&calls);
}

static void every_call(unsigned count, const char *const *options)
{
    char output[4096];
    struct plan plan = {.count = count, .options = options};
    unsigned calls = UINT32_MAX;

    for (; plan.first < calls; plan.first += plan.first < 20 ? 1 : deep_stride(3)) {
        const char *found;

        expect_life(run, &plan, output, sizeof output);
        found = strstr(output, "calls=");
        assert_non_null(found);
        calls = (unsigned)strtoul(found + 6, NULL, 10);
    }
    assert_true(plan.first > 20);
}

static const char *const none[] = {NULL};
static const char *const checked[] = {"check", "1", "zero_on_free", "1", NULL};
static const char *const guarded[] = {"guard", "1", NULL};
static const char *const resting[] = {"quarantine", "1M", "guard", "1", "check", "1", NULL};

static void one_call_fails(void **options)
{
    every_call(1, (const char *const *)*options);
}

static void all_calls_fail_from_then_on(void **options)
{
    every_call(UINT32_MAX, (const char *const *)*options);
}

#define OPTIONS(options) ((void *)(uintptr_t)(options))

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(one_call_fails, OPTIONS(none)),
        cmocka_unit_test_prestate(all_calls_fail_from_then_on, OPTIONS(none)),
        cmocka_unit_test_prestate(one_call_fails, OPTIONS(checked)),
        cmocka_unit_test_prestate(all_calls_fail_from_then_on, OPTIONS(checked)),
        cmocka_unit_test_prestate(one_call_fails, OPTIONS(guarded)),
        cmocka_unit_test_prestate(all_calls_fail_from_then_on, OPTIONS(guarded)),
        cmocka_unit_test_prestate(one_call_fails, OPTIONS(resting)),
        cmocka_unit_test_prestate(all_calls_fail_from_then_on, OPTIONS(resting)),
    };

    pin_thread();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
