/* SPDX-License-Identifier: MIT */
/*
 * Caches whose objects are read by threads that report to a quiescent-state variable of Debian's
 * DPDK.
 *
 * ctest: needs dpdk
 */
#include <errno.h>
#include <stdlib.h>

#include <prudence/dpdk-domain.h>
#include <prudence/prudence.h>

#include "support/suite.h"

enum { THREADS = 2, READER = 1 };

/* This thread has a number in some tests; the other reader is played by the tests, too. */
static unsigned own = RTE_QSBR_THRID_INVALID;

static unsigned own_id(void)
{
    return own;
}

static struct prudence_dpdk_readers readers = {NULL, own_id};
static struct prudence_domain *domain;

static int set_up(void **unused)
{
    size_t bytes = rte_rcu_qsbr_get_memsize(THREADS);

    (void)unused;
    own = RTE_QSBR_THRID_INVALID;
    readers.variable = aligned_alloc(RTE_CACHE_LINE_SIZE, bytes);
    if (!readers.variable || rte_rcu_qsbr_init(readers.variable, THREADS) ||
        rte_rcu_qsbr_thread_register(readers.variable, READER))
        return -1;
    domain = prudence_dpdk_domain_create("lcores", &readers);
    return domain ? 0 : -1;
}

static int take_down(void **unused)
{
    int error = prudence_domain_destroy(domain);

    (void)unused;
    free(readers.variable);
    return error;
}

TEST(an_object_is_safe_when_all_have_reported, set_up, take_down)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
    struct prudence_cache *cache = prudence_cache_create("objects", 64, &attr);
    void *object = prudence_cache_alloc(cache);
    prudence_gp_t cookie;

    rte_rcu_qsbr_thread_online(readers.variable, READER);
    prudence_cache_free_deferred(cache, object);
    cookie = prudence_domain_start_poll(domain);
    for (unsigned i = 0; i < 1000; i++) {
        void *other = prudence_cache_alloc(cache);

        assert_ptr_not_equal(other, object);
        prudence_cache_free(cache, other);
    }
    assert_false(prudence_domain_poll_state(domain, cookie));
    rte_rcu_qsbr_quiescent(readers.variable, READER);
    assert_true(prudence_domain_poll_state(domain, cookie));
    rte_rcu_qsbr_thread_offline(readers.variable, READER);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

TEST(threads_that_are_offline_hold_nobody_up, set_up, take_down)
{
    assert_true(prudence_domain_poll_state(domain, prudence_domain_start_poll(domain)));
    assert_int_equal(prudence_domain_synchronize(domain), 0);
}

TEST(a_thread_that_is_online_waits_for_nothing, set_up, take_down)
{
    own = READER;
    rte_rcu_qsbr_thread_online(readers.variable, READER);
    assert_true(prudence_domain_read_lock_held(domain));
    assert_int_equal(prudence_domain_synchronize(domain), EDEADLK);
    rte_rcu_qsbr_thread_offline(readers.variable, READER);
    assert_false(prudence_domain_read_lock_held(domain));
    assert_int_equal(prudence_domain_synchronize(domain), 0);
}

SUITE()
