/* SPDX-License-Identifier: MIT */
/*
 * check=1 reports any use of a domain after its end, with the place, whatever the function.
 *
 * ctest: not-with thread (one thread)
 */
#define _GNU_SOURCE

#include <prudence/call.h>
#include <prudence/poll.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "support/gp_child.h"
#include "support/suite.h"

typedef void use(struct prudence_domain *domain);

static void use_lock(struct prudence_domain *domain)
{
    prudence_domain_read_lock(domain);
}

static void use_unlock(struct prudence_domain *domain)
{
    prudence_domain_read_unlock(domain);
}

static void use_held(struct prudence_domain *domain)
{
    prudence_domain_read_lock_held(domain);
}

static void use_synchronize(struct prudence_domain *domain)
{
    prudence_domain_synchronize(domain);
}

static void use_get_state(struct prudence_domain *domain)
{
    prudence_domain_get_state(domain);
}

static void use_start_poll(struct prudence_domain *domain)
{
    prudence_domain_start_poll(domain);
}

static void use_poll_state(struct prudence_domain *domain)
{
    prudence_domain_poll_state(domain, (prudence_gp_t){0});
}

static void use_destroy(struct prudence_domain *domain)
{
    prudence_domain_destroy(domain);
}

static void use_srcu(struct prudence_domain *domain)
{
    prudence_srcu_read_lock(domain);
}

static void use_srcu_unlock(struct prudence_domain *domain)
{
    prudence_srcu_read_unlock(domain, 0);
}

static void use_down(struct prudence_domain *domain)
{
    prudence_srcu_down_read(domain);
}

static void use_up(struct prudence_domain *domain)
{
    prudence_srcu_up_read(domain, 0);
}

static void use_online(struct prudence_domain *domain)
{
    prudence_qsbr_online(domain);
}

static void use_advance(struct prudence_domain *domain)
{
    prudence_manual_advance(domain);
}

static void use_in_a_set(struct prudence_domain *domain)
{
    prudence_domain_create_set("set", &domain, 1);
}

static void use_in_a_cache(struct prudence_domain *domain)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};

    prudence_cache_create("late", 64, &attr);
}

static void use_stats(struct prudence_domain *domain)
{
    struct prudence_domain_stats stats;

    prudence_domain_stats(domain, &stats);
}

static void use_get_completed(struct prudence_domain *domain)
{
    prudence_domain_get_completed(domain);
}

static void use_start_poll_expedited(struct prudence_domain *domain)
{
    prudence_domain_start_poll_expedited(domain);
}

static void use_cond_synchronize(struct prudence_domain *domain)
{
    prudence_domain_cond_synchronize(domain, prudence_gp_get_state());
}

static void use_cond_synchronize_expedited(struct prudence_domain *domain)
{
    prudence_domain_cond_synchronize_expedited(domain, prudence_gp_get_state());
}

static void use_synchronize_expedited(struct prudence_domain *domain)
{
    prudence_domain_synchronize_expedited(domain);
}

static void never_runs(struct prudence_head *head)
{
}

static void use_call(struct prudence_domain *domain)
{
    static struct prudence_head head;

    prudence_domain_call(domain, &head, never_runs);
}

static void use_barrier(struct prudence_domain *domain)
{
    prudence_domain_barrier(domain);
}

static const struct {
    use *act;
    const char *says;
} uses[] = {
    {use_lock, "prudence_domain_read_lock, called from 0x"},
    {use_unlock, "prudence_domain_read_unlock, called from 0x"},
    {use_held, "prudence_domain_read_lock_held, called from 0x"},
    {use_synchronize, "prudence_domain_synchronize, called from 0x"},
    {use_get_state, "prudence_domain_get_state, called from 0x"},
    {use_start_poll, "prudence_domain_start_poll, called from 0x"},
    {use_poll_state, "prudence_domain_poll_state, called from 0x"},
    {use_destroy, "prudence_domain_destroy, called from 0x"},
    {use_srcu, "prudence_srcu_read_lock, called from 0x"},
    {use_srcu_unlock, "prudence_srcu_read_unlock, called from 0x"},
    {use_down, "prudence_srcu_down_read, called from 0x"},
    {use_up, "prudence_srcu_up_read, called from 0x"},
    {use_online, "prudence_qsbr_online, called from 0x"},
    {use_advance, "prudence_manual_advance, called from 0x"},
    {use_in_a_set, "prudence_domain_create_set, called from 0x"},
    {use_in_a_cache, "prudence_cache_create, called from 0x"},
    {use_stats, "prudence_domain_stats, called from 0x"},
    {use_get_completed, "prudence_domain_get_completed, called from 0x"},
    {use_start_poll_expedited, "prudence_domain_start_poll_expedited, called from 0x"},
    {use_cond_synchronize, "prudence_domain_cond_synchronize, called from 0x"},
    {use_cond_synchronize_expedited, "prudence_domain_cond_synchronize_expedited, called from 0x"},
    {use_synchronize_expedited, "prudence_domain_synchronize_expedited, called from 0x"},
    {use_call, "prudence_domain_call, called from 0x"},
    {use_barrier, "prudence_domain_barrier, called from 0x"},
};
#define USES (sizeof uses / sizeof uses[0])

static int use_after_destroy(void *which)
{
    struct prudence_domain *domain;

    prudence_option_set("check", "1");
    domain = prudence_domain_create("gone", PRUDENCE_DOMAIN_SRCU, NULL);
    prudence_domain_destroy(domain);
    uses[*(unsigned *)which].act(domain);
    return 0;
}

TEST(after_its_end_each_function_says_so)
{
    for (unsigned i = 0; i < USES; i++) {
        expect_death(use_after_destroy(&i), "");
        if (!said(uses[i].says) || !said("domain 'gone'") || !said("was destroyed"))
            fail_msg("use %u said: %s", i, last_child.output);
    }
}

static int use_what_is_none(void)
{
    static _Alignas(struct prudence_domain) char memory[sizeof(struct prudence_domain)];

    prudence_option_set("check", "1");
    prudence_domain_synchronize((struct prudence_domain *)memory);
    return 0;
}

TEST(what_never_was_one_is_told_apart)
{
    expect_death(use_what_is_none(), "is not a domain");
}

static int live_on(void *unused)
{
    prudence_option_set("check", "1");
    for (unsigned i = 0; i < 1000; i++) { /* more dead domains than are kept */
        struct prudence_domain *domain = prudence_domain_create("x", PRUDENCE_DOMAIN_SRCU, NULL);

        prudence_domain_synchronize(domain);
        if (prudence_domain_destroy(domain))
            return 1;
    }
    return 42;
}

TEST(many_may_end)
{
    assert_child(live_on, NULL);
}

SUITE()
