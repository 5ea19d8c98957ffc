/* SPDX-License-Identifier: MIT */
/*
 * Free pages: the page source keeps as many as the demand of the last one or two windows of `decay`
 * predicts, so that churn costs no page faults. The rest beyond `retain` goes back, and after a
 * pause everything does. So does most of what a fall frees, until that is regretted. The test
 * controls the clock.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/pages.h"
#include "support/random.h"

#define DECAY  UINT64_C(100000000)
#define RETAIN MIB

static void pass(uint64_t nanoseconds)
{
    now += nanoseconds;
    os_pages_decay();
}

static long faults(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static int begin(void **state)
{
    posix_clock_injected = our_clock;
    os_pages_set_decay(DECAY);
    os_pages_set_retain(RETAIN);
    os_pages_trim();
    now += 10 * DECAY;
    return 0;
}

#define BLOCKS 50

static void take_all(char **blocks, size_t bytes)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = os_pages_alloc(bytes, os_page_size, 0, NULL);
        assert_non_null(blocks[i]);
        for (size_t at = 0; at < bytes; at += os_page_size)
            blocks[i][at] = 1;
    }
}

static void free_all_of(char **blocks, size_t bytes)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        os_pages_free(blocks[i], bytes);
}

/* What stays of a fall: some 2 MB, a part of the use, and the slack. */
#define STAYS (4 * MIB)

/* Makes the page source regret that it purged a fall of this many bytes. */
static void regret_a_fall(char **blocks, size_t bytes)
{
    take_all(blocks, bytes);
    free_all_of(blocks, bytes);
    assert_true(pages().retained <= max_size(STAYS, BLOCKS * bytes / 2));
    take_all(blocks, bytes);
    free_all_of(blocks, bytes);
}

static void a_churn_is_kept(size_t bytes)
{
    char *blocks[BLOCKS];
    long before;

    regret_a_fall(blocks, bytes);
    assert_int_equal(pages().retained, BLOCKS * bytes);
    before = faults();
    for (unsigned round = 0; round < 20; round++) {
        pass(DECAY / 3);
        take_all(blocks, bytes);
        free_all_of(blocks, bytes);
    }
    assert_in_range(faults() - before, 0, 1000); /* of at least 20 x 50 x 64 */
    assert_int_equal(pages().retained, BLOCKS * bytes);
    assert_true(os_pages_decaying());
    pass(DECAY);
    assert_true(pages().retained >= BLOCKS * bytes / 2); /* the last window is not over yet */
    pass(DECAY);
    pass(DECAY);
    assert_true(pages().retained <= 2 * MIB);
    assert_false(os_pages_decaying());
}

TEST(a_churn_of_runs_costs_no_faults, begin)
{
    a_churn_is_kept(256 << 10);
}

TEST(a_churn_of_huge_mappings_costs_no_faults, begin)
{
    a_churn_is_kept(3 * MIB);
}

TEST(a_pause_is_enough_at_once, begin)
{
    char *blocks[BLOCKS];

    regret_a_fall(blocks, MIB);
    assert_int_equal(pages().retained, BLOCKS * MIB);
    pass(2 * DECAY + 1);
    assert_true(pages().retained <= 2 * MIB);
}

TEST(most_of_a_fall_goes_at_once, begin)
{
    char *blocks[BLOCKS];

    take_all(blocks, 4 * MIB);
    free_all_of(blocks, 4 * MIB);
    assert_true(pages().retained <= STAYS);
    assert_true(pages().retained > MIB);
}

TEST(a_small_fall_stays, begin)
{
    char *blocks[BLOCKS];

    take_all(blocks, 32 << 10);
    free_all_of(blocks, 32 << 10);
    assert_true(pages().retained >= BLOCKS * (32 << 10));
}

/* With a longer decay more stays, because the user wants that. */
TEST(a_long_decay_keeps_a_fall, begin)
{
    char *blocks[BLOCKS];

    os_pages_set_decay(40 * DECAY);
    take_all(blocks, MIB);
    free_all_of(blocks, MIB);
    assert_int_equal(pages().retained, BLOCKS * MIB);
}

