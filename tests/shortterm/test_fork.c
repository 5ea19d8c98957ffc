/* SPDX-License-Identifier: MIT */
/*
 * Fork: the child's thread continues with its dates; other threads' objects stay, and hold up
 * nothing.
 *
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children, no exit with threads)
 */
#include "support/scm_test.h"
#include "support/bare_fork.h"
#include "support/gp_child.h"

static void *mine, *others, *orphaned;

static void child_is_right(pid_t (*make)(void), int (*in_child)(void *unused))
{
    struct child_result result;

    child_run_by(make, in_child, NULL, &result);
    if (!child_exited_with(&result, 0))
        fail_msg("status %x: %s", (unsigned)result.status, result.output);
}

static int in_child(void *unused)
{
    uint64_t before;

    end_count = 0;
    if (mem_info().threads != 1)
        return 1;
    scm_tick();
    scm_tick();
    if (!has_ended(mine))
        return 2;
    scm_global_tick(); /* waits for no other thread */
    before = global_time();
    scm_global_tick();
    if (global_time() != before + 1)
        return 3;
    for (unsigned i = 0; i < 100; i++)
        scm_tick();
    if (has_ended(others))
        return 4;
    scm_unregister_thread();
    for (unsigned i = 0; i < 2; i++) { /* the first date is inherited from itself */
        scm_register_thread();
        scm_block_thread();
        scm_resume_thread();
    }
    ((char *)others)[0] = 1;
    return scm_refresh(scm_malloc(16), 3) || scm_tick();
}

TEST(the_child_goes_on, fresh)
{
    struct actor actor, ended;

    mine = object_new();
    others = object_new();
    orphaned = object_new();
    actor_start(&actor);
    actor_start(&ended);
    assert_int_equal(refreshes(&actor, others, 1), 0);
    assert_int_equal(refreshes(&ended, orphaned, 1), 0);
    actor_end(&ended);
    assert_int_equal(scm_refresh(mine, 1), 0);
    child_is_right(fork, in_child);
    ticks(2); /* no effect on the parent */
    assert_true(has_ended(mine));
    does(&actor, act_tick, NULL);
    does(&actor, act_tick, NULL);
    assert_true(has_ended(others));
    actor_end(&actor);
}

static struct scm_clock *my_user, *my_real, *others_clock;
static uint64_t real_ns = UINT64_C(1000000000000);

static uint64_t injected_time(void)
{
    return real_ns;
}

static int act_clock(void *object)
{
    others_clock = scm_clock_create();
    return scm_clock_refresh(others_clock, object, 1);
}

/* The child's thread has its own clocks, and those left by ended threads; no clock of another
 * thread. */
static int clocks_in_child(void *unused)
{
    void *object = object_new();

    end_count = 0;
    if (scm_clock_refresh(others_clock, object, 1) != EPERM ||
        scm_clock_tick(others_clock) != EPERM || scm_clock_destroy(others_clock) != EPERM)
        return 1;
    if (scm_clock_tick(my_user) || scm_clock_tick(my_user) || !has_ended(mine))
        return 2;
    if (scm_clock_refresh(my_real, object, 3))
        return 3;
    real_ns += 5000000;
    if (scm_tick() || !has_ended(object))
        return 4;
    for (unsigned i = 0; i < 50; i++)
        scm_tick();
    if (!has_ended(orphaned) || has_ended(others))
        return 5;
    if (scm_clock_destroy(my_user) || scm_clock_destroy(my_real) ||
        scm_clock_tick(my_user) != EPERM)
        return 6;
    my_user = scm_clock_create();
    return !my_user || scm_clock_refresh(my_user, object_new(), 0) || scm_clock_tick(my_user);
}

TEST(clocks_go_on_in_the_child, fresh)
{
    struct actor actor, ended;

    scm_real_time = injected_time;
    mine = object_new();
    others = object_new();
    orphaned = object_new();
    my_user = scm_clock_create();
    my_real = scm_clock_create_realtime(1);
    actor_start(&actor);
    actor_start(&ended);
    assert_int_equal(does(&actor, act_clock, others), 0);
    assert_int_equal(does(&ended, act_clock, orphaned), 0);
    assert_int_equal(does(&actor, act_clock, others), 0);
    actor_end(&ended);
    assert_int_equal(scm_clock_refresh(my_user, mine, 1), 0);
    child_is_right(fork, clocks_in_child);
    actor_end(&actor);
    scm_real_time = os_clock_ns;
}

