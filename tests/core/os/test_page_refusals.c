/* SPDX-License-Identifier: MIT */
/*
 * Refusals of the system leave no trace in the peak, in predicted demand, or in the books' memory.
 * While the system is asked, the limit holds for all threads.
 *
 * ctest: not-with thread (one thread)
 */
#include <limits.h>
#include <sys/resource.h>

#include "support/pages.h"
#include "support/process_memory.h"
#include "support/stats.h"

#define GIB ((size_t)1 << 30)

static struct rlimit before;

/* Leaves the process address space for one more GiB. */
static int little_address_space(void **state)
{
    struct rlimit limit;

    begin_with_everything_kept(state);
    getrlimit(RLIMIT_AS, &before);
    limit = before;
    limit.rlim_cur = address_space() + GIB;
    return setrlimit(RLIMIT_AS, &limit);
}

static int as_before(void **state)
{
    return setrlimit(RLIMIT_AS, &before);
}

static void expect_no_trace(const struct os_pages_stats *then)
{
    struct os_pages_stats stats = pages();

    assert_int_equal(stats.used, then->used);
    assert_int_equal(stats.used_peak, then->used_peak);
    assert_int_equal(stats.metadata, then->metadata);
}

TEST(a_block, little_address_space, as_before)
{
    struct os_pages_stats then;

    os_pages_free(os_pages_alloc(3 * MIB, OS_PAGE_SIZE, 0, NULL), 3 * MIB); /* makes the books */
    then = pages();
    for (size_t bytes = 2 * GIB; bytes <= (size_t)1 << 46; bytes *= 2)
        assert_null(os_pages_alloc(bytes, OS_PAGE_SIZE, 0, NULL));
    expect_no_trace(&then);
    assert_int_equal(pages().retained, 0); /* given back before the system was asked again */
}

static void expect_no_growth(size_t size)
{
    char *block = os_pages_alloc(size, OS_PAGE_SIZE, 0, NULL);
    struct os_pages_stats then;
    static char owner;

    assert_non_null(block);
    assert_true(os_page_owner_set(block, size, &owner));
    then = pages();
    for (size_t bytes = 2 * GIB; bytes <= (size_t)1 << 46; bytes *= 2)
        assert_null(os_pages_resize(block, size, bytes, &owner));
    expect_no_trace(&then);
    os_page_owner_set(block, size, NULL);
    os_pages_free(block, size);
}

TEST(growth, little_address_space, as_before)
{
    expect_no_growth(3 * MIB);     /* a run */
    expect_no_growth(2 * RUN_MAX); /* a huge mapping */
}

/* A free huge mapping that cannot grow stays as it was, and dirty. */
TEST(growth_of_a_free_one, little_address_space, as_before)
{
    struct os_pages_stats then;
    char *block = os_pages_alloc(600 * MIB, OS_PAGE_SIZE, 0, NULL);

    assert_non_null(block);
    os_pages_free(block, 600 * MIB);
    then = pages();
    assert_int_equal(then.retained, 600 * MIB);
    assert_null(os_pages_alloc(1100 * MIB, OS_PAGE_SIZE, 0, NULL));
    expect_no_trace(&then);
}

/* Shrinks a huge mapping, which keeps the address space, and reuses the start, so the rest is free
 * without any memory. It makes room for a block for which there are no addresses else. */
TEST(a_free_one_without_memory_makes_room, little_address_space, as_before)
{
    char *block = os_pages_alloc(640 * MIB, OS_PAGE_SIZE, 0, NULL), *other;
    static char owner;

    assert_non_null(block);
    assert_true(os_page_owner_set(block, 640 * MIB, &owner));
    assert_ptr_equal(os_pages_resize(block, 640 * MIB, 330 * MIB, &owner), block);
    os_page_owner_set(block, 330 * MIB, NULL);
    os_pages_free(block, 330 * MIB);
    assert_ptr_equal(os_pages_alloc(330 * MIB, OS_PAGE_SIZE, 0, NULL), block);
    assert_int_equal(pages().retained, 0);
    other = os_pages_alloc(550 * MIB, OS_PAGE_SIZE, 0, NULL);
    assert_non_null(other);
    os_pages_free(other, 550 * MIB);
    os_pages_free(block, 330 * MIB);
    os_pages_trim();
}

/* Large failed requests are no reason to keep much. */
TEST(demand_forgets_it, little_address_space, as_before)
{
    struct excess excess;
    char *block = os_pages_alloc(5 * MIB, OS_PAGE_SIZE, 0, NULL);
    bool any;

    for (unsigned i = 0; i < 100; i++)
        assert_null(os_pages_alloc(2 * GIB, OS_PAGE_SIZE, 0, NULL));
    now += UINT64_C(10000000000); /* windows of decay without any demand */
    os_pages_decay();
    assert_null(os_pages_alloc(2 * GIB, OS_PAGE_SIZE, 0, NULL));
    os_pages_free(block, 5 * MIB);
    os_pages_set_retain(0);
    os_lock_take(&pages_lock);
    any = working_set_excess(&excess, true);
    os_lock_release(&pages_lock);
    assert_true(any);
    assert_int_equal(excess.bytes[RUNS] + excess.bytes[HUGE_MAPPINGS], 5 * MIB);
}

TEST(by_realloc, little_address_space, as_before)
{
    void *block = prudence_malloc(2 * RUN_MAX);
    struct prudence_stats then = stats_now(), stats;

    assert_null(prudence_realloc(block, 100 * GIB));
    assert_null(prudence_malloc(100 * GIB));
    prudence_stats(&stats);
    assert_int_equal(stats.slab_bytes, then.slab_bytes);
    assert_int_equal(stats.slab_bytes_peak, then.slab_bytes_peak);
    prudence_free(block);
}

/* Leaves the process no address space. */
static int no_address_space(void **state)
{
    struct rlimit limit;

    begin_with_everything_kept(state);
    getrlimit(RLIMIT_AS, &before);
    limit = before;
    limit.rlim_cur = address_space();
    return setrlimit(RLIMIT_AS, &limit);
}

static unsigned maps;

static void count_maps(const char *call)
{
    maps += strcmp(call, "mmap") == 0;
}

/* The moment for which a refusal is remembered may be over at any call, so one of many must show
 * it. */
TEST(asks_once_a_moment, no_address_space, as_before)
{
    unsigned fewest = UINT_MAX;
    void *run;

    while (os_pages_alloc(64 << 10, OS_PAGE_SIZE, 0, NULL))
        ;
    mapping_watch(count_maps);
    for (unsigned i = 0; i < 1000 && fewest > 1; i++) {
        maps = 0;
        assert_null(os_pages_alloc(64 << 10, OS_PAGE_SIZE, 0, NULL));
        fewest = maps < fewest ? maps : fewest;
    }
    mapping_watch(NULL);
    assert_int_equal(fewest, 1);
    setrlimit(RLIMIT_AS, &before);
    run = os_pages_alloc(64 << 10, OS_PAGE_SIZE, 0, NULL); /* the system is asked each time */
    assert_non_null(run);
    os_pages_free(run, 64 << 10);
}

SUITE()
