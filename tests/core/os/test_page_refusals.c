/* SPDX-License-Identifier: MIT */
/*
 * Refusals of the system leave no trace in the peak, in predicted demand, or in the books' memory.
 * Before an allocation fails, address space without memory is unmapped. While the system is asked,
 * the limit holds for all threads, and one that would fail waits for another that purges.
 */
#include <limits.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

#include "support/owned_pages.h"
#include "support/process_memory.h"
#include "support/stats.h"

#define GIB ((size_t)1 << 30)

static struct rlimit before;

/* Leaves the process address space for that many bytes more. */
static int leave_addresses(size_t more)
{
    struct rlimit limit;

    getrlimit(RLIMIT_AS, &before);
    limit = before;
    limit.rlim_cur = address_space() + more;
    return setrlimit(RLIMIT_AS, &limit);
}

static int little_address_space(void **state)
{
    begin_with_everything_kept(state);
    return leave_addresses(GIB);
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

#define BLOCKS 16                  /* two in a region */
#define GROWN  (RUN_MAX + 8 * MIB) /* more than fits there */

/* Runs that outgrow their regions leave these without any memory. */
TEST(a_region_without_memory_makes_room, begin_with_everything_kept)
{
    size_t mapped = arena_bytes(0);
    char *blocks[BLOCKS], *other;
    bool all_grew = true;

    for (unsigned i = 0; i < BLOCKS; i++)
        blocks[i] = take(RUN_MAX - MIB);
    for (unsigned i = 0; i < BLOCKS; i++) {
        char *grown = os_pages_resize(blocks[i], RUN_MAX - MIB, GROWN, &owner);

        all_grew &= grown != NULL;
        blocks[i] = grown ? grown : blocks[i];
    }
    if (!all_grew)
        skip(); /* memory cannot be moved, with Linux before 5.7 */
    assert_true(arena_bytes(0) >= mapped + BLOCKS * RUN_MAX);
    assert_int_equal(pages().retained, 0);
    assert_int_equal(leave_addresses(100 * MIB), 0);
    other = os_pages_alloc(200 * MIB, OS_PAGE_SIZE, 0, NULL);
    setrlimit(RLIMIT_AS, &before);
    assert_non_null(other);
    assert_int_equal(arena_bytes(0), mapped);
    os_pages_free(other, 200 * MIB);
    for (unsigned i = 0; i < BLOCKS; i++)
        give(blocks[i], GROWN);
    os_pages_trim();
}

/* ---------------------------------------------------------- at the limit, while another purges */

static pthread_t beside;
static void *got;
static unsigned unmapped;
static bool has_ended; /* atomic */

static void *allocate_most(void *unused)
{
    got = os_pages_alloc(450 * MIB, OS_PAGE_SIZE, 0, NULL);
    store_release(&has_ended, true);
    return unused;
}

static void pause_ms(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000l * ms}, NULL);
}

/* A huge mapping is in hand when another thread allocates. */
static void let_another_allocate(const char *call)
{
    if (strcmp(call, "munmap") || unmapped++)
        return;
    pthread_create(&beside, NULL, allocate_most, NULL);
    for (unsigned i = 0; i < 30 && !load_acquire(&has_ended); i++)
        pause_ms(1);
}

/* The other thread can purge only a run, which is not enough. */
TEST(an_allocation_waits_for_a_huge_mapping_that_goes, begin_with_everything_kept)
{
    void *run = os_pages_alloc(MIB, OS_PAGE_SIZE, 0, NULL);

    os_pages_free(os_pages_alloc(400 * MIB, OS_PAGE_SIZE, 0, NULL), 400 * MIB);
    os_pages_free(run, MIB);
    os_pages_set_limit(pages().used + 600 * MIB);
    mapping_watch(let_another_allocate);
    os_pages_trim();
    mapping_watch(NULL);
    assert_true(unmapped > 0);
    pthread_join(beside, NULL);
    os_pages_set_limit(0);
    assert_non_null(got);
    os_pages_free(got, 450 * MIB);
    os_pages_trim();
}

static uint64_t clock_ns(void)
{
    struct timespec now_is;

    clock_gettime(CLOCK_MONOTONIC, &now_is);
    return (uint64_t)now_is.tv_sec * 1000000000u + (uint64_t)now_is.tv_nsec;
}

static void hold(bool held)
{
    if (held)
        os_hands_full();
    os_lock_take(&pages_lock);
    working_set_in_hand(MIB, held);
    os_lock_release(&pages_lock);
    if (!held)
        os_hands_empty();
}

/* As a signal handler does that interrupts a purge. It waits for no other thread, so one of several
 * calls is short. */
TEST(no_thread_waits_for_itself, begin_with_everything_kept)
{
    uint64_t least = UINT64_MAX;

    hold(true);
    os_pages_set_limit(MIB);
    for (unsigned i = 0; i < 5; i++) {
        uint64_t start = clock_ns();

        assert_null(os_pages_alloc(100 * MIB, OS_PAGE_SIZE, 0, NULL));
        least = min_u64(least, clock_ns() - start);
    }
    os_pages_set_limit(0);
    hold(false);
    assert_in_range(least, 0, 50000000); /* ns; half of the shortest wait for a thread that stays */
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

static int no_address_space(void **state)
{
    begin_with_everything_kept(state);
    return leave_addresses(0);
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