/* Phases that are seconds apart. */
TEST(a_regret_lasts_for_a_season, begin)
{
    char *blocks[BLOCKS];

    for (unsigned phase = 0; phase < 4; phase++) {
        take_all(blocks, MIB);
        free_all_of(blocks, MIB);
        if (phase)
            assert_int_equal(pages().retained, BLOCKS * MIB);
        else
            assert_true(pages().retained <= STAYS);
        pass(20 * DECAY);
    }
    for (unsigned season = 0; season < 20; season++) {
        os_pages_free(os_pages_alloc(MIB, os_page_size, 0, NULL), MIB);
        pass(32 * DECAY + 1);
    }
    take_all(blocks, MIB);
    free_all_of(blocks, MIB);
    assert_true(pages().retained <= STAYS);
}

TEST(a_regret_ends_with_a_trim, begin)
{
    char *blocks[BLOCKS];

    regret_a_fall(blocks, MIB);
    os_pages_trim();
    now += 10 * DECAY;
    take_all(blocks, MIB);
    free_all_of(blocks, MIB);
    assert_true(pages().retained <= STAYS);
}

TEST(what_grew_slowly_goes_at_once, begin)
{
    char *blocks[BLOCKS];

    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = os_pages_alloc(MIB, os_page_size, 0, NULL);
        pass(DECAY);
    }
    free_all_of(blocks, MIB);
    assert_true(pages().retained <= 6 * MIB);
}

TEST(decay_of_none, begin)
{
    char *blocks[BLOCKS];

    os_pages_set_decay(0);
    os_pages_set_retain(3 * MIB);
    take_all(blocks, MIB);
    for (unsigned i = 0; i < BLOCKS; i++) {
        os_pages_free(blocks[i], MIB);
        assert_true(pages().retained <= 3 * MIB);
    }
    assert_int_equal(pages().retained, 3 * MIB);
    os_pages_set_retain(0);
    os_pages_free(os_pages_alloc(os_page_size, os_page_size, 0, NULL), os_page_size);
    assert_int_equal(pages().retained, 0);
}

/* Huge mappings are kept for later ones, but not while runs take their place, because both would be
 * held. */
TEST(the_peak_of_both_is_not_exceeded, begin)
{
    char *huge_mappings[BLOCKS], *runs[4 * BLOCKS];
    uint64_t most = 0;

    regret_a_fall(huge_mappings, 4 * MIB);
    for (unsigned i = 0; i < 4 * BLOCKS; i++) {
        runs[i] = os_pages_alloc(MIB, os_page_size, 0, NULL);
        most = max_size(most, pages().used + pages().retained);
    }
    /* Up to the slack, which is an eighth of the kept bytes and 256 KiB. */
    assert_true(most <= 4 * MIB * BLOCKS / 8 * 9 + MIB);
    for (unsigned i = 0; i < 4 * BLOCKS; i++)
        os_pages_free(runs[i], MIB);
}

/* Pages freed between used ones may be too small for the next requests. Up to half as many bytes as
 * are used stay for a while, because a request that fits may come. */
TEST(holes_are_kept_for_a_while, begin)
{
    char *blocks[BLOCKS], *larger[BLOCKS];
    size_t size = 3 * os_page_size * 20, more = size + os_page_size;

    os_pages_set_retain(0);
    take_all(blocks, size);
    pass(3 * DECAY); /* these were taken long ago */
    for (unsigned i = 0; i < BLOCKS; i += 2) {
        larger[i] = os_pages_alloc(more, os_page_size, 0, NULL);
        os_pages_free(blocks[i], size);
    }
    assert_true(pages().retained >= size * BLOCKS / 2 / 4 * 3);
    assert_true(pages().retained <= pages().used / 2 + MIB);
    pass(3 * DECAY);
    assert_int_equal(pages().retained, 0);
    for (unsigned i = 0; i < BLOCKS; i += 2) {
        os_pages_free(larger[i], more);
        os_pages_free(blocks[i + 1], size);
    }
}

/*
 * Blocks of random sizes fit badly into holes, so more than half of the used bytes must be kept, or
 * each block would fault in anew. Pages that are purged and soon needed again reveal this. A pause
 * resets it.
 */
#define PLACES 512
#define ALIVE  (32 * MIB)

