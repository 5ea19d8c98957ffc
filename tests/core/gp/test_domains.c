/* SPDX-License-Identifier: MIT */
/* Domains: independence, qsbr, manual, misuse, destruction. */
#define _GNU_SOURCE

#include <errno.h>
#include <sys/resource.h>

#include <prudence/rcu.h>

#include "gp/user/domain.h"
#include "gp/user/readers.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/suite.h"

static struct prudence_domain *make(enum prudence_domain_kind kind)
{
    struct prudence_domain *domain = prudence_domain_create("mine", kind, NULL);

    assert_non_null(domain);
    return domain;
}

TEST(a_reader_holds_up_its_own_domain_only)
{
    struct prudence_domain *a = make(PRUDENCE_DOMAIN_MEMB), *b = make(PRUDENCE_DOMAIN_MEMB);
    struct held_reader reader = {.domain = a};
    prudence_gp_t cookie;

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

TEST(lock_held_is_told_apart)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_MEMB);

    prudence_domain_read_lock(domain);
    assert_true(prudence_domain_read_lock_held(domain));
    assert_false(prudence_read_lock_held());
    prudence_domain_read_unlock(domain);
    assert_false(prudence_domain_read_lock_held(domain));
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static unsigned count_from(uint64_t after)
{
    struct prudence_domain *domain;
    unsigned count = 0;

    while (domains_visit(&domain, 1, &after, false)) {
        gp_domain_leave(domain);
        count++;
    }
    return count;
}

/* Also where it was when the domain that it had found last was destroyed. */
TEST(a_walk_finds_each_domain_once)
{
    struct prudence_domain *first = make(PRUDENCE_DOMAIN_MEMB),
                           *second = make(PRUDENCE_DOMAIN_MEMB),
                           *third = make(PRUDENCE_DOMAIN_MEMB), *found;
    unsigned all = count_from(0);
    uint64_t after = first->generation;

    assert_int_equal(count_from(0), all);
    assert_int_equal(count_from(first->generation), 2);
    assert_int_equal(domains_visit(&found, 1, &after, false), 1);
    assert_ptr_equal(found, second);
    gp_domain_leave(second);
    assert_int_equal(prudence_domain_destroy(second), 0);
    assert_int_equal(count_from(after), 1);
    assert_int_equal(count_from(0), all - 1);
    assert_int_equal(prudence_domain_destroy(first), 0);
    assert_int_equal(prudence_domain_destroy(third), 0);
}

/* More domains than one of a thread's tables of slots holds; numbers are reused. */
TEST(thousands_of_domains_come_and_go)
{
    static struct prudence_domain *domains[2500];

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

TEST(busy_domains_are_not_destroyed)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_MEMB);
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
    struct held_reader reader = {.domain = domain};
    struct prudence_cache *cache;

    held_reader_start(&reader);
    assert_int_equal(prudence_domain_destroy(domain), EBUSY);
    held_reader_end(&reader);
    cache = prudence_cache_create("in the domain", 64, &attr);
    prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    assert_int_equal(prudence_domain_destroy(domain), EBUSY);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static void read_once(struct prudence_domain *domain)
{
    prudence_domain_read_lock(domain);
    prudence_domain_read_unlock(domain);
}

/* The readers of the second domain are in a variable of the library, whose pages stay. First,
 * because later on there are free readers of other domains. */
TEST_FIRST(domains_end_whose_readers_got_no_memory)
{
    struct prudence_domain *first = make(PRUDENCE_DOMAIN_MEMB),
                           *second = make(PRUDENCE_DOMAIN_MEMB);
    struct rlimit before, none;

    read_once(first);
    getrlimit(RLIMIT_AS, &before);
    none = (struct rlimit){0, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
    read_once(second);
    setrlimit(RLIMIT_AS, &before);
    assert_non_null(second->chunks);
    assert_int_equal(prudence_domain_destroy(first), 0);
    assert_int_equal(prudence_domain_destroy(second), 0);
}

TEST(an_online_thread_makes_a_domain_busy)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_QSBR);

    prudence_qsbr_online(domain);
    assert_int_equal(prudence_domain_destroy(domain), EBUSY);
    prudence_qsbr_offline(domain);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(the_default_domain_and_null_are_not_destroyed)
{
    assert_int_equal(prudence_domain_destroy(NULL), EINVAL);
    assert_int_equal(prudence_domain_destroy(prudence_default_domain()), EINVAL);
}

/* The core alone makes no domains of these kinds. */
TEST(sets_and_external_domains_are_made_otherwise)
{
    static const enum prudence_domain_kind kinds[] = {PRUDENCE_DOMAIN_SET,
                                                      PRUDENCE_DOMAIN_EXTERNAL};

    for (unsigned i = 0; i < 2; i++) {
        errno = 0;
        assert_null(prudence_domain_create("kind", kinds[i], NULL));
        assert_int_equal(errno, EINVAL);
    }
}

/* ---------------------------------------------------------------------------------- qsbr */

TEST(online_is_a_section_until_quiescent)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_QSBR);
    prudence_gp_t cookie;

    cookie = prudence_domain_start_poll(domain);
    assert_true(prudence_domain_poll_state(domain, cookie)); /* no thread is online */
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

TEST(qsbr_sections_cost_and_change_nothing)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_QSBR);
    uint64_t word;

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

TEST(synchronize_while_online_in_the_same_domain)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_QSBR);

    prudence_qsbr_online(domain);
    assert_int_equal(prudence_domain_synchronize(domain), 0);
    assert_true(prudence_domain_read_lock_held(domain)); /* online again */
    prudence_qsbr_offline(domain);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(synchronize_elsewhere_while_online_is_refused)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_QSBR);
    struct prudence_domain *other = make(PRUDENCE_DOMAIN_QSBR);

    prudence_qsbr_online(domain);
    assert_int_equal(prudence_domain_synchronize(other), EDEADLK);
    assert_int_equal(prudence_domain_synchronize(prudence_default_domain()), EDEADLK);
    prudence_qsbr_offline(domain);
    assert_int_equal(prudence_domain_synchronize(other), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
    assert_int_equal(prudence_domain_destroy(other), 0);
}

TEST(a_section_while_offline_dies_with_a_message)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_QSBR);

    expect_death(prudence_domain_read_lock(domain), "offline", "mine");
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

TEST(qsbr_and_manual_calls_on_other_kinds_are_reported)
{
    expect_exit(0, qsbr_calls_elsewhere(prudence_default_domain()), "");
    assert_int_equal(said("is not qsbr"), 3);
    assert_int_equal(said("is not manual"), 1);
}

/* -------------------------------------------------------------------------------- manual */

TEST(a_manual_grace_period_ends_when_told)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_MANUAL);
    prudence_gp_t first = prudence_domain_start_poll(domain), second;

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

TEST(synchronize_on_a_manual_domain_waits_for_another_thread)
{
    struct prudence_domain *domain = make(PRUDENCE_DOMAIN_MANUAL);
    unsigned long long began = now_ns();
    pthread_t thread;

    pthread_create(&thread, NULL, advance_later, domain);
    assert_int_equal(prudence_domain_synchronize(domain), 0);
    assert_true(now_ns() - began >= 25000000);
    pthread_join(thread, NULL);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

SUITE()
