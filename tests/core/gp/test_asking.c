/* SPDX-License-Identifier: MIT */
/*
 * gp_try asks readers that do not fence to do so: once each has entered again, a grace period has
 * its barrier without a system call. A reader that does not enter does not answer; the membarrier
 * made instead parks it. A section that was open when the question was asked is waited for, even if
 * it answers inside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <unistd.h>

#define READERS 33
#include "gp/user/parking.h"
#include "support/told_readers.h"
#include "support/threads.h"

static void readers_fence(bool fence)
{
    domain->shared.fenced = domain->readers_fence_themselves = fence;
    parking_follow_mode(domain, fence);
}

static int make_domain(void **state)
{
    domain = prudence_domain_create("asking", PRUDENCE_DOMAIN_MEMB, NULL);
    domain->choosing = 1; /* by another thread, so the domain's mode stays unchanged */
    readers_fence(false);
    return 0;
}

static int destroy_domain(void **state)
{
    return prudence_domain_destroy(domain);
}

/* Tries at once, however recent the last question and however old the choice of mode. */
static enum gp_tried attempt(gp_cookie cookie)
{
    domain->asked_at = 0;
    domain->chosen_at = 0;
    return gp_try(domain, cookie, 0);
}

static void one_that_enters_answers(void **state)
{
    start_readers(2);
    for (int i = 0; i < 10; i++) {
        gp_cookie cookie = gp_snapshot(domain);

        assert_int_equal(attempt(cookie), GP_ASKED);
        assert_int_equal(attempt(cookie), GP_ASKED);
        tell(0, read_once);
        assert_int_equal(attempt(cookie), GP_ASKED); /* one answer is not enough */
        tell(1, read_once);
        assert_false(gp_poll(domain, cookie));
        assert_int_equal(attempt(cookie), GP_OVER);
        assert_true(domain->barrier_goal == cookie.value); /* for other drivers as well */
    }
    assert_int_equal(domain->membarriers, 0);
    assert_int_equal(domain->at_once, 10); /* the choice of mode ignores them */
    end_readers(2);
}

/* gp_try pushes the grace period that has begun; a later cookie waits for the next one. */
static void a_later_cookie_is_not_over(void **state)
{
    gp_cookie first = gp_snapshot(domain), second;

    start_readers(1);
    assert_int_equal(attempt(first), GP_ASKED);
    second = gp_snapshot(domain);
    assert_false(gp_is_same(second, first));
    tell(0, read_once);
    assert_int_equal(attempt(second), GP_LATER);
    assert_true(gp_poll(domain, first));
    assert_int_equal(attempt(second), GP_ASKED);
    assert_false(gp_poll(domain, second)); /* the answer was to the earlier question */
    tell(0, read_once);
    assert_int_equal(attempt(second), GP_OVER);
    end_readers(1);
}

static void an_open_section_is_waited_for(void **state)
{
    gp_cookie cookie;

    start_readers(1);
    tell(0, enter);
    cookie = gp_snapshot(domain);
    assert_int_equal(attempt(cookie), GP_ASKED);
    tell(0, read_once); /* nested; still an answer */
    for (int i = 0; i < 3; i++)
        assert_int_not_equal(attempt(cookie), GP_OVER);
    assert_true(domain->barrier_goal == cookie.value);
    tell(0, leave);
    assert_int_equal(attempt(cookie), GP_OVER);
    end_readers(1);
}

/* The mark is an exchange, made only after the question. */
static void an_older_mark_is_a_question_too(void **state)
{
    gp_cookie cookie = gp_snapshot(domain);

    start_readers(1);
    domain->park_rarely = 8; /* the reader is not parked */
    assert_int_equal(attempt(cookie), GP_ASKED);
    gp_drive(domain); /* by a membarrier */
    assert_true(gp_poll(domain, cookie));
    cookie = gp_snapshot(domain);
    assert_int_equal(attempt(cookie), GP_ASKED);
    tell(0, read_once);
    assert_int_equal(attempt(cookie), GP_OVER);
    end_readers(1);
}

static void one_that_stays_away_is_parked(void **state)
{
    gp_cookie cookie = gp_snapshot(domain);

    start_readers(1);
    assert_int_equal(attempt(cookie), GP_ASKED);
    gp_drive(domain); /* its membarrier parks */
    assert_true(gp_poll(domain, cookie));
    assert_true(domain->parked_ever > 0);
    for (int i = 0; i < 3; i++) {
        uint64_t membarriers = domain->membarriers;

        assert_int_equal(attempt(gp_snapshot(domain)), GP_OVER); /* at once */
        assert_int_equal(domain->membarriers, membarriers);
    }
    tell(0, enter);
    cookie = gp_snapshot(domain);
    assert_int_not_equal(attempt(cookie), GP_OVER);
    tell(0, leave);
    end_readers(1);
}

