/* SPDX-License-Identifier: MIT */
/*
 * The adapter for liburcu from 0.14 on, which can be polled. The flavor is made of a domain of ours
 * (tests/support/urcu-polling), because Debian 12 has an older liburcu.
 *
 * ctest: needs liburcu
 */
#define _GNU_SOURCE

#include <errno.h>

#include <prudence/urcu-domain.h>

#include "support/gp_reader.h"
#include "support/suite.h"

#ifndef PRUDENCE_URCU_POLLS
#error "the adapter does not see that this liburcu can be polled"
#endif

static unsigned synchronized;

static int read_ongoing(void)
{
    return prudence_read_lock_held();
}

static void synchronize(void)
{
    synchronized++;
    prudence_synchronize();
}

static struct urcu_gp_poll_state start_poll(void)
{
    return (struct urcu_gp_poll_state){prudence_gp_start_poll().private_value};
}

static bool poll_state(struct urcu_gp_poll_state state)
{
    return prudence_gp_poll_state((prudence_gp_t){state.grace_period_id});
}

static const struct rcu_flavor_struct flavor = {read_ongoing, synchronize, start_poll, poll_state};

TEST(it_is_polled)
{
    struct prudence_domain *domain = prudence_urcu_domain_create("polled", &flavor);
    struct held_reader reader = {.domain = NULL};
    prudence_gp_t cookie;

    assert_non_null(domain);
    held_reader_start(&reader);
    cookie = prudence_domain_start_poll(domain);
    for (unsigned i = 0; i < 10; i++)
        assert_false(prudence_domain_poll_state(domain, cookie));
    held_reader_end(&reader);
    assert_true(prudence_domain_poll_state(domain, cookie));
    assert_int_equal(prudence_domain_synchronize(domain), 0);
    assert_int_equal(synchronized, 0);
    prudence_read_lock();
    assert_int_equal(prudence_domain_destroy(domain), EBUSY);
    assert_int_equal(prudence_domain_synchronize(domain), EDEADLK);
    prudence_read_unlock();
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

SUITE()
