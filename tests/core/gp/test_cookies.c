/* SPDX-License-Identifier: MIT */
/* Cookies: the grace period that each names, the effects of polling, and which thread waits for
 * which. */
#define _GNU_SOURCE

#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "support/gp_reader.h"
#include "support/suite.h"
#include "support/stats.h"

TEST(polling_ends_what_was_started)
{
    prudence_gp_t cookie = prudence_gp_start_poll();
    unsigned polls = 0;

    while (!prudence_gp_poll_state(cookie))
        assert_true(++polls < 1000);
}

TEST(polling_does_not_start_what_was_not)
{
    prudence_gp_t cookie;

    prudence_synchronize();
    cookie = prudence_gp_get_state();
    for (unsigned i = 0; i < 1000; i++)
        assert_false(prudence_gp_poll_state(cookie));
    prudence_synchronize(); /* another caller's grace period does */
    assert_true(prudence_gp_poll_state(cookie));
}

/* A cookie taken during a grace period is not satisfied by that one. */
TEST(a_running_grace_period_is_not_enough)
{
    struct held_reader reader = {.domain = NULL};
    prudence_gp_t running, later;

    held_reader_start(&reader);
    running = prudence_gp_start_poll();
    later = prudence_gp_get_state();
    assert_false(prudence_gp_same_state(running, later));
    held_reader_end(&reader);
    assert_true(prudence_gp_poll_state(running));
    assert_false(prudence_gp_poll_state(later));
    prudence_gp_cond_synchronize(later);
    assert_true(prudence_gp_poll_state(later));
}

TEST(cookies_of_one_state_are_the_same)
{
    prudence_gp_t a, b, c;

    a = prudence_gp_get_state();
    b = prudence_gp_get_state();
    assert_true(prudence_gp_same_state(a, b));
    c = prudence_gp_start_poll(); /* names the same grace period, and starts it */
    assert_true(prudence_gp_same_state(a, c));
    assert_false(prudence_gp_same_state(a, prudence_gp_get_state()));
    prudence_gp_cond_synchronize(a);
    assert_true(prudence_gp_poll_state(b));
}

TEST(cond_synchronize_waits_only_if_need_be)
{
    prudence_gp_t cookie = prudence_gp_start_poll();
    uint64_t completed;

    prudence_synchronize();
    completed = prudence_default.progress.completed;
    prudence_gp_cond_synchronize(cookie);
    assert_int_equal(prudence_default.progress.completed, completed);
    prudence_gp_cond_synchronize(prudence_gp_get_state());
    assert_true(sequence_before(completed, prudence_default.progress.completed));
}

TEST(a_grace_period_waits_for_a_reader_before_it)
{
    struct held_reader reader = {.domain = NULL};
    prudence_gp_t cookie;

    held_reader_start(&reader);
    cookie = prudence_gp_start_poll();
    for (unsigned i = 0; i < 1000; i++)
        assert_false(prudence_gp_poll_state(cookie));
    held_reader_end(&reader);
    assert_true(prudence_gp_poll_state(cookie));
}

TEST(a_grace_period_does_not_wait_for_a_later_reader)
{
    struct held_reader reader = {.domain = NULL};
    prudence_gp_t cookie = prudence_gp_start_poll();

    held_reader_start(&reader); /* after the start */
    assert_true(prudence_gp_poll_state(cookie));
    cookie = prudence_gp_start_poll();
    assert_false(prudence_gp_poll_state(cookie));
    held_reader_end(&reader);
    assert_true(prudence_gp_poll_state(cookie));
}

/* A grace period ends with the earlier readers, although others enter all the time. */
TEST(synchronize_ends_while_others_keep_reading)
{
    struct held_reader readers[4] = {{.domain = NULL}};

    for (unsigned i = 0; i < 4; i++)
        held_reader_start(&readers[i]);
    for (unsigned i = 0; i < 40; i++) {
        prudence_gp_t cookie = prudence_gp_start_poll();

        for (unsigned j = 0; j < 4; j++) { /* they overlap, so never are all outside */
            assert_false(prudence_gp_poll_state(cookie));
            held_reader_end(&readers[j]);
            held_reader_start(&readers[j]);
        }
        assert_true(prudence_gp_poll_state(cookie));
    }
    for (unsigned i = 0; i < 4; i++)
        held_reader_end(&readers[i]);
}

#define SHARERS 16

static uint64_t grace_periods(void)
{
    return stats_now().grace_periods;
}

/* Cookies taken before the start share a grace period. */
TEST(requests_for_one_cookie_start_one_grace_period)
{
    prudence_gp_t cookies[SHARERS];
    uint64_t before;

    prudence_synchronize();
    before = grace_periods();
    for (unsigned i = 0; i < SHARERS; i++)
        cookies[i] = prudence_gp_get_state();
    for (unsigned i = 0; i < SHARERS; i++)
        prudence_gp_cond_synchronize(cookies[i]);
    assert_int_equal(grace_periods() - before, 1);
}

TEST(grace_periods_are_counted_exactly)
{
    uint64_t before = grace_periods(), completed = prudence_default.progress.completed;

    for (unsigned i = 0; i < 100; i++)
        prudence_synchronize();
    prudence_synchronize_expedited();
    assert_int_equal(grace_periods() - before,
                     (prudence_default.progress.completed - completed) / GP_STEP);
}

SUITE()