static void those_that_fence_are_not_asked(void **state)
{
    start_readers(1);
    readers_fence(true);
    for (int i = 0; i < 10; i++) {
        tell(0, read_once); /* it enters often, so not at once, and fences would cost more */
        tell(0, read_once);
        assert_int_equal(attempt(gp_snapshot(domain)), GP_OVER);
    }
    assert_int_equal(domain->asked, 0);
    assert_int_equal(domain->membarriers, 0);
    end_readers(1);
}

static void not_again_at_once(void **state)
{
    gp_cookie cookie = gp_snapshot(domain);

    start_readers(1);
    assert_int_equal(attempt(cookie), GP_ASKED);
    tell(0, read_once);
    assert_int_equal(attempt(cookie), GP_OVER);
    domain->asked_at = UINT64_MAX / 2; /* by this clock the question stays open for long */
    cookie = gp_snapshot(domain);
    assert_int_equal(gp_try(domain, cookie, 0), GP_LATER);
    assert_false(sequence_before(domain->progress.completed, domain->shared.sequence));
    end_readers(1);
}

/* Without an awake reader, it is another CPU that ends grace periods, and at once. */
static void a_cpu_without_readers_is_told_apart(void **state)
{
    domain->tried_on = 1; /* CPU 0 ends them at once */
    domain->asked_at = UINT64_MAX / 2;
    assert_int_equal(gp_try(domain, gp_snapshot(domain), 3), GP_OTHERS);
    start_readers(1);
    assert_int_equal(gp_try(domain, gp_snapshot(domain), 3), GP_LATER);
    end_readers(1);
}

/* The thread that pays for requested grace periods leaves this one to the readers. */
static void nobody_else_has_to_push_it(void **state)
{
    gp_cookie cookie = gp_snapshot(domain);

    start_readers(1);
    assert_int_equal(attempt(cookie), GP_ASKED);
    assert_false(gp_is_requested(domain, cookie));
    cookie = gp_snapshot(domain);
    gp_request(domain, cookie);
    assert_true(gp_is_requested(domain, cookie));
    end_readers(1);
}

static void not_while_another_asks_or_parks(void **state)
{
    start_readers(1);
    domain->parking = 1;
    assert_int_equal(attempt(gp_snapshot(domain)), GP_REFUSED);
    domain->parking = 0;
    end_readers(1);
}

/* A few readers at most, because the caller owns a CPU's caches. */
static void not_more_than_a_few(void **state)
{
    start_readers(READERS);
    assert_int_equal(attempt(gp_snapshot(domain)), GP_REFUSED);
    end_readers(READERS);
}

/* A child lacks the thread that did not answer; it asks its own readers. */
static bool child_goes_on(void)
{
    if (attempt(gp_snapshot(domain)) != GP_OVER)
        return false;
    start_readers(1);
    return attempt(gp_snapshot(domain)) == GP_ASKED;
}

static void forked_while_asked(void **state)
{
    pid_t child;

    start_readers(1);
    assert_int_equal(attempt(gp_snapshot(domain)), GP_ASKED);
    domain->parking = 1; /* another thread does, at that moment */
    child = fork();
    if (!child)
        _exit(child_goes_on() ? 0 : 1);
    assert_int_equal(status_of(child), 0);
    domain->parking = 0;
    end_readers(1);
}

#define ENTRY(name) cmocka_unit_test_setup_teardown(name, make_domain, destroy_domain)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENTRY(one_that_enters_answers),
        ENTRY(a_later_cookie_is_not_over),
        ENTRY(an_open_section_is_waited_for),
        ENTRY(an_older_mark_is_a_question_too),
        ENTRY(one_that_stays_away_is_parked),
        ENTRY(those_that_fence_are_not_asked),
        ENTRY(not_again_at_once),
        ENTRY(a_cpu_without_readers_is_told_apart),
        ENTRY(nobody_else_has_to_push_it),
        ENTRY(not_while_another_asks_or_parks),
        ENTRY(forked_while_asked),
        ENTRY(not_more_than_a_few),
    };

    if (!os_membarrier_available()) {
        print_message("skipped: the system has no membarrier, so readers always fence\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
