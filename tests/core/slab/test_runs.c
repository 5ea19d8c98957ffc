/* SPDX-License-Identifier: MIT */
/*
 * Runs: run_gather() takes the objects of one word of one slab, wherever they are in the array, and
 * never those of another word or slab, even if adjacent in memory. Duplicates stay for the next
 * run. run_spread() returns the same objects.
 *
 * ctest: not-with thread (one thread)
 */
#include "slab/runs.h"
#include "support/slab_test.h"

#define STRIDE   64
#define CAPACITY 100 /* one and a half words */

static struct cache_body body = {.stride = STRIDE};
static struct prudence_cache cache = {.body = &body};
static char memory[2 * CAPACITY * STRIDE];
static struct slab first, second; /* adjacent in memory */
static struct slab *const slabs[] = {&first, &second};

static int setup(void **state)
{
    for (unsigned i = 0; i < 2; i++) {
        slabs[i]->cache = &cache;
        slabs[i]->base = memory + (size_t)i * CAPACITY * STRIDE;
        slabs[i]->capacity = CAPACITY;
        slabs[i]->grid = grid_of(STRIDE, CAPACITY);
    }
    return 0;
}

static void *object(unsigned index)
{
    return memory + (size_t)index * STRIDE;
}

static struct run gathered(void **objects, unsigned count, unsigned taken)
{
    struct run run;

    assert_int_equal(run_gather(&run, slabs[0], objects, count), taken);
    assert_int_equal(run.count, taken);
    assert_ptr_equal(run.slab, slabs[0]);
    return run;
}

TEST(objects_of_a_word_are_one_run)
{
    void *objects[] = {object(5), object(6), object(63), object(2), object(3)};

    assert_int_equal(gathered(objects, 5, 5).bits, UINT64_C(1) << 63 | 0x6c);
}

TEST(the_next_word_is_another_run)
{
    void *near[] = {object(62), object(63), object(64)}, *apart[] = {object(1), object(99)};

    assert_int_equal(gathered(near, 3, 2).bits, UINT64_C(3) << 62);
    assert_int_equal(gathered(apart, 2, 1).word, 0);
    assert_int_equal(gathered(apart + 1, 1, 1).word, 1);
}

TEST(the_next_slab_is_another_run)
{
    void *objects[] = {object(CAPACITY - 2), object(CAPACITY - 1), object(CAPACITY)};
    struct run run = gathered(objects, 3, 2);

    assert_int_equal(run.bits, UINT64_C(3) << (CAPACITY - 2 - 64));
    assert_int_equal(run.word, 1);
    assert_int_equal(run_gather(&run, slabs[1], objects + 2, 1), 1);
    assert_int_equal(run.bits, 1);
}

TEST(what_comes_twice_is_left)
{
    void *apart[] = {object(7), object(9), object(7)}, *near[] = {object(8), object(7), object(8)};

    gathered(apart, 3, 2);
    gathered(near, 3, 2);
}

TEST(spread_are_the_same_objects)
{
    void *objects[] = {object(64), object(65), object(67), object(90)}, *again[4];
    struct run run = gathered(objects, 4, 4);

    assert_int_equal(run_spread(&run, STRIDE, again), 4);
    assert_memory_equal(again, objects, sizeof again);
}

SUITE_BETWEEN(setup, NULL)
