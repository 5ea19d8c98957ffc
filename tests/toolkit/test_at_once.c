/* SPDX-License-Identifier: MIT */
/*
 * A grace period begins and ends at once if the reader words show that no thread is inside: the
 * words of this thread, of other threads that fence, and of those that are not registered. It costs
 * no membarrier and no scan. It is refused if a reader is inside, may be, or enters often, and to a
 * CPU that was not the last to try. (test_asking.c tests the question to readers that do not
 * fence.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gp/user/domain.h"
#include "support/gp_reader.h"
#include "toolkit/domains/phases.h"

static struct prudence_domain *domain;

static struct prudence_domain *make(enum prudence_domain_kind kind)
{
    struct prudence_domain *made = prudence_domain_create("at once", kind, NULL);

    assert_non_null(made);
    made->tried_on = 1; /* by CPU 0, like all attempts here */
    made->choosing = 1; /* by another thread, so the domain's mode stays unchanged */
    made->parking = 1;  /* no reader is asked to fence (test_asking.c) */
    return made;
}

static int make_domain(void **state)
{
    domain = make(PRUDENCE_DOMAIN_MEMB);
    return 0;
}

static int destroy_domain(void **state)
{
    return prudence_domain_destroy(domain);
}

static bool attempt(void)
{
    return gp_try(domain, gp_snapshot(domain), 0) == GP_OVER;
}

static uint64_t looks(void)
{
    return load_relaxed(&domain->scans) + load_relaxed(&domain->membarriers);
}

static void readers_fence(bool fence)
{
    domain->shared.fenced = domain->readers_fence_themselves = fence;
}

static void begins_and_ends(void **state)
{
    for (int i = 0; i < 100; i++) {
        gp_cookie cookie = gp_snapshot(domain);

        assert_false(gp_poll(domain, cookie));
        assert_int_equal(gp_try(domain, cookie, 0), GP_OVER);
        assert_true(gp_poll(domain, cookie));
        assert_true(domain->shared.sequence == domain->progress.completed);
        assert_true(domain->shared.sequence == cookie.value);
        assert_false(gp_poll(domain, gp_snapshot(domain))); /* the next cookie needs another */
    }
    assert_int_equal(domain->grace_periods, 100);
    assert_int_equal(domain->at_once, 100);
    assert_int_equal(looks(), 0);
}

/* A cookie that is over costs no write. */
static void a_cookie_that_is_over_writes_nothing(void **state)
{
    gp_cookie cookie = gp_snapshot(domain);

    assert_int_equal(gp_try(domain, cookie, 0), GP_OVER);
    assert_int_equal(gp_try(domain, cookie, 7), GP_OVER);
    assert_int_equal(domain->tried_on, 1);
    assert_int_equal(domain->at_once, 1);
}

static void ends_what_others_began(void **state)
{
    gp_cookie cookie = gp_snapshot(domain);

    gp_request(domain, cookie);
    assert_int_equal(gp_try(domain, cookie, 0), GP_OVER);
    assert_true(domain->shared.sequence == cookie.value);
}

static void not_inside_a_section_of_this_thread(void **state)
{
    uint64_t before = domain->shared.sequence;

    for (int fenced = 0; fenced < 2; fenced++) {
        readers_fence(fenced);
        prudence_domain_read_lock(domain);
        assert_false(attempt());
        assert_true(domain->shared.sequence == before); /* a refusal writes nothing */
        prudence_domain_read_unlock(domain);
        assert_true(attempt()); /* its entries do not count for others */
        before = domain->shared.sequence;
    }
}

/* A thread that enters and leaves once each time the test asks. */
struct visitor {
    pthread_t thread;
    sem_t go, done;
    bool ends;
};

static void *visit(void *argument)
{
    struct visitor *visitor = argument;

    for (;;) {
        while (sem_wait(&visitor->go))
            ;
        if (visitor->ends)
            return NULL;
        prudence_domain_read_lock(domain);
        prudence_domain_read_unlock(domain);
        sem_post(&visitor->done);
    }
}

static void visitor_enters(struct visitor *visitor)
{
    sem_post(&visitor->go);
    while (sem_wait(&visitor->done))
        ;
}

static void visitor_start(struct visitor *visitor)
{
    visitor->ends = false;
    sem_init(&visitor->go, 0, 0);
    sem_init(&visitor->done, 0, 0);
    assert_int_equal(pthread_create(&visitor->thread, NULL, visit, visitor), 0);
    visitor_enters(visitor); /* wakes its slot; that entry does not count */
    visitor_enters(visitor);
}

static void visitor_end(struct visitor *visitor)
{
    visitor->ends = true;
    sem_post(&visitor->go);
    pthread_join(visitor->thread, NULL);
}

