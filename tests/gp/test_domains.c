/* SPDX-License-Identifier: MIT */
/* Domains: independence, qsbr, manual, misuse, destruction. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <prudence/rcu.h>

#include "gp/user/domain.h"
#include "gp/user/readers.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"

static struct prudence_domain *make(enum prudence_domain_kind kind)
{
    struct prudence_domain *domain = prudence_domain_create("mine", kind, NULL);

    assert_non_null(domain);
    return domain;
}

static void a_reader_holds_up_its_own_domain_only(void **state)
{
    struct prudence_domain *a = make(PRUDENCE_DOMAIN_MEMB), *b = make(PRUDENCE_DOMAIN_MEMB);
    struct held_reader reader = {.domain = a};
    prudence_gp_t cookie;

    (void)state;
    held_reader_start(&reader);
    cookie = prudence_domain_start_poll(a);
    assert_false(prudence_domain_poll_state(a, cookie));
    assert_int_equal(prudence_domain_synchronize(b), 0);
    prudence_synchronize();
    assert_false(prudence_domain_poll_state(a, cookie));
    held_reader_end(&reader);
    assert_true(prudence_domain_poll_state(a, cookie));
    assert_int_equal(prudence_domain_synchronize(a), 0);
    assert_int_equal(prudence_domain_destroy(a), 0);
    assert_int_equal(prudence_domain_destroy(b), 0);
}

static void lock_held_is_told_apart(void **state)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_MEMB);

    (void)state;
    prudence_domain_read_lock(domain);
    assert_true(prudence_domain_read_lock_held(domain));
    assert_false(prudence_read_lock_held());
    prudence_domain_read_unlock(domain);
    assert_false(prudence_domain_read_lock_held(domain));
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* More domains than one of a thread's tables of slots holds; numbers are reused. */
static void thousands_of_domains_come_and_go(void **state)
{
    static struct prudence_domain *domains[2500];

    (void)state;
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 2500; i++) {
            domains[i] = make(PRUDENCE_DOMAIN_MEMB);
            assert_false(prudence_domain_read_lock_held(domains[i]));
            if (i % 50 == round) { /* a slot in a few of them only */
                prudence_domain_read_lock(domains[i]);
                prudence_domain_read_unlock(domains[i]);
            }
        }
        for (unsigned i = 0; i < 2500; i++)
            assert_int_equal(prudence_domain_destroy(domains[i]), 0);
    }
}

static void busy_domains_are_not_destroyed(void **state)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_MEMB);
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
    struct held_reader reader = {.domain = domain};
    struct prudence_cache *cache;

    (void)state;
    held_reader_start(&reader);
    assert_int_equal(prudence_domain_destroy(domain), EBUSY);
    held_reader_end(&reader);
    cache = prudence_cache_create("in the domain", 64, &attr);
    prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    assert_int_equal(prudence_domain_destroy(domain), EBUSY);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static void an_online_thread_makes_a_domain_busy(void **state)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_QSBR);

    (void)state;
    prudence_qsbr_online(domain);
    assert_int_equal(prudence_domain_destroy(domain), EBUSY);
    prudence_qsbr_offline(domain);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static void the_default_domain_and_null_are_not_destroyed(void **state)
{
    (void)state;
    assert_int_equal(prudence_domain_destroy(NULL), EINVAL);
    assert_int_equal(prudence_domain_destroy(prudence_default_domain()), EINVAL);
}

static void assert_refused(const char *name, int kind, const struct prudence_domain_attr *attr)
{
    errno = 0;
    assert_null(prudence_domain_create(name, (enum prudence_domain_kind)kind, attr));
    assert_int_equal(errno, EINVAL);
}

