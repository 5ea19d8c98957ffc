/* SPDX-License-Identifier: MIT */
/*
 * Rule 6: a deferral that overfills its CPU schedules a pre-flush. The helper forgets a cache that
 * is destroyed, after transfer batches under way have been received.
 *
 * ctest: not-with thread (one thread)
 */
#include "posix.h"
#include "slab/transfer_batch.h"
#include "slab/preflush.h"
#include "slab/start.h"
#include "support/slab_test.h"

#define ROOM 32

static void *objects[200];

static bool is_idle(unsigned cpu)
{
    return true;
}

static bool is_never_idle(unsigned cpu)
{
    return false;
}

static struct prudence_cache *overfull_cache(void)
{
    struct prudence_cache *cache = fixed_cache(64, ROOM, manual_domain());
    unsigned held = 100;

    allocate_all(cache, objects, held);
    while (stack_count(&cpu_here(cache)->line) < ROOM)
        free_all(cache, &objects[--held], 1);
    defer_all(cache, objects, 17);
    free_all(cache, objects + 17, held - 17);
    while (stack_count(&cpu_here(cache)->line) < ROOM) {
        node_take_all(cache, node_here(cache), objects, 1);
        free_all(cache, objects, 1);
    }
    return cache;
}

TEST(the_helper_serves_a_scheduled_cache)
{
    struct prudence_cache *cache = overfull_cache();

    preflush_enabled = true;
    preflush_schedule(cache, cpu_here(cache));
    preflush_work();
    preflush_enabled = false;
    assert_true(stats_of(cache).preflushed_objects > 0);
    preflush_forget(cache);
    destroy_empty(cache);
}

TEST(a_destroyed_cache_is_not_served)
{
    struct prudence_cache *cache = overfull_cache(), *second;

    preflush_enabled = true;
    preflush_schedule(cache, cpu_here(cache));
    preflush_enabled = false;
    destroy_empty(cache);
    second = overfull_cache(); /* perhaps at the address of the first one */
    assert_false(preflush_work());
    assert_int_equal(stats_of(second).preflushed_objects, 0);
    destroy_empty(second);
}

/* The pool of transfer batches stays complete. An interrupted sequence gives up, which leaves the
 * cache in a state without objects to move; that is rare. */
TEST(transfer_batches_on_their_way_do_not_outlive_it)
{
    unsigned moved = 0;

    for (unsigned i = 0; i < 100; i++) {
        struct prudence_cache *cache = overfull_cache();

        moved += preflush_cpu(cache, os_cpu_current(), 1) == TRANSFER_BATCH_MAX;
        destroy_empty(cache);
    }
    assert_in_range(moved, 90, 100);
}

/* Objects that cannot be moved, because they are in the open batch, must not keep the helper
 * awake. */
TEST(the_helper_ends_when_nothing_can_be_moved)
{
    struct prudence_cache *cache = fixed_cache(64, ROOM, manual_domain());
    unsigned held = 100, rounds = 0;

    allocate_all(cache, objects, held);
    while (stack_count(&cpu_here(cache)->line) < ROOM)
        free_all(cache, &objects[--held], 1);
    defer_all(cache, objects, 3); /* in the open batch */
    preflush_enabled = true;
    preflush_schedule(cache, cpu_here(cache));
    preflush_enabled = false;
    while (preflush_work() && rounds < 100)
        rounds++;
    assert_true(rounds < 100);
    free_all(cache, objects + 3, held - 3);
    destroy_empty(cache);
}

/* While a fork is under way, the helper takes no object. */
TEST(a_fork_under_way_stops_the_helper)
{
    struct prudence_cache *cache = overfull_cache();

    preflush_enabled = true;
    preflush_schedule(cache, cpu_here(cache));
    preflush_enabled = false;
    preflush_pause();
    assert_true(preflush_work()); /* comes back soon */
    preflush_go_on();
    assert_int_equal(stats_of(cache).preflushed_objects, 0);
    preflush_work();
    assert_true(stats_of(cache).preflushed_objects > 0);
    destroy_empty(cache);
}

static int end_walk_and_preflush(void *cache)
{
    slab_fork_let_go();
    preflush_work();
    return stats_of(cache).preflushed_objects > 0 ? 42 : 1;
}

/* A signal handler interrupts a walk over the heap and forks. The walk goes on in the child, and
 * when it has ended, the helper works there, too. */
TEST(a_walk_that_a_fork_interrupts_stops_it_no_longer)
{
    struct prudence_cache *cache = overfull_cache();

    preflush_enabled = true;
    preflush_schedule(cache, cpu_here(cache));
    preflush_enabled = false;
    slab_fork_hold();
    assert_child(end_walk_and_preflush, cache);
    slab_fork_let_go();
    destroy_empty(cache);
}

/* CPUs that are never idle must not keep the helper awake either; it gives up after a while. */
TEST(the_helper_gives_up_on_busy_cpus)
{
    struct prudence_cache *cache = overfull_cache();
    unsigned rounds = 0;

    posix_idle_inject(is_never_idle);
    preflush_enabled = true;
    preflush_schedule(cache, cpu_here(cache));
    while (preflush_work() && rounds < 1000)
        rounds++;
    assert_in_range(rounds, 10, 999);
    assert_int_equal(stats_of(cache).preflushed_objects, 0);
    posix_idle_inject(is_idle);
    assert_false(preflush_work()); /* forgotten */
    preflush_schedule(cache, cpu_here(cache));
    preflush_work();
    preflush_enabled = false;
    assert_true(stats_of(cache).preflushed_objects > 0);
    destroy_empty(cache);
}

SUITE(pin_thread(), posix_idle_inject(is_idle))
