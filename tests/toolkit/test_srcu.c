/* SPDX-License-Identifier: MIT */
/* srcu: sections that block, roles of counters, late entries, hand-over, exit, misuse, waits. */
#define _GNU_SOURCE

#include <errno.h>
#include <signal.h>

#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "toolkit/domains/srcu.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/suite.h"
#include "support/threads.h"

static struct prudence_domain *domain;

static int set_up(void **state)
{
    domain = prudence_domain_create("sleepy", PRUDENCE_DOMAIN_SRCU, NULL);
    return domain == NULL;
}

static int tear_down(void **state)
{
    return prudence_domain_destroy(domain);
}

static bool is_over(prudence_gp_t cookie)
{
    for (unsigned i = 0; i < 4; i++)
        if (prudence_domain_poll_state(domain, cookie))
            return true;
    return false;
}

TEST(no_reader_no_wait)
{
    prudence_gp_t cookie = prudence_domain_get_state(domain);

    assert_false(is_over(cookie)); /* no grace period has started */
    cookie = prudence_domain_start_poll(domain);
    assert_true(prudence_domain_poll_state(domain, cookie));
    assert_int_equal(prudence_domain_synchronize(domain), 0);
}

TEST(a_reader_is_waited_for_and_a_later_one_is_not)
{
    struct held_reader first = {.domain = domain}, second = {.domain = domain};
    prudence_gp_t cookie;

    held_reader_start(&first);
    cookie = prudence_domain_start_poll(domain);
    assert_false(is_over(cookie)); /* the roles have changed now */
    held_reader_start(&second);
    assert_false(is_over(cookie));
    held_reader_end(&first);
    assert_true(is_over(cookie));
    cookie = prudence_domain_start_poll(domain);
    assert_false(is_over(cookie));
    held_reader_end(&second);
    assert_true(is_over(cookie));
}

/* Readers overlap so that there is always one; grace periods still end. */
TEST(a_relay_of_readers_holds_nothing_up)
{
    struct held_reader readers[2] = {{.domain = domain}, {.domain = domain}};

    held_reader_start(&readers[0]);
    for (unsigned i = 1; i < 50; i++) {
        prudence_gp_t cookie = prudence_domain_start_poll(domain);

        assert_false(is_over(cookie));
        held_reader_start(&readers[i % 2]);
        held_reader_end(&readers[(i + 1) % 2]);
        assert_true(is_over(cookie));
    }
    held_reader_end(&readers[1]);
}

/* The reader loads the role, the roles change, then the reader enters: it counts in the other
 * role's counter. Later grace periods still wait for it. */
TEST(a_late_entry_in_the_other_role_is_waited_for)
{
    struct held_reader reader = {.domain = domain};
    prudence_gp_t cookie;
    int late;

    late = prudence_srcu_down_read(domain); /* uses this role */
    prudence_srcu_up_read(domain, late);
    held_reader_start(&reader);
    cookie = prudence_domain_start_poll(domain);
    assert_false(is_over(cookie)); /* the roles have changed */
    assert_int_not_equal(prudence_srcu_down_read(domain), late);
    prudence_srcu_up_read(domain, late ^ 1);
    held_reader_end(&reader);
    assert_true(is_over(cookie));
    srcu_enter_at(domain, late); /* the increment comes only now */
    cookie = prudence_domain_start_poll(domain);
    assert_false(is_over(cookie));
    prudence_srcu_up_read(domain, late);
    assert_true(is_over(cookie));
}

TEST(nested_and_overlapping_sections_are_one)
{
    prudence_gp_t cookie;
    int a, b;

    a = prudence_srcu_read_lock(domain);
    b = prudence_srcu_read_lock(domain);
    assert_int_equal(a, b);
    cookie = prudence_domain_start_poll(domain);
    prudence_srcu_read_unlock(domain, a);
    assert_false(is_over(cookie));
    assert_true(prudence_domain_read_lock_held(domain));
    prudence_srcu_read_unlock(domain, b);
    assert_false(prudence_domain_read_lock_held(domain));
    assert_true(is_over(cookie));
}

TEST(the_functions_of_any_domain_serve_srcu)
{
    prudence_gp_t cookie;

    prudence_domain_read_lock(domain);
    prudence_domain_read_lock(domain);
    cookie = prudence_domain_start_poll(domain);
    prudence_domain_read_unlock(domain);
    assert_false(is_over(cookie));
    prudence_domain_read_unlock(domain);
    assert_true(is_over(cookie));
}

static void *leave_for_another(void *index)
{
    prudence_srcu_up_read(domain, *(int *)index);
    return NULL;
}

TEST(a_section_is_handed_to_another_thread)
{
    int index = prudence_srcu_down_read(domain);
    prudence_gp_t cookie = prudence_domain_start_poll(domain);

    assert_false(is_over(cookie));
    assert_int_equal(prudence_domain_destroy(domain), EBUSY);
    in_thread(leave_for_another, &index);
    assert_true(is_over(cookie));
}

