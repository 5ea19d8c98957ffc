/* SPDX-License-Identifier: MIT */
/* The parts of a mutator: orders of visits, inbox, pace, times, arena. */
#include "support/slab_test.h"
#include "support/threads.h"

#include "arena.h"
#include "group.h"
#include "inbox.h"
#include "pace.h"
#include "times.h"

/* --------------------------------------------------------------------------------------- groups */

#define MOST 200

/* Notes the place of each object in a visit, and checks that the visit passes each object once. */
static void visit(const struct group *group, size_t (*next)(const struct group *, size_t),
                  size_t *place)
{
    size_t visited = 0;

    for (size_t i = 0; i < group->count; i++)
        place[i] = SIZE_MAX;
    for (size_t at = next(group, group->count); at < group->count; at = next(group, at)) {
        assert_true(place[at] == SIZE_MAX); /* once */
        place[at] = visited++;
    }
    assert_int_equal(visited, group->count);
}

TEST(lists_are_visited_in_order)
{
    struct group group = {.tree = false};
    size_t place[MOST];

    for (group.count = 0; group.count < MOST; group.count++) {
        visit(&group, group_next_to_read, place);
        for (size_t i = 0; i < group.count; i++)
            assert_int_equal(place[i], i);
        visit(&group, group_next_to_free, place);
        for (size_t i = 0; i < group.count; i++)
            assert_int_equal(place[i], i);
    }
}

TEST(trees_are_read_from_the_root_and_freed_from_the_leaves)
{
    struct group group = {.tree = true};
    size_t read[MOST], freed[MOST];

    for (group.count = 0; group.count < MOST; group.count++) {
        visit(&group, group_next_to_read, read);
        visit(&group, group_next_to_free, freed);
        for (size_t i = 1; i < group.count; i++) {
            assert_true(read[(i - 1) / 2] < read[i]);
            assert_true(freed[(i - 1) / 2] > freed[i]);
        }
        for (size_t i = 1; i + 1 < group.count; i += 2) { /* left before right, in depth */
            assert_true(read[i] < read[i + 1]);
            assert_true(freed[i] < freed[i + 1]);
        }
    }
}

/* ---------------------------------------------------------------------------------------- inbox */

TEST(an_inbox_keeps_the_order_until_it_is_closed)
{
    struct inbox inbox;
    struct holding holding[3] = {{.position = 0}, {.position = 1}, {.position = 2}}, *taken;

    inbox_open(&inbox);
    assert_null(inbox_take(&inbox, false));
    for (unsigned i = 0; i < 3; i++)
        assert_true(inbox_put(&inbox, &holding[i]));
    taken = inbox_take(&inbox, false);
    for (unsigned i = 0; i < 3; i++, taken = taken->next)
        assert_ptr_equal(taken, &holding[i]);
    assert_null(taken);
    assert_true(inbox_put(&inbox, &holding[1]));
    assert_ptr_equal(inbox_take(&inbox, true), &holding[1]);
    assert_false(inbox_put(&inbox, &holding[2]));
    assert_null(inbox_take(&inbox, true));
    inbox_end(&inbox);
}

/* ----------------------------------------------------------------------------------------- pace */

#define THREADS 7
#define TICKS   3000
#define DRIFT   3

static struct pace pace;
static struct clock_of_thread clocks[THREADS];
static uint64_t advances;

static void *keep_pace(void *argument)
{
    unsigned number = (unsigned)(uintptr_t)argument;
    uint64_t ticks = TICKS / (1 + number % 3); /* some are done early */

    for (uint64_t i = 0; i < ticks; i++) {
        if (pace_advance(&pace, number))
            __atomic_fetch_add(&advances, 1, __ATOMIC_RELAXED);
        pace_wait(&pace, number);
        if (clocks[number].time - pace_slowest(&pace) > DRIFT)
            abort();
    }
    pace_finish(&pace, number);
    return NULL;
}

TEST(nobody_is_further_ahead_than_the_drift)
{
    pthread_t thread[THREADS];

    pace_start(&pace, clocks, THREADS, DRIFT);
    threads_start(thread, THREADS, keep_pace);
    threads_join(thread, THREADS);
    assert_true(pace_slowest(&pace) == NO_TIME);
    assert_in_range(advances, 1, TICKS);
    pace_end(&pace);
}

TEST(a_stop_wakes_waiters)
{
    struct clock_of_thread two[2] = {{0}, {0}};

    pace_start(&pace, two, 2, 0);
    pace_stop(&pace);
    pace_advance(&pace, 0);
    pace_wait(&pace, 0); /* the other thread never comes */
    pace_end(&pace);
}

/* ---------------------------------------------------------------------------------------- times */

TEST(times_have_mean_deviation_and_quantiles)
{
    static struct times times, more, sum;
    uint64_t overhead;

    times_calibrate();
    overhead = times_overhead();
    for (uint64_t i = 1; i <= 1000; i++)
        times_record(i <= 500 ? &times : &more, 1000, 1000 + overhead + i);
    times_record_each(&more, 0, overhead + 4000, 4);
    times_add(&sum, &times);
    times_add(&sum, &more);
    assert_int_equal(sum.timed, 1001);
    assert_int_equal(sum.smallest, 1);
    assert_int_equal(sum.largest, 1000);
    assert_true(times_mean(&sum) > 500.9 && times_mean(&sum) < 501.1);
    assert_true(times_deviation(&sum) > 288 && times_deviation(&sum) < 290);
    assert_in_range(times_quantile(&sum, 0.5), 500 * 7 / 8, 501);
    assert_in_range(times_quantile(&sum, 0.99), 990 * 7 / 8, 991);
    assert_int_equal(times_quantile(&times, 0), 1);
    assert_true(times_trimmed_mean(&sum, 1) > 500.9 && times_trimmed_mean(&sum, 1) < 501.1);
    assert_true(times_trimmed_mean(&sum, 0.5) > 230 && times_trimmed_mean(&sum, 0.5) < 270);
    assert_true(times_trimmed_mean(&sum, 0.999) < times_mean(&sum));
}

/* ---------------------------------------------------------------------------------------- arena */

TEST(blocks_are_aligned_and_used_again)
{
    static struct arena arena;
    char *block[40];
    size_t mapped;

    for (unsigned i = 0; i < 40; i++) {
        block[i] = arena_take(&arena, (size_t)1 << (i % 20));
        assert_non_null(block[i]);
        assert_int_equal((uintptr_t)block[i] % 16, 0);
        memset(block[i], 0x5a, (size_t)1 << (i % 20));
    }
    mapped = arena.mapped;
    for (unsigned i = 0; i < 40; i++)
        arena_give(&arena, block[i], (size_t)1 << (i % 20));
    for (unsigned i = 0; i < 40; i++)
        assert_non_null(arena_take(&arena, (size_t)1 << (i % 20)));
    assert_int_equal(arena.mapped, mapped);
    assert_null(arena_take(&arena, (size_t)1 << 60));
}

SUITE()
