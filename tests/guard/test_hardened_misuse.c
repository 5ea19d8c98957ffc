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

static char *objects[9];

/* Returns an object between others. */
static char *middle(size_t size)
{
    if (prudence_option_set("hardened", "1"))
        _Exit(3);
    for (unsigned i = 0; i < 9; i++)
        objects[i] = prudence_malloc(size);
    return objects[4];
}

/* ------------------------------------------------------------------------------ faults found
 * later */

/* Writes a byte, at that distance, and frees the object. */
static void write_and_free(char *object, ptrdiff_t at)
{
    object[at] = 0; /* as the end of a string */
    prudence_free(object);
}

static void overflow_then_deferred(void)
{
    struct prudence_cache *cache;
    char *object;

    middle(SIZE);
    cache = fixed_cache(SIZE, 16, manual_domain());
    object = prudence_cache_alloc(cache);

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

static void size_of_freed(char *object)
{
    prudence_free(object);
    prudence_usable_size(object);
}

TEST(are_reported)
{
    expect_death(write_and_free(middle(17), 23), "overflow: the byte 6 after the 17-byte object");
    expect_death(overflow_then_resized(middle(SIZE)), "found by: prudence_realloc");
    expect_death(overflow_of_a_free_object(middle(24)), "found by: its next allocation");
    expect_death(write_and_free(middle(SIZE), -1),
                 "underflow: the byte 1 before the 100-byte object");
    expect_death((prudence_free(middle(SIZE)), prudence_free(objects[4])), "is already free");
    expect_death(written_after_free(middle(SIZE)), "write after free: byte 99 of");
    expect_death(written_after_free_never_allocated(middle(SIZE)), "write after free: byte 99 of");
    expect_death(written_after_free_at_exit(middle(SIZE)), "write after free: byte 99 of");
    expect_death(prudence_free_sized(middle(SIZE), SIZE + 1),
                 "has 100 bytes, and the size 101 is wrong");
    expect_death(size_of_freed(middle(SIZE)), "is already free");
}

TEST(overflows_of_all_sizes_are_reported)
{
    static const size_t sizes[] = {1, 8, 16, 24, SIZE, 1000, 32760, 40000, LARGE - 5};

    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        expect_death(write_and_free(middle(sizes[i]), (ptrdiff_t)sizes[i]),
                     "overflow: the byte 0 after");
}

/* Until then, readers may write there. */
TEST(deferred_objects_are_looked_at_when_they_are_safe)
{
    expect_death(overflow_then_deferred(), "not before it is safe",
                 "found by: the end of its grace period");
}

/* ---------------------------------------------------------------------------------- accesses that
 * fault */

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

TEST(fault)
{
    for (unsigned i = 0; i < 2; i++) {
        posix_guard_marks = i % 2; /* without marks, as before Linux 6.13 */
        expect_fault(middle(LARGE)[-1] = 1, "underflow: access of");
        expect_fault(middle(LARGE)[LARGE] = 1, "overflow: access of");
        expect_fault(freed_large(middle(LARGE)), "use after free: access of");
        expect_fault(safe_large(middle(LARGE)), "use after free: access of");
        expect_fault(middle(0)[0] = 1, "an object of 0 bytes");
    }
}

SUITE()
