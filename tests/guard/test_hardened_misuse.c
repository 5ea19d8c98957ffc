/* SPDX-License-Identifier: MIT */
/*
 * hardened=1 reports each kind of fault, with the object and the error. preload/test_faults.py
 * covers all kinds and sizes, and also what the default catches.
 *
 * ctest: not-with sanitizers (they see the faults themselves)
 */
#include <signal.h>

#include "posix.h"
#include "support/slab_test.h"

#define SIZE  100
#define LARGE ((size_t)256 << 10)

/* A fault that a program commits with a block that has neighbours. */
struct fault {
    void (*act)(char *object);
    size_t size;
    const char *text; /* in the report */
};

static char *objects[9];
static size_t size;

/* Commits a fault in a child, which must not come to the end. */
static void commit(void *argument)
{
    const struct fault *fault = argument;

    if (prudence_option_set("hardened", "1"))
        _Exit(3);
    size = fault->size;
    for (unsigned i = 0; i < 9; i++)
        objects[i] = prudence_malloc(size);
    fault->act(objects[4]);
    _Exit(4);
}

/* ------------------------------------------------------------------------------ faults found
 * later */

static void overflow(char *object)
{
    object[size] = 0; /* as the end of a string */
    prudence_free(object);
}

static void overflow_of_slack_only(char *object)
{
    object[23] = 1; /* 24 fit */
    prudence_free(object);
}

static void overflow_then_deferred(char *unused)
{
    struct prudence_cache *cache = fixed_cache(SIZE, 16, manual_domain());
    char *object = prudence_cache_alloc(cache);

    object[SIZE] = 1;
    prudence_cache_free_deferred(cache, object);
    prudence_cache_shrink(cache);
    prudence_manual_advance(cache->domain);
    os_report("not before it is safe");
    prudence_cache_shrink(cache);
    objects[0] = prudence_cache_alloc(cache);
}

static void overflow_then_resized(char *object)
{
    object[SIZE] = 1;
    objects[0] = prudence_realloc(object, SIZE + 2);
}

/* Writes to the tail, which follows at once. The object's cache line has live objects, so it is
 * allocated again after all whole lines of the slab. */
static void overflow_of_a_free_object(char *object)
{
    prudence_free(object);
    object[24] = 1;
    prudence_trim();
    for (unsigned i = 0; i < 1000; i++)
        objects[0] = prudence_malloc(24);
}

static void underflow(char *object)
{
    object[-1] = 1;
    prudence_free(object);
}

static void freed_twice(char *object)
{
    prudence_free(object);
    prudence_free(object);
}

static void churn(void)
{
    for (unsigned i = 0; i < 9; i++)
        objects[i] = prudence_malloc(SIZE);
    prudence_free(objects[4]);
}

static void written_after_free(char *object)
{
    prudence_free(object);
    object[SIZE - 1] = 1;
    for (unsigned i = 0; i < 400; i++)
        churn();
}

static void written_after_free_at_exit(char *object)
{
    prudence_free(object);
    object[SIZE - 1] = 1;
    exit(4);
}

/* The object leaves its random place with a probability of 1 - (63/64)^3000, and nothing allocates
 * it afterwards. */
static void written_after_free_never_allocated(char *object)
{
    void *others[3000];

    for (unsigned i = 0; i < 3000; i++)
        others[i] = prudence_malloc(SIZE);
    prudence_free(object);
    object[SIZE - 1] = 1;
    for (unsigned i = 0; i < 3000; i++)
        prudence_free(others[i]);
    _exit(4);
}

static void wrong_size(char *object)
{
    prudence_free_sized(object, SIZE + 1);
}

static void size_of_freed(char *object)
{
    prudence_free(object);
    prudence_usable_size(object);
}

TEST(are_reported)
{
    static struct fault faults[] = {
        {overflow_of_slack_only, 17, "overflow: the byte 6 after the 17-byte object"},
        {overflow_then_resized, SIZE, "found by: prudence_realloc"},
        {overflow_of_a_free_object, 24, "found by: its next allocation"},
        {underflow, SIZE, "underflow: the byte 1 before the 100-byte object"},
        {freed_twice, SIZE, "is already free"},
        {written_after_free, SIZE, "write after free: byte 99 of"},
        {written_after_free_never_allocated, SIZE, "write after free: byte 99 of"},
        {written_after_free_at_exit, SIZE, "write after free: byte 99 of"},
        {wrong_size, SIZE, "has 100 bytes, and the size 101 is wrong"},
        {size_of_freed, SIZE, "is already free"},
    };

    for (unsigned i = 0; i < sizeof faults / sizeof faults[0]; i++)
        expect_death(commit, &faults[i], faults[i].text, NULL, NULL);
}

TEST(overflows_of_all_sizes_are_reported)
{
    static const size_t sizes[] = {1, 8, 16, 24, SIZE, 1000, 32760, 40000, LARGE - 5};

    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct fault fault = {overflow, sizes[i], NULL};

        expect_death(commit, &fault, "overflow: the byte 0 after", NULL, NULL);
    }
}

/* Until then, readers may write there. */
TEST(deferred_objects_are_looked_at_when_they_are_safe)
{
    struct fault fault = {overflow_then_deferred, SIZE, NULL};
    char output[4096];

    expect_signal(SIGABRT, commit, &fault, output, sizeof output);
    expect_text(output, "not before it is safe");
    expect_text(output, "found by: the end of its grace period");
}

/* ---------------------------------------------------------------------------------- accesses that
 * fault */

static void before_large(char *object)
{
    object[-1] = 1;
}

static void behind_large(char *object)
{
    object[LARGE] = 1;
}

static void freed_large(char *object)
{
    prudence_free(object);
    object[5] = 1;
}

static void safe_large(char *object)
{
    prudence_read_lock();
    prudence_free_deferred(object);
    object[5] = 1; /* allowed for readers */
    prudence_read_unlock();
    prudence_synchronize();
    prudence_trim();
    object[5] = 1;
}

static void nothing(char *object)
{
    object[0] = 1;
}

TEST(fault)
{
    static struct fault faults[] = {{before_large, LARGE, "underflow: access of"},
                                    {behind_large, LARGE, "overflow: access of"},
                                    {freed_large, LARGE, "use after free: access of"},
                                    {safe_large, LARGE, "use after free: access of"},
                                    {nothing, 0, "an object of 0 bytes"}};
    char output[4096];

    for (unsigned i = 0; i < 2 * sizeof faults / sizeof faults[0]; i++) {
        posix_guard_marks = i % 2; /* without marks, as before Linux 6.13 */
        expect_signal(SIGSEGV, commit, &faults[i / 2], output, sizeof output);
        expect_text(output, faults[i / 2].text);
    }
}

SUITE()
