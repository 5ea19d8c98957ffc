/* SPDX-License-Identifier: MIT */
/* The whole polled interface: expedited and full states, for domains; synchronizers share. */
#define _GNU_SOURCE

#include <errno.h>

#include <prudence/poll.h>
#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/suite.h"
#include "support/threads.h"

#define CALLERS 32

TEST(completed_is_over)
{
    struct prudence_domain *domain = prudence_domain_create("manual", PRUDENCE_DOMAIN_MANUAL, NULL);
    prudence_gp_full_t full;

    assert_true(prudence_gp_poll_state(prudence_gp_get_completed()));
    prudence_gp_get_completed_full(&full);
    assert_true(prudence_gp_poll_state_full(&full));
    assert_true(prudence_domain_poll_state(domain, prudence_domain_get_completed(domain)));
    prudence_domain_get_completed_full(domain, &full);
    assert_true(prudence_domain_poll_state_full(domain, &full));
    assert_int_equal(prudence_domain_cond_synchronize_full(domain, &full), 0); /* does not wait */
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(full_states)
{
    prudence_gp_full_t full, same;
    unsigned polls = 0;

    prudence_synchronize();
    prudence_gp_get_state_full(&full);
    prudence_gp_get_state_full(&same);
    assert_true(prudence_gp_same_state_full(&full, &same));
    for (unsigned i = 0; i < 100; i++)
        assert_false(prudence_gp_poll_state_full(&full));
    prudence_gp_cond_synchronize_full(&full);
    assert_true(prudence_gp_poll_state_full(&full));
    prudence_gp_start_poll_full(&full);
    assert_false(prudence_gp_same_state_full(&full, &same));
    while (!prudence_gp_poll_state_full(&full))
        assert_true(++polls < 1000);
    prudence_gp_get_state_full(&full);
    prudence_gp_cond_synchronize_expedited_full(&full);
    assert_true(prudence_gp_poll_state_full(&full));
}

/* With no reader inside, no thread needs to poll. */
TEST(expedited_ends_at_once)
{
    prudence_gp_full_t full;
    prudence_gp_t cookie = prudence_gp_start_poll_expedited();

    assert_true(gp_poll(&prudence_default, (gp_cookie){cookie.private_value}));
    prudence_gp_start_poll_expedited_full(&full);
    assert_true(gp_poll(&prudence_default, (gp_cookie){full.private_cookie.private_value}));
    cookie = prudence_gp_get_state();
    prudence_gp_cond_synchronize_expedited(cookie);
    assert_true(gp_poll(&prudence_default, (gp_cookie){cookie.private_value}));
}

TEST(expedited_waits_for_readers)
{
    struct prudence_domain *domain = prudence_domain_create("memb", PRUDENCE_DOMAIN_MEMB, NULL);
    struct held_reader reader = {.domain = domain};
    prudence_gp_full_t full;
    prudence_gp_t cookie;

    held_reader_start(&reader);
    cookie = prudence_domain_start_poll_expedited(domain);
    prudence_domain_start_poll_expedited_full(domain, &full);
    for (unsigned i = 0; i < 100; i++)
        assert_false(prudence_domain_poll_state(domain, cookie));
    held_reader_end(&reader);
    assert_int_equal(prudence_domain_cond_synchronize_expedited(domain, cookie), 0);
    assert_true(prudence_domain_poll_state(domain, cookie));
    assert_int_equal(prudence_domain_cond_synchronize_expedited_full(domain, &full), 0);
    assert_int_equal(prudence_domain_synchronize_expedited(domain), 0);
    cookie = prudence_domain_get_state(domain);
    assert_int_equal(prudence_domain_cond_synchronize(domain, cookie), 0);
    assert_true(prudence_domain_poll_state(domain, cookie));
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static int waits_for_itself(void *domain)
{
    prudence_gp_t cookie = prudence_domain_get_state(domain);

    prudence_domain_read_lock(domain);
    if (prudence_domain_cond_synchronize(domain, cookie) != EDEADLK ||
        prudence_domain_cond_synchronize_expedited(domain, cookie) != EDEADLK ||
        prudence_domain_synchronize_expedited(domain) != EDEADLK ||
        prudence_domain_cond_synchronize(domain, prudence_domain_get_completed(domain)) != 0)
        return 1;
    prudence_domain_read_unlock(domain);
    return 42;
}

TEST(inside_a_section)
{
    struct prudence_domain *domain = prudence_domain_create("memb", PRUDENCE_DOMAIN_MEMB, NULL);

    expect_exit(42, waits_for_itself(domain),
                "prudence_domain_synchronize_expedited for domain 'memb'");
    expect_death(
        (prudence_read_lock(), prudence_gp_cond_synchronize_expedited(prudence_gp_get_state())),
        "prudence_gp_cond_synchronize_expedited");
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static sem_t ready;

static void *synchronize(void *domain)
{
    sem_post(&ready);
    prudence_domain_synchronize(domain);
    return NULL;
}

/* Callers that wait at the same time share grace periods: while a reader is inside, two are
 * running and a third serves all later callers. */
TEST(synchronizers_share)
{
    struct prudence_domain *domain = prudence_domain_create("shared", PRUDENCE_DOMAIN_MEMB, NULL);
    struct held_reader reader = {.domain = domain};
    pthread_t callers[CALLERS];
    uint64_t before, completed;

    sem_init(&ready, 0, 0);
    held_reader_start(&reader);
    before = load_relaxed(&domain->shared.sequence);
    completed = load_relaxed(&domain->progress.completed);
    for (unsigned i = 0; i < CALLERS; i++)
        pthread_create(&callers[i], NULL, synchronize, domain);
    for (unsigned i = 0; i < CALLERS; i++)
        while (sem_wait(&ready))
            ;
    pause_ms(50);
    assert_int_equal(load_relaxed(&domain->progress.completed), completed);
    held_reader_end(&reader);
    threads_join(callers, CALLERS);
    assert_in_range((load_relaxed(&domain->shared.sequence) - before) / GP_STEP, 1, 3);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

SUITE(prudence_free(prudence_malloc(1)))