static void not_with_a_thread_that_does_not_fence(void **state)
{
    struct visitor visitor;

    readers_fence(false);
    visitor_start(&visitor);
    for (int i = 0; i < 10; i++)
        assert_false(attempt());
    assert_int_equal(domain->at_once, 0);
    visitor_end(&visitor);
    assert_true(attempt()); /* it is no longer registered */
}

static void with_threads_that_fence_and_rest(void **state)
{
    struct visitor visitor;

    readers_fence(true);
    visitor_start(&visitor);
    assert_false(attempt()); /* it has entered since the last check */
    assert_true(attempt());
    assert_true(attempt());
    for (int i = 0; i < 10; i++) {
        visitor_enters(&visitor);
        assert_false(attempt());
    }
    assert_true(attempt());
    visitor_end(&visitor);
}

static void not_while_a_reader_is_inside(void **state)
{
    struct held_reader reader = {.domain = domain};

    readers_fence(true);
    held_reader_start(&reader);
    for (int i = 0; i < 10; i++)
        assert_false(attempt());
    assert_int_equal(domain->at_once, 0);
    held_reader_end(&reader);
}

/* The number of readers read is bounded, because the caller owns a CPU's caches. */
static void is_bounded(void **state)
{
    static struct visitor visitors[40];

    readers_fence(true);
    for (int i = 0; i < 40; i++)
        visitor_start(&visitors[i]);
    for (int i = 0; i < 10; i++)
        assert_false(attempt()); /* more than a try reads */
    for (int i = 0; i < 40; i++)
        visitor_end(&visitors[i]);
}

/* The writers of two CPUs share grace periods instead of taking turns with these cache lines. */
static void only_the_last_cpu_to_try(void **state)
{
    domain->tried_on = 0; /* no thread has tried */
    assert_int_equal(gp_try(domain, gp_snapshot(domain), 0), GP_OVER);
    assert_int_equal(gp_try(domain, gp_snapshot(domain), 3), GP_REFUSED);
    assert_int_equal(gp_try(domain, gp_snapshot(domain), 0), GP_OVER);
    domain->parking = 0;
    assert_int_equal(gp_try(domain, gp_snapshot(domain), 3),
                     GP_OVER); /* by asking readers instead */
    domain->parking = 1;
    assert_int_not_equal(gp_try(domain, gp_snapshot(domain), 0), GP_OVER);
    assert_int_equal(gp_try(domain, gp_snapshot(domain), 3), GP_OVER);
}

static void qsbr_threads_offline(void **state)
{
    struct prudence_domain *qsbr = make(PRUDENCE_DOMAIN_QSBR);

    assert_int_equal(gp_try(qsbr, gp_snapshot(qsbr), 0), GP_OVER);
    prudence_qsbr_online(qsbr);
    assert_int_equal(gp_try(qsbr, gp_snapshot(qsbr), 0), GP_REFUSED);
    prudence_qsbr_offline(qsbr);
    assert_int_equal(gp_try(qsbr, gp_snapshot(qsbr), 0), GP_OVER);
    assert_int_equal(prudence_domain_destroy(qsbr), 0);
}

static bool always(void *state, uint64_t cookie)
{
    (void)state, (void)cookie;
    return true;
}

static uint64_t nothing(void *state)
{
    return 0;
}

/* A check of words cannot end the grace periods of other kinds. */
static void no_other_kind(void **state)
{
    const struct prudence_domain_ops ops = {
        .size = sizeof ops, .start_poll = nothing, .poll_state = always};
    struct prudence_domain *others[] = {
        make(PRUDENCE_DOMAIN_SRCU),
        make(PRUDENCE_DOMAIN_MANUAL),
        prudence_domain_create_external("external", &ops, NULL),
        prudence_domain_create_set("set", &domain, 1),
        gp_phases_make("phases"),
    };

    for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++) {
        uint64_t before = others[i]->shared.sequence;

        others[i]->tried_on = 1;
        assert_int_equal(gp_try(others[i], gp_snapshot(others[i]), 0), GP_REFUSED);
        assert_true(others[i]->shared.sequence == before);
    }
    for (unsigned i = sizeof others / sizeof others[0]; i--;)
        assert_int_equal(prudence_domain_destroy(others[i]), 0);
}

#define ENTRY(name) cmocka_unit_test_setup_teardown(name, make_domain, destroy_domain)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENTRY(begins_and_ends),
        ENTRY(a_cookie_that_is_over_writes_nothing),
        ENTRY(ends_what_others_began),
        ENTRY(not_inside_a_section_of_this_thread),
        ENTRY(not_with_a_thread_that_does_not_fence),
        ENTRY(with_threads_that_fence_and_rest),
        ENTRY(not_while_a_reader_is_inside),
        ENTRY(only_the_last_cpu_to_try),
        ENTRY(qsbr_threads_offline),
        ENTRY(no_other_kind),
        ENTRY(is_bounded), /* last, because later domains reuse the slots' chunk */
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