static void bad_names_kinds_and_attributes_are_refused(void **state)
{
    const struct prudence_domain_attr small = {.size = 3},
                                      flags = {.size = sizeof flags, .flags = 1},
                                      reserved = {.size = sizeof reserved, .reserved = 1},
                                      good = {.size = sizeof good};
    struct prudence_domain *domain;

    (void)state;
    assert_refused(NULL, PRUDENCE_DOMAIN_MEMB, NULL);
    assert_refused("", PRUDENCE_DOMAIN_MEMB, NULL);
    assert_refused("kind", PRUDENCE_DOMAIN_SET, NULL);
    assert_refused("kind", PRUDENCE_DOMAIN_EXTERNAL, NULL);
    assert_refused("kind", 99, NULL);
    assert_refused("kind", -1, NULL);
    assert_refused("small", PRUDENCE_DOMAIN_MEMB, &small);
    assert_refused("flags", PRUDENCE_DOMAIN_MEMB, &flags);
    assert_refused("reserved", PRUDENCE_DOMAIN_MEMB, &reserved);
    domain = prudence_domain_create("a name of much more than thirty-one bytes",
                                    PRUDENCE_DOMAIN_MEMB, &good);
    assert_string_equal(domain->name, "a name of much more than thirty");
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* ---------------------------------------------------------------------------------- qsbr */

static void online_is_a_section_until_quiescent(void **state)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_QSBR);
    prudence_gp_t cookie;

    (void)state;
    cookie = prudence_domain_start_poll(domain);
    assert_true(prudence_domain_poll_state(domain, cookie)); /* nobody is online */
    prudence_qsbr_online(domain);
    cookie = prudence_domain_start_poll(domain);
    assert_false(prudence_domain_poll_state(domain, cookie));
    prudence_qsbr_quiescent(domain);
    assert_true(prudence_domain_poll_state(domain, cookie));
    cookie = prudence_domain_start_poll(domain);
    assert_false(prudence_domain_poll_state(domain, cookie));
    prudence_qsbr_offline(domain);
    assert_true(prudence_domain_poll_state(domain, cookie));
    prudence_qsbr_quiescent(domain); /* offline: no effect */
    assert_false(prudence_domain_read_lock_held(domain));
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static void qsbr_sections_cost_and_change_nothing(void **state)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_QSBR);
    uint64_t word;

    (void)state;
    prudence_qsbr_online(domain);
    word = readers_slot_if_any(domain)->reader.word;
    prudence_domain_read_lock(domain);
    prudence_domain_read_lock(domain);
    prudence_domain_read_unlock(domain);
    assert_int_equal(readers_slot_if_any(domain)->reader.word, word);
    prudence_domain_read_unlock(domain);
    prudence_qsbr_offline(domain);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static void synchronize_while_online_in_the_same_domain(void **state)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_QSBR);

    (void)state;
    prudence_qsbr_online(domain);
    assert_int_equal(prudence_domain_synchronize(domain), 0);
    assert_true(prudence_domain_read_lock_held(domain)); /* online again */
    prudence_qsbr_offline(domain);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static void synchronize_elsewhere_while_online_is_refused(void **state)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_QSBR);
    struct prudence_domain *other = make(PRUDENCE_DOMAIN_QSBR);

    (void)state;
    prudence_qsbr_online(domain);
    assert_int_equal(prudence_domain_synchronize(other), EDEADLK);
    assert_int_equal(prudence_domain_synchronize(prudence_default_domain()), EDEADLK);
    prudence_qsbr_offline(domain);
    assert_int_equal(prudence_domain_synchronize(other), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
    assert_int_equal(prudence_domain_destroy(other), 0);
}

static int read_offline(void *domain)
{
    prudence_domain_read_lock(domain);
    return 0;
}

static void a_section_while_offline_dies_with_a_message(void **state)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_QSBR);
    struct child_result result;

    (void)state;
    child_run(read_offline, domain, &result);
    assert_true(child_died(&result));
    assert_true(child_said(&result, "offline"));
    assert_true(child_said(&result, "mine"));
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static int qsbr_calls_elsewhere(void *domain)
{
    prudence_qsbr_online(domain);
    prudence_qsbr_quiescent(domain);
    prudence_qsbr_offline(domain);
    prudence_manual_advance(domain);
    return prudence_domain_read_lock_held(domain);
}

static void qsbr_and_manual_calls_on_other_kinds_are_reported(void **state)
{
    struct child_result result;

    (void)state;
    child_run(qsbr_calls_elsewhere, prudence_default_domain(), &result);
    assert_true(child_exited_with(&result, 0));
    assert_int_equal(child_count(&result, "is not qsbr"), 3);
    assert_int_equal(child_count(&result, "is not manual"), 1);
}

/* -------------------------------------------------------------------------------- manual */

static void a_manual_grace_period_ends_when_told(void **state)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_MANUAL);
    prudence_gp_t first = prudence_domain_start_poll(domain), second;

    (void)state;
    for (unsigned i = 0; i < 100; i++)
        assert_false(prudence_domain_poll_state(domain, first));
    prudence_manual_advance(domain);
    assert_true(prudence_domain_poll_state(domain, first));
    second = prudence_domain_get_state(domain);
    assert_false(prudence_domain_poll_state(domain, second));
    prudence_manual_advance(domain);
    assert_true(prudence_domain_poll_state(domain, second));
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static void *advance_later(void *domain)
{
    pause_ms(30);
    prudence_manual_advance(domain);
    return NULL;
}

static void synchronize_on_a_manual_domain_waits_for_another_thread(void **state)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_MANUAL);
    unsigned long long began = now_ns();
    pthread_t thread;

    (void)state;
    pthread_create(&thread, NULL, advance_later, domain);
    assert_int_equal(prudence_domain_synchronize(domain), 0);
    assert_true(now_ns() - began >= 25000000);
    pthread_join(thread, NULL);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_holds_up_its_own_domain_only),
        cmocka_unit_test(lock_held_is_told_apart),
        cmocka_unit_test(thousands_of_domains_come_and_go),
        cmocka_unit_test(busy_domains_are_not_destroyed),
        cmocka_unit_test(an_online_thread_makes_a_domain_busy),
        cmocka_unit_test(the_default_domain_and_null_are_not_destroyed),
        cmocka_unit_test(bad_names_kinds_and_attributes_are_refused),
        cmocka_unit_test(online_is_a_section_until_quiescent),
        cmocka_unit_test(qsbr_sections_cost_and_change_nothing),
        cmocka_unit_test(synchronize_while_online_in_the_same_domain),
        cmocka_unit_test(synchronize_elsewhere_while_online_is_refused),
        cmocka_unit_test(a_section_while_offline_dies_with_a_message),
        cmocka_unit_test(qsbr_and_manual_calls_on_other_kinds_are_reported),
        cmocka_unit_test(a_manual_grace_period_ends_when_told),
        cmocka_unit_test(synchronize_on_a_manual_domain_waits_for_another_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
