/* SPDX-License-Identifier: MIT */
/*
 * hardened=1: each kind of fault is reported, with the object and what was wrong. All kinds and sizes: preload/test_faults.py,
 * which also knows what the default catches.
 *
 * ctest: not-with sanitizers (they see the faults themselves)
 */
#include <signal.h>

#include "support/slab_test.h"

#define SIZE  100
#define LARGE ((size_t)256 << 10)

static char *objects[9];

static char *block(size_t size)
{
    for (unsigned i = 0; i < 9; i++)
        objects[i] = prudence_malloc(size);
    return objects[4];
}

static void harden(void)
{
    if (prudence_option_set("hardened", "1"))
        _Exit(3);
}

static void overflow(void *size)
{
    char *object;

    harden();
    object = block(*(size_t *)size);
    object[*(size_t *)size] = 0; /* as behind a string */
    prudence_free(object);
    _Exit(4);
}

static void overflow_of_slack_only(void *unused)
{
    char *object;

    (void)unused;
    harden();
    object = block(17); /* 24 fit */
    object[23] = 1;
    prudence_free(object);
    _Exit(4);
}

static void overflow_then_deferred(void *unused)
{
    struct prudence_cache *cache;
    char *object;

    (void)unused;
    harden();
    cache = fixed_cache(SIZE, 16, manual_domain());
    object = prudence_cache_alloc(cache);
    object[SIZE] = 1;
    prudence_cache_free_deferred(cache, object);
    prudence_cache_shrink(cache);
    prudence_manual_advance(cache->domain);
    os_report("not before it is safe");
    prudence_cache_shrink(cache);
    objects[0] = prudence_cache_alloc(cache);
    _Exit(4);
}

static void overflow_then_resized(void *unused)
{
    char *object;

    (void)unused;
    harden();
    object = block(SIZE);
    object[SIZE] = 1;
    objects[0] = prudence_realloc(object, SIZE + 2);
    _Exit(4);
}

static void overflow_of_a_free_object(void *unused)
{
    char *object;

    (void)unused;
    harden();
    object = block(24); /* the tail follows at once */
    prudence_free(object);
    object[24] = 1;
    prudence_trim();
    for (unsigned i = 0; i < 400; i++)
        objects[0] = prudence_malloc(24);
    _Exit(4);
}

static void underflow(void *unused)
{
    char *object;

    (void)unused;
    harden();
    object = block(SIZE);
    object[-1] = 1;
    prudence_free(object);
    _Exit(4);
}

static void freed_twice(void *unused)
{
    char *object;

    (void)unused;
    harden();
    object = block(SIZE);
    prudence_free(object);
    prudence_free(object);
    _Exit(4);
}

static void written_after_free(void *unused)
{
    char *object;

    (void)unused;
    harden();
    object = block(SIZE);
    prudence_free(object);
    object[SIZE - 1] = 1;
    for (unsigned i = 0; i < 400; i++)
        prudence_free(block(SIZE));
    _Exit(4);
}

static void written_after_free_at_exit(void *unused)
{
    char *object;

    (void)unused;
    harden();
    object = block(SIZE);
    prudence_free(object);
    object[SIZE - 1] = 1;
    exit(4);
}

static void wrong_size(void *unused)
{
    (void)unused;
    harden();
    prudence_free_sized(block(SIZE), SIZE + 1);
    _Exit(4);
}

static void size_of_freed(void *unused)
{
    char *object;

    (void)unused;
    harden();
    object = block(SIZE);
    prudence_free(object);
    prudence_usable_size(object);
    _Exit(4);
}

static void are_reported(void **state)
{
    static size_t sizes[] = {1, 8, 16, 24, SIZE, 1000, 32760, 40000, LARGE - 5};
    char output[4096];

    (void)state;
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        expect_death(overflow, &sizes[i], "overflow: the byte 0 behind", NULL, NULL);
    expect_death(overflow_of_slack_only, NULL, "overflow: the byte 6 behind the 17-byte object",
                 NULL, NULL);
    expect_signal(SIGABRT, overflow_then_deferred, NULL, output, sizeof output);
    expect_text(output, "not before it is safe");
    expect_text(output, "found by: the end of its grace period");
    expect_death(overflow_then_resized, NULL, "found by: prudence_realloc", NULL, NULL);
    expect_death(overflow_of_a_free_object, NULL, "found by: its next allocation", NULL, NULL);
    expect_death(underflow, NULL, "underflow: the byte 1 before the 100-byte object", NULL, NULL);
    expect_death(freed_twice, NULL, "is already free", NULL, NULL);
    expect_death(written_after_free, NULL, "write after free: byte 99 of", NULL, NULL);
    expect_death(written_after_free_at_exit, NULL, "write after free: byte 99 of", NULL, NULL);
    expect_death(wrong_size, NULL, "has 100 bytes, which the size 101 does not fit", NULL, NULL);
    expect_death(size_of_freed, NULL, "is already free", NULL, NULL);
}

/* ---------------------------------------------------------------------------------- what faults */

static void before_large(void *unused)
{
    (void)unused;
    harden();
    block(LARGE)[-1] = 1;
    _Exit(4);
}

static void behind_large(void *unused)
{
    (void)unused;
    harden();
    block(LARGE)[LARGE] = 1;
    _Exit(4);
}

static void freed_large(void *unused)
{
    char *object;

    (void)unused;
    harden();
    object = block(LARGE);
    prudence_free(object);
    object[5] = 1;
    _Exit(4);
}

static void safe_large(void *unused)
{
    char *object;

    (void)unused;
    harden();
    object = block(LARGE);
    prudence_read_lock();
    prudence_free_deferred(object);
    object[5] = 1; /* its readers may */
    prudence_read_unlock();
    prudence_synchronize();
    prudence_trim();
    object[5] = 1;
    _Exit(4);
}

static void nothing(void *unused)
{
    (void)unused;
    harden();
    block(0)[0] = 1;
    _Exit(4);
}

static void fault(void **state)
{
    static const struct {
        void (*act)(void *);
        const char *text;
    } faults[] = {{before_large, "underflow: access of"},
                  {behind_large, "overflow: access of"},
                  {freed_large, "use after free: access of"},
                  {safe_large, "use after free: access of"},
                  {nothing, "an object of no bytes"}};
    char output[4096];

    (void)state;
    for (unsigned i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        expect_signal(SIGSEGV, faults[i].act, NULL, output, sizeof output);
        expect_text(output, faults[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(are_reported),
        cmocka_unit_test(fault),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
