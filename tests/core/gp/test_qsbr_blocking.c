/* SPDX-License-Identifier: MIT */
/* A thread goes offline around calls that block, and online again on every way out; such calls
 * nest.
 *
 * ctest: not-with thread (one thread)
 */
#define _GNU_SOURCE

#include <errno.h>

#include <prudence/rcu.h>

#include "support/suite.h"

static struct prudence_domain *domain;

static int set_up(void **state)
{
    domain = prudence_domain_create("events", PRUDENCE_DOMAIN_QSBR, NULL);
    return domain == NULL;
}

static int tear_down(void **state)
{
    return prudence_domain_destroy(domain);
}

static bool is_online(void)
{
    return prudence_domain_read_lock_held(domain);
}

static bool a_grace_period_ends(void)
{
    return prudence_domain_poll_state(domain, prudence_domain_start_poll(domain));
}

TEST(it_does_not_hold_up_grace_periods_meanwhile)
{
    bool online;

    prudence_qsbr_online(domain);
    assert_false(a_grace_period_ends());
    errno = 77;
    online = prudence_qsbr_blocking_begin(domain);
    assert_true(online);
    assert_false(is_online());
    assert_true(a_grace_period_ends());
    prudence_qsbr_blocking_end(domain, online);
    assert_int_equal(errno, 77);
    assert_true(is_online());
    assert_false(a_grace_period_ends());
    prudence_qsbr_offline(domain);
}

TEST(an_offline_thread_stays_offline)
{
    bool online = prudence_qsbr_blocking_begin(domain);

    assert_false(online);
    prudence_qsbr_blocking_end(domain, online);
    assert_false(is_online());
}

TEST(it_nests)
{
    bool outer, inner;

    prudence_qsbr_online(domain);
    outer = prudence_qsbr_blocking_begin(domain);
    inner = prudence_qsbr_blocking_begin(domain);
    prudence_qsbr_blocking_end(domain, inner);
    assert_false(is_online());
    prudence_qsbr_blocking_end(domain, outer);
    assert_true(is_online());
    prudence_qsbr_offline(domain);
}

static int leave_early(bool early)
{
    PRUDENCE_QSBR_BLOCKING(domain);
    if (early)
        return is_online();
    return 2;
}

TEST(a_block_ends_however_it_is_left)
{
    prudence_qsbr_online(domain);
    assert_int_equal(leave_early(true), 0);
    assert_true(is_online());
    assert_int_equal(leave_early(false), 2);
    assert_true(is_online());
    for (unsigned i = 0; i < 3; i++) {
        PRUDENCE_QSBR_BLOCKING(domain);
        PRUDENCE_QSBR_BLOCKING(domain);
        if (i == 1)
            continue;
        assert_false(is_online());
    }
    assert_true(is_online());
    prudence_qsbr_offline(domain);
    assert_int_equal(leave_early(true), 0);
    assert_false(is_online());
}

SUITE_BETWEEN(set_up, tear_down)
