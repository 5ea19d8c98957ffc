/* SPDX-License-Identifier: MIT */
/*
 * External domains and sets, step by step: another thread's worst-case action is done inside a
 * foreign function, which the library calls at exactly that moment. So every run is the same, and a
 * driver that reads a goal too late completes too much in each of them.
 */
#define _GNU_SOURCE

#include <semaphore.h>
#include <string.h>

#include <prudence/rcu.h>

#include "gp/user/domain.h"
#include "support/gp_reader.h"
#include "support/suite.h"

static struct {
    uint64_t begun, over; /* foreign grace periods */
    void (*in_start_poll)(void);
    void (*in_synchronize)(unsigned number);
    unsigned synchronizing; /* number of calls so far; atomic */
} foreign;

static struct prudence_domain *external, *manual, *set;
static prudence_gp_t late; /* a grace period requested inside a foreign function */

static uint64_t start_poll(void *context)
{
    uint64_t cookie = ++foreign.begun;
    void (*step)(void) = foreign.in_start_poll;

    foreign.in_start_poll = NULL;
    if (step)
        step();
    return cookie;
}

static bool poll_state(void *context, uint64_t cookie)
{
    return foreign.over >= cookie;
}

static void synchronize(void *context)
{
    foreign.in_synchronize(__atomic_add_fetch(&foreign.synchronizing, 1, __ATOMIC_ACQ_REL));
}

static void make_external(bool polls)
{
    struct prudence_domain_ops ops = {.size = sizeof ops,
                                      .start_poll = polls ? start_poll : NULL,
                                      .poll_state = polls ? poll_state : NULL,
                                      .synchronize = synchronize};

    external = prudence_domain_create_external("external", &ops, NULL);
    assert_non_null(external);
}

static int set_up(void **state)
{
    memset(&foreign, 0, sizeof foreign);
    return 0;
}

static void end(struct prudence_domain *domain)
{
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* ------------------------------------------------------------------ the goal of an external one */

static void ask_for_another(void)
{
    late = prudence_domain_start_poll(external);
}

/* A foreign grace period covers requests made before it began, and none made since. */
TEST(what_is_asked_for_while_one_begins_needs_the_next, set_up)
{
    prudence_gp_t first;

    make_external(true);
    first = prudence_domain_start_poll(external);
    foreign.in_start_poll = ask_for_another;
    assert_false(prudence_domain_poll_state(external, first));
    assert_int_equal(foreign.begun, 1);
    foreign.over = 1;
    assert_true(prudence_domain_poll_state(external, first));
    assert_false(prudence_domain_poll_state(external, late));
    assert_int_equal(foreign.begun, 2);
    foreign.over = 2;
    assert_true(prudence_domain_poll_state(external, late));
    end(external);
}

static sem_t second_runs, second_may_end;

static void ask_in_the_first_wait_in_the_second(unsigned number)
{
    if (number == 1) {
        late = prudence_domain_start_poll(external);
    } else if (number == 2) {
        sem_post(&second_runs);
        while (sem_wait(&second_may_end))
            ;
    }
}

TEST(while_it_is_waited_for_as_well, set_up)
{
    prudence_gp_t first;

    sem_init(&second_runs, 0, 0);
    sem_init(&second_may_end, 0, 0);
    foreign.in_synchronize = ask_in_the_first_wait_in_the_second;
    make_external(false);
    first = prudence_domain_start_poll(external);
    while (!prudence_domain_poll_state(external, first))
        pause_ms(1);
    /* The first has returned and has completed its grace period; the poll of `late` shows that. */
    assert_false(gp_poll(external, (gp_cookie){late.private_value}));
    while (sem_wait(&second_runs))
        ;
    assert_false(gp_poll(external, (gp_cookie){late.private_value}));
    sem_post(&second_may_end);
    while (!prudence_domain_poll_state(external, late))
        pause_ms(1);
    assert_int_equal(foreign.synchronizing, 2);
    end(external);
}

/* ------------------------------------------------------------------------- what a set completes */

/* Another driver ends the set's grace period and begins the next; the manual member is over at
 * once, the external one is not. */
static void end_and_begin(void)
{
    prudence_gp_t ended = {.private_value = set->shared.sequence};

    prudence_manual_advance(manual);
    assert_true(prudence_domain_poll_state(set, ended));
    late = prudence_domain_start_poll(set);
    assert_false(prudence_domain_poll_state(set, late)); /* begins it */
    prudence_manual_advance(manual);
}

/* A driver that finds its members over completes the grace period whose member cookies it has,
 * and not one that has begun since. */
TEST(a_set_does_not_complete_what_began_meanwhile, set_up)
{
    struct prudence_domain *members[2];
    prudence_gp_t first;

    make_external(true);
    manual = prudence_domain_create("manual", PRUDENCE_DOMAIN_MANUAL, NULL);
    members[0] = external;
    members[1] = manual;
    set = prudence_domain_create_set("set", members, 2);
    first = prudence_domain_start_poll(set);
    /* the external member's grace period is running */
    assert_false(prudence_domain_poll_state(set, first));
    prudence_domain_start_poll(external); /* so it begins another after that */
    foreign.over = 1;
    foreign.in_start_poll = end_and_begin;
    assert_true(prudence_domain_poll_state(set, first));
    assert_null(foreign.in_start_poll);
    assert_false(gp_poll(set, (gp_cookie){late.private_value}));
    assert_false(prudence_domain_poll_state(set, late));
    for (unsigned i = 0; i < 3 && !gp_poll(set, (gp_cookie){late.private_value}); i++) {
        foreign.over = foreign.begun;
        prudence_domain_poll_state(set, late);
    }
    assert_true(prudence_domain_poll_state(set, late));
    end(set);
    end(manual);
    end(external);
}

SUITE()
