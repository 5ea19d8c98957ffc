/* SPDX-License-Identifier: MIT */
/*
 * Objects of any size, whichever call to the page source, metadata or page map fails: no crash,
 * ENOMEM, whole contents, and in the end nothing is held. In a child for each, so that size classes
 * and the cache of large blocks are made anew.
 */
#include <unistd.h>

#include "support/slab_test.h"

#define SIZES 9

static const size_t sizes[SIZES] = {1, 100, 2000, 30000, 32768, 40000, 500000, 5 << 20, 64};

static void *allocate(unsigned i)
{
    void *object;

    errno = 0;
    object = i == 8  ? prudence_aligned_alloc(2048, sizes[i])
             : i % 2 ? prudence_calloc(1, sizes[i])
                     : prudence_malloc(sizes[i]);
    if (object) {
        fill_pattern(object, sizes[i]);
        if (i % 2 == 0) { /* moves, or stays whole */
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
};

static void run(void *argument)
{
    const struct plan *plan = argument;
    unsigned calls;

    memory_fail(plan->first, plan->count);
    scenario(&calls);
}

static void every_call(unsigned count)
{
    char output[4096];
    struct plan plan = {.count = count};
    unsigned calls = UINT32_MAX;

    for (; plan.first < calls; plan.first++) {
        const char *found;

        expect_life(run, &plan, output, sizeof output);
        found = strstr(output, "calls=");
        assert_non_null(found);
        calls = (unsigned)strtoul(found + 6, NULL, 10);
    }
    assert_true(plan.first > 20);
}

static void one_call_fails(void **state)
{
    (void)state;
    every_call(1);
}

static void all_calls_fail_from_then_on(void **state)
{
    (void)state;
    every_call(UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_call_fails),
        cmocka_unit_test(all_calls_fail_from_then_on),
    };

    pin_thread();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