/* A reader moves to other CPUs inside, and leaves the counter that it entered. */
TEST(a_reader_may_move)
{
    prudence_gp_t cookie;
    cpu_set_t all, one;

    sched_getaffinity(0, sizeof all, &all);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        int index;

        if (!CPU_ISSET(cpu, &all))
            continue;
        index = prudence_srcu_read_lock(domain);
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        cookie = prudence_domain_start_poll(domain);
        assert_false(is_over(cookie));
        prudence_srcu_read_unlock(domain, index);
        assert_true(is_over(cookie));
    }
    sched_setaffinity(0, sizeof all, &all);
}

TEST(a_busy_domain_is_not_destroyed)
{
    struct held_reader reader = {.domain = domain};

    held_reader_start(&reader);
    assert_int_equal(prudence_domain_destroy(domain), EBUSY);
    held_reader_end(&reader);
}

/* Readers may block, so a reader may wait for other domains; only a wait for its own domain is
 * refused. */
TEST(waiting_for_other_domains_inside_is_allowed)
{
    struct prudence_domain *other = prudence_domain_create("other", PRUDENCE_DOMAIN_SRCU, NULL);
    struct prudence_domain *pair[] = {other, domain};
    struct prudence_domain *set = prudence_domain_create_set("both", pair, 2);
    int index = prudence_srcu_read_lock(domain);

    assert_int_equal(prudence_domain_synchronize(other), 0);
    prudence_synchronize();
    assert_int_equal(prudence_domain_synchronize(domain), EDEADLK);
    assert_int_equal(prudence_domain_synchronize(set), EDEADLK);
    assert_false(gp_may_wait()); /* no implicit waits */
    prudence_srcu_read_unlock(domain, index);
    assert_int_equal(prudence_domain_synchronize(set), 0);
    assert_int_equal(prudence_domain_destroy(set), 0);
    assert_int_equal(prudence_domain_destroy(other), 0);
}

static void *exit_inside(void *unused)
{
    prudence_srcu_read_lock(domain);
    prudence_srcu_read_lock(domain);
    return unused;
}

static int leak_a_section(void)
{
    in_thread(exit_inside, NULL);
    return prudence_domain_synchronize(domain) == 0 ? 42 : 1;
}

TEST(a_section_of_a_thread_that_exits_is_reported_and_ended)
{
    expect_exit(42, leak_a_section(), "");
    assert_int_equal(said("exits inside"), 1);
    assert_true(said("'sleepy'"));
}

static void read_in_handler(int number)
{
    prudence_srcu_read_unlock(domain, prudence_srcu_read_lock(domain));
}

TEST(signal_handlers_read)
{
    int index;

    signal(SIGUSR1, read_in_handler);
    raise(SIGUSR1);
    index = prudence_srcu_read_lock(domain);
    raise(SIGUSR1);
    assert_true(prudence_domain_read_lock_held(domain));
    prudence_srcu_read_unlock(domain, index);
    signal(SIGUSR1, SIG_DFL);
}

/* The child has this thread's section and the one handed over, and no other. */
static int child_of_readers(void *index)
{
    prudence_gp_t cookie = prudence_domain_start_poll(domain);

    if (is_over(cookie))
        return 1;
    prudence_srcu_read_unlock(domain, ((int *)index)[0]);
    if (is_over(cookie))
        return 2;
    prudence_srcu_up_read(domain, ((int *)index)[1]);
    return is_over(cookie) ? 42 : 3;
}

TEST(a_forked_child_has_its_own_sections_only)
{
    struct held_reader other = {.domain = domain};
    int index[2];

    held_reader_start(&other);
    assert_false(is_over(prudence_domain_start_poll(domain))); /* the roles have changed now */
    index[0] = prudence_srcu_read_lock(domain);
    index[1] = prudence_srcu_down_read(domain);
    assert_child(child_of_readers, index);
    prudence_srcu_read_unlock(domain, index[0]);
    prudence_srcu_up_read(domain, index[1]);
    held_reader_end(&other);
    assert_int_equal(prudence_domain_synchronize(domain), 0);
}

TEST(misuse_dies_with_a_message)
{
    expect_death(prudence_srcu_read_unlock(domain, 0), "is in no section of domain 'sleepy'");
    expect_death(prudence_srcu_read_unlock(domain, prudence_srcu_read_lock(domain) + 2),
                 "is not the index");
    expect_death(prudence_srcu_up_read(domain, prudence_srcu_read_lock(domain)),
                 "no section of domain 'sleepy' has index");
    expect_death(prudence_srcu_read_lock(prudence_default_domain()), "is not srcu");
}

TEST(statistics_count)
{
    struct prudence_domain_stats before, after;

    assert_int_equal(prudence_domain_stats(domain, &before), 0);
    prudence_domain_synchronize(domain);
    assert_int_equal(prudence_domain_stats(domain, &after), 0);
    assert_int_equal(after.grace_periods, before.grace_periods + 1);
    assert_true(after.scans > before.scans);
    assert_string_equal(after.kind, "srcu");
    assert_string_equal(after.name, "sleepy");
    assert_int_equal(prudence_domain_stats(NULL, &after), EINVAL);
    assert_int_equal(prudence_domain_stats(domain, NULL), EINVAL);
}

SUITE_BETWEEN(set_up, tear_down)