static struct scm_region *my_region, *others_region, *shared_region, *orphaned_region;

static char *shared_object;

static int act_regions(void *unused)
{
    others_region = scm_region_create();
    shared_region = scm_region_create();
    shared_object = scm_region_alloc(shared_region, 5000);
    return !scm_region_alloc(others_region, 100) || !shared_object ||
           !memset(shared_object, 1, 5000) || scm_region_refresh(others_region, 1);
}

static int act_orphaned_region(void *unused)
{
    orphaned_region = scm_region_create();
    return !scm_region_alloc(orphaned_region, 100000) || scm_region_refresh(orphaned_region, 1);
}

/* Regions of threads that ended before the fork end here, too. Another thread's regions stay,
 * even one whose only date is by this thread. */
static int regions_in_child(void *unused)
{
    struct scm_mem_info info;

    if (!scm_region_alloc(my_region, 10000) || scm_region_refresh(my_region, 1))
        return 1;
    if (scm_region_alloc(others_region, 8) || errno != EPERM ||
        scm_region_refresh(others_region, 1) != EPERM ||
        scm_region_global_refresh(shared_region, 1) != EPERM ||
        scm_region_unregister(others_region) != EPERM)
        return 2;
    for (unsigned i = 0; i < 50; i++)
        scm_tick();
    info = mem_info();
    if (scm_region_refresh(my_region, 1) != EPERM ||
        scm_region_refresh(orphaned_region, 1) != EPERM)
        return 3;
    if (region_info().regions || region_info().bytes ||
        info.num_dates) /* as far as this process knows */
        return 4;
    my_region = scm_region_create();
    for (unsigned i = 0; i < 100; i++)
        memset(scm_region_alloc(my_region, 3000), 0, 3000);
    return shared_object[4999] != 1 || scm_region_unregister(my_region);
}

TEST(regions_go_on_in_the_child, fresh)
{
    struct actor actor, ended;

    my_region = scm_region_create();
    actor_start(&actor);
    actor_start(&ended);
    assert_int_equal(does(&actor, act_regions, NULL), 0);
    assert_int_equal(does(&ended, act_orphaned_region, NULL), 0);
    actor_end(&ended);
    assert_int_equal(scm_region_refresh(shared_region, 1), 0);
    child_is_right(fork, regions_in_child);
    ticks(2);
    assert_int_equal(scm_region_refresh(shared_region, 1), EPERM);
    does(&actor, act_tick, NULL);
    does(&actor, act_tick, NULL);
    actor_end(&actor);
    assert_int_equal(scm_region_unregister(my_region), 0);
    ticks(5);
    assert_int_equal(region_info().regions, 0);
}

/* A child that no fork handler has prepared finds threads that do not exist here: it leaves them
 * alone, and the thread that it has continues. */
static int goes_on_alone(void *unused)
{
    return mem_info().threads == 0 || scm_tick() || scm_tick() || !has_ended(mine);
}

TEST(a_bare_child_does_not_reap_itself, fresh)
{

    mine = object_new();
    assert_int_equal(scm_refresh(mine, 1), 0);
    child_is_right(bare_fork, goes_on_alone);
}

/* A child without a participating thread inherits the orphans. */
static int orphans_in_child(void *unused)
{
    end_count = 0;
    /* one after another, because a thread that unregisters goes to the end of the line */
    for (unsigned i = 0; i < 12; i++) {
        scm_register_thread();
        scm_tick();
        scm_tick();
        scm_unregister_thread();
    }
    return !has_ended(orphaned);
}

TEST(orphans_are_inherited_in_the_child, fresh)
{
    struct actor ended;

    scm_unregister_thread();
    orphaned = object_new();
    actor_start(&ended);
    assert_int_equal(refreshes(&ended, orphaned, 1), 0);
    actor_end(&ended);
    child_is_right(fork, orphans_in_child);
}

SUITE(scm_test_uses())
