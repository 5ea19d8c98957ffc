/* SPDX-License-Identifier: MIT */
/*
 * The sequence wraps. Debug builds start 1,000 grace periods before the wrap; this test sets a
 * domain there in any build.
 */
#define _GNU_SOURCE

#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "gp/user/domain.h"
#include "support/gp_reader.h"
#include "support/suite.h"

static struct prudence_domain *near_the_wrap(void)
{
    struct prudence_domain *domain = prudence_domain_create("wrap", PRUDENCE_DOMAIN_MEMB, NULL);
    uint64_t near = UINT64_C(0) - 5 * GP_STEP;

    domain->shared.sequence = domain->progress.completed = domain->barrier_goal = near;
    return domain;
}

TEST(readers_are_waited_for_across_the_wrap)
{
    struct prudence_domain *domain = near_the_wrap();

    for (unsigned i = 0; i < 10; i++) {
        struct held_reader reader = {.domain = domain};
        prudence_gp_t before, cookie;

        held_reader_start(&reader);
        before = prudence_domain_get_state(domain);
        cookie = prudence_domain_start_poll(domain);
        for (unsigned j = 0; j < 10; j++)
            assert_false(prudence_domain_poll_state(domain, cookie));
        assert_false(prudence_domain_poll_state(domain, before));
        held_reader_end(&reader);
        assert_true(prudence_domain_poll_state(domain, cookie));
        assert_int_equal(prudence_domain_synchronize(domain), 0);
    }
    assert_true((int64_t)domain->shared.sequence > 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(objects_are_reused_across_the_wrap)
{
    struct prudence_domain *domain = near_the_wrap();
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
    struct prudence_cache *cache = prudence_cache_create("wrap", 4096, &attr);

    for (unsigned i = 0; i < 100000 && (int64_t)domain->shared.sequence < (int64_t)(10 * GP_STEP);
         i++)
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    assert_true((int64_t)domain->shared.sequence > 0);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(debug_builds_start_near_it)
{
#ifdef PRUDENCE_DEBUG
    assert_true((int64_t)GP_FIRST < 0);
    for (unsigned i = 0; i < 1100; i++)
        prudence_synchronize();
    assert_true((int64_t)prudence_default.shared.sequence > 0);
#else
    skip();
#endif
}

SUITE()