static struct {
    char *at;
    size_t bytes;
} places[PLACES];
static size_t alive;

static void place_free(unsigned at)
{
    if (!places[at].at)
        return;
    os_pages_free(places[at].at, places[at].bytes);
    alive -= places[at].bytes;
    places[at].at = NULL;
}

static unsigned below(unsigned bound)
{
    static uint64_t random = 1;

    return random_below(&random, bound);
}

/* Replaces a random block. Returns how many bytes of the new one must be faulted in. */
static uint64_t replace_any(size_t bytes)
{
    unsigned at = below(PLACES);
    uint64_t before;

    place_free(at);
    while (alive + bytes > ALIVE)
        place_free(below(PLACES));
    before = pages().used + pages().retained;
    places[at].at = os_pages_alloc(bytes, os_page_size, 0, NULL);
    places[at].bytes = bytes;
    alive += bytes;
    return pages().used + pages().retained - before;
}

TEST(what_was_regretted_is_kept, begin)
{
    uint64_t faulted = 0, taken = 0;

    for (unsigned i = 0; i < 4000; i++) {
        size_t bytes = (OS_PAGE_SIZE << below(12)) / 4 * (4 + below(4));
        uint64_t clean = replace_any(round_up(bytes, os_page_size));

        taken += bytes;
        faulted += i < 1000 ? 0 : clean;
        if (i % 100 == 0)
            pass(DECAY / 10);
        assert_true(pages().retained <= 2 * ALIVE);
    }
    assert_true(faulted < taken / 20);
    for (unsigned at = 0; at < PLACES; at++)
        place_free(at);
    for (unsigned i = 0; i < 4; i++)
        pass(DECAY);
    assert_true(pages().retained <= 2 * MIB);
}

/* Purged pages come back as zeros, and kept ones are not reported as zeroed. */
TEST(zeroed_tells_the_truth, begin)
{
    char *block = os_pages_alloc(MIB, os_page_size, 0, NULL), *again;
    unsigned char resident[MIB / OS_PAGE_SIZE] = {0}; /* larger pages fill fewer entries */
    bool zeroed;

    memset(block, 1, MIB);
    os_pages_free(block, MIB);
    again = os_pages_alloc(MIB, os_page_size, 0, &zeroed);
    assert_ptr_equal(again, block);
    assert_false(zeroed);
    os_pages_free(os_pages_alloc(MIB, os_page_size, 0, NULL), MIB); /* keeps the region */
    block = os_pages_alloc(MIB, os_page_size, 0, NULL);
    os_pages_free(again, MIB);
    assert_int_equal(os_pages_trim(), MIB);
    again = os_pages_alloc(MIB, os_page_size, 0, &zeroed);
    assert_true(zeroed);
    assert_int_equal(mincore(again, MIB, resident), 0);
    for (size_t i = 0; i < MIB / OS_PAGE_SIZE; i++)
        assert_false(resident[i] & 1);
    os_pages_free(again, MIB);
    os_pages_free(block, MIB);
}

/* Locked memory cannot be purged, so it is not zero. */
TEST(locked_memory_is_not_taken_for_zeroed, begin)
{
    char *block = os_pages_alloc(8 * os_page_size, os_page_size, 0, NULL);
    char *other = os_pages_alloc(os_page_size, os_page_size, 0, NULL), *again;
    bool zeroed;

    if (syscall(SYS_mlock, block, 8 * os_page_size)) /* sanitizers disable the function */
        skip();
    memset(block, 1, 8 * os_page_size);
    os_pages_free(block, 8 * os_page_size);
    assert_int_equal(os_pages_trim(), 0);
    assert_int_equal(pages().retained, 8 * os_page_size);
    again = os_pages_alloc(8 * os_page_size, os_page_size, 0, &zeroed);
    assert_ptr_equal(again, block);
    assert_false(zeroed);
    syscall(SYS_munlock, block, 8 * os_page_size);
    os_pages_free(again, 8 * os_page_size);
    now += DECAY; /* after a refusal, purging pauses */
    assert_int_equal(os_pages_trim(), 8 * os_page_size);
    os_pages_free(other, os_page_size);
}

SUITE()
