/* SPDX-License-Identifier: MIT */
/* Sets of domains: a set's grace period is over only when it is over in every member; members
 * live as long as the set. */
#define _GNU_SOURCE

#include <errno.h>

#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/suite.h"

static struct prudence_domain *make(enum prudence_domain_kind kind)
{
    struct prudence_domain *domain = prudence_domain_create("member", kind, NULL);

    assert_non_null(domain);
    return domain;
}

static struct prudence_domain *set_of(struct prudence_domain *a, struct prudence_domain *b)
{
    struct prudence_domain *pair[] = {a, b};
    struct prudence_domain *set = prudence_domain_create_set("set", pair, b ? 2 : 1);

    assert_non_null(set);
    return set;
}

static void end(struct prudence_domain *domain)
{
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(every_member_must_end)
{
    struct prudence_domain *a = make(PRUDENCE_DOMAIN_MANUAL), *b = make(PRUDENCE_DOMAIN_MANUAL);
    struct prudence_domain *set = set_of(a, b);
    prudence_gp_t cookie = prudence_domain_start_poll(set);

    assert_false(prudence_domain_poll_state(set, cookie));
    prudence_manual_advance(a);
    prudence_manual_advance(a);
    assert_false(prudence_domain_poll_state(set, cookie));
    prudence_manual_advance(b);
    assert_true(prudence_domain_poll_state(set, cookie));
    end(set);
    end(a);
    end(b);
}

/* Grace periods that a member ended before the set's began do not count. */
TEST(what_was_over_before_does_not_count)
{
    struct prudence_domain *a = make(PRUDENCE_DOMAIN_MANUAL), *b = make(PRUDENCE_DOMAIN_MANUAL);
    struct prudence_domain *set = set_of(a, b);
    prudence_gp_t cookie = prudence_domain_get_state(set);

    prudence_manual_advance(a); /* the set's has not started */
    prudence_manual_advance(b);
    assert_false(prudence_domain_poll_state(set, cookie));
    cookie = prudence_domain_start_poll(set);
    assert_false(prudence_domain_poll_state(set, cookie));
    prudence_manual_advance(b);
    prudence_manual_advance(a);
    assert_true(prudence_domain_poll_state(set, cookie));
    end(set);
    end(a);
    end(b);
}

/* A second grace period is requested while the first is running. It needs the members' next
 * ones, and does not delay the first. */
TEST(grace_periods_of_a_set_follow_each_other)
{
    struct prudence_domain *a = make(PRUDENCE_DOMAIN_MANUAL), *b = make(PRUDENCE_DOMAIN_MANUAL);
    struct prudence_domain *set = set_of(a, b);
    prudence_gp_t first = prudence_domain_start_poll(set), second;

    assert_false(prudence_domain_poll_state(set, first));
    prudence_manual_advance(a);
    second = prudence_domain_start_poll(set);
    for (unsigned i = 0; i < 10; i++)
        assert_false(prudence_domain_poll_state(set, second));
    prudence_manual_advance(b);
    assert_true(prudence_domain_poll_state(set, first));
    assert_false(prudence_domain_poll_state(set, second));
    prudence_manual_advance(a);
    prudence_manual_advance(b);
    assert_true(prudence_domain_poll_state(set, second));
    end(set);
    end(a);
    end(b);
}

TEST(members_live_as_long_as_the_set)
{
    struct prudence_domain *a = make(PRUDENCE_DOMAIN_SRCU), *b = make(PRUDENCE_DOMAIN_MEMB);
    struct prudence_domain *set = set_of(a, b);
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = set};
    struct prudence_cache *cache = prudence_cache_create("in a set", 64, &attr);

    assert_int_equal(prudence_domain_destroy(a), EBUSY);
    assert_int_equal(prudence_domain_destroy(set), EBUSY);
    prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    assert_int_equal(prudence_cache_destroy(cache), 0);
    end(set);
    end(a);
    end(b);
}

TEST(a_set_of_sets_has_their_members)
{
    struct prudence_domain *a = make(PRUDENCE_DOMAIN_MANUAL), *b = make(PRUDENCE_DOMAIN_MANUAL);
    struct prudence_domain *inner = set_of(a, b), *set = set_of(inner, a);
    struct prudence_domain_stats stats;
    prudence_gp_t cookie;

    end(inner); /* `set` now names its members directly */
    prudence_domain_stats(a, &stats);
    assert_int_equal(stats.users, 1);
    cookie = prudence_domain_start_poll(set);
    assert_false(prudence_domain_poll_state(set, cookie));
    prudence_manual_advance(b);
    assert_false(prudence_domain_poll_state(set, cookie));
    prudence_manual_advance(a);
    assert_true(prudence_domain_poll_state(set, cookie));
    end(set);
    end(a);
    end(b);
}

TEST(any_kinds_mix)
{
    struct prudence_domain *srcu = make(PRUDENCE_DOMAIN_SRCU), *qsbr = make(PRUDENCE_DOMAIN_QSBR);
    struct prudence_domain *all[] = {srcu, qsbr, prudence_default_domain()};
    struct prudence_domain *set = prudence_domain_create_set("mixed", all, 3);
    prudence_gp_t cookie;
    int index;

    assert_int_equal(prudence_domain_synchronize(set), 0);
    index = prudence_srcu_read_lock(srcu);
    prudence_qsbr_online(qsbr);
    prudence_read_lock();
    assert_true(prudence_domain_read_lock_held(set));
    cookie = prudence_domain_start_poll(set);
    assert_false(prudence_domain_poll_state(set, cookie));
    prudence_read_unlock();
    assert_false(prudence_domain_poll_state(set, cookie));
    prudence_qsbr_quiescent(qsbr);
    assert_false(prudence_domain_poll_state(set, cookie));
    prudence_srcu_read_unlock(srcu, index);
    assert_true(prudence_domain_poll_state(set, cookie));
    assert_int_equal(prudence_domain_synchronize(set), 0); /* online in a member */
    assert_true(prudence_domain_read_lock_held(set));
    prudence_qsbr_offline(qsbr);
    assert_false(prudence_domain_read_lock_held(set));
    end(set);
    end(srcu);
    end(qsbr);
}

TEST(a_set_cannot_be_read)
{
    struct prudence_domain *set = set_of(prudence_default_domain(), NULL);

    expect_death(prudence_domain_read_lock(set), "has no readers of its own");
    end(set);
}

static int end_in_a_child(void *set)
{
    prudence_gp_t cookie = prudence_domain_start_poll(set);
    prudence_gp_t before = {.private_value = ((struct prudence_domain *)set)->progress.completed};

    return prudence_domain_poll_state(set, cookie) && prudence_domain_poll_state(set, before) ? 42
                                                                                              : 1;
}

TEST(a_forked_child_goes_on)
{
    struct prudence_domain *srcu = make(PRUDENCE_DOMAIN_SRCU);
    struct prudence_domain *set = set_of(srcu, prudence_default_domain());
    struct held_reader reader = {.domain = srcu};
    prudence_gp_t cookie;

    held_reader_start(&reader);
    cookie = prudence_domain_start_poll(set);
    assert_false(prudence_domain_poll_state(set, cookie));
    assert_child(end_in_a_child, set);
    held_reader_end(&reader);
    end(set);
    end(srcu);
}

SUITE()
