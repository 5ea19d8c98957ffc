/* SPDX-License-Identifier: MIT */
/*
 * A wait that is refused changes nothing: a thread that is online in a qsbr domain stays in its
 * section there, so a grace period that waits for it does not end.
 *
 * ctest: not-with thread (one thread)
 */
#include <errno.h>

#include <prudence/call.h>
#include <prudence/poll.h>
#include <prudence/urcu-compat.h>

#include "support/suite.h"

/* Waits for this domain are refused inside a section of the default domain. */
static struct prudence_domain *waited_for;
static struct call_rcu_data *worker;

static void synchronize_in_each_way(void)
{
    prudence_gp_t cookie = prudence_domain_get_state(waited_for);

    assert_int_equal(prudence_domain_synchronize(waited_for), EDEADLK);
    assert_int_equal(prudence_domain_synchronize_expedited(waited_for), EDEADLK);
    assert_int_equal(prudence_domain_cond_synchronize(waited_for, cookie), EDEADLK);
    assert_int_equal(prudence_domain_cond_synchronize_expedited(waited_for, cookie), EDEADLK);
}

static void wait_for_callbacks(void)
{
    assert_int_equal(prudence_domain_barrier(waited_for), EDEADLK);
    assert_int_equal(prudence_domain_barrier_timed(waited_for, 1000000000), EDEADLK);
}

static void free_the_worker(void)
{
    prudence_urcu_free(worker);
}

static void free_all_workers(void)
{
    prudence_urcu_free_all(waited_for);
}

static void wait_for_all_workers(void)
{
    prudence_urcu_barrier(waited_for);
}

static void wait_for_deferred_calls(void)
{
    prudence_urcu_defer_barrier(waited_for);
}

static void assert_changes_nothing(struct prudence_domain *online, void (*refused)(void))
{
    prudence_gp_t cookie;

    prudence_qsbr_online(online);
    cookie = prudence_domain_start_poll(online);
    assert_false(prudence_domain_poll_state(online, cookie));
    prudence_read_lock();
    refused();
    prudence_read_unlock();
    assert_false(prudence_domain_poll_state(online, cookie));
    assert_true(prudence_qsbr_is_online(online));
    prudence_qsbr_offline(online);
    assert_true(prudence_domain_poll_state(online, cookie));
}

/* Once they are allowed, the same waits take the thread offline. */
static void assert_is_waited_for(struct prudence_domain *online)
{
    prudence_qsbr_online(online);
    assert_int_equal(prudence_domain_synchronize(waited_for), 0);
    assert_int_equal(prudence_domain_barrier(waited_for), 0);
    assert_true(prudence_qsbr_is_online(online));
    prudence_qsbr_offline(online);
}

TEST(waits_for_a_domain)
{
    waited_for = prudence_domain_create("events", PRUDENCE_DOMAIN_QSBR, NULL);
    assert_changes_nothing(waited_for, synchronize_in_each_way);
    assert_changes_nothing(waited_for, wait_for_callbacks);
    assert_is_waited_for(waited_for);
    assert_int_equal(prudence_domain_destroy(waited_for), 0);
}

TEST(waits_for_a_set)
{
    struct prudence_domain *members[] = {
        prudence_domain_create("sections", PRUDENCE_DOMAIN_MEMB, NULL),
        prudence_domain_create("events", PRUDENCE_DOMAIN_QSBR, NULL)};

    waited_for = prudence_domain_create_set("both", members, 2);
    assert_changes_nothing(members[1], synchronize_in_each_way);
    assert_changes_nothing(members[1], wait_for_callbacks);
    assert_is_waited_for(members[1]);
    assert_int_equal(prudence_domain_destroy(waited_for), 0);
    assert_int_equal(prudence_domain_destroy(members[0]), 0);
    assert_int_equal(prudence_domain_destroy(members[1]), 0);
}

TEST(waits_of_liburcu)
{
    waited_for = prudence_urcu_qsbr();
    worker = prudence_urcu_create(waited_for, 0, -1);
    assert_changes_nothing(waited_for, free_the_worker);
    assert_changes_nothing(waited_for, free_all_workers);
    assert_changes_nothing(waited_for, wait_for_all_workers);
    assert_changes_nothing(waited_for, wait_for_deferred_calls);
    prudence_urcu_free(worker);
}

SUITE()
