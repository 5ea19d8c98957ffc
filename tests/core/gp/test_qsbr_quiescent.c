/* SPDX-License-Identifier: MIT */
/*
 * A quiescent state is announced only when a grace period may wait for it, whatever domain the
 * thread was in before. The test reads the words from the slots themselves.
 */
#define _GNU_SOURCE /* gettid */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include "support/suite.h"

#include <semaphore.h>
#include <unistd.h>

#include "gp/user/readers.h"
#include "gp/user/stall.h"
#include "support/gp_child.h"
#include "support/threads.h"
#include "gp/user/domain.h"

static struct prudence_domain *make(const char *name)
{
    struct prudence_domain *domain = prudence_domain_create(name, PRUDENCE_DOMAIN_QSBR, NULL);

    assert_non_null(domain);
    return domain;
}

static uint64_t word_in(const struct prudence_domain *domain)
{
    return readers_slot_if_any(domain)->reader.word;
}

static uint64_t fences_in(const struct prudence_domain *domain)
{
    return readers_slot_if_any(domain)->reader.entries;
}

TEST(it_costs_a_fence_once_a_grace_period)
{
    struct prudence_domain *domain = make("events");
    prudence_gp_t cookie;
    uint64_t word, fences;

    prudence_qsbr_online(domain);
    word = word_in(domain);
    fences = fences_in(domain);
    for (unsigned i = 0; i < 10; i++)
        prudence_qsbr_quiescent(domain);
    assert_int_equal(fences_in(domain), fences);
    assert_int_equal(word_in(domain), word);
    cookie = prudence_domain_start_poll(domain);
    for (unsigned i = 0; i < 10; i++)
        prudence_qsbr_quiescent(domain);
    assert_int_equal(fences_in(domain), fences + 1);
    assert_int_equal(word_in(domain), cookie.private_value | 1);
    assert_true(prudence_domain_poll_state(domain, cookie));
    prudence_qsbr_offline(domain);
    prudence_qsbr_quiescent(domain); /* this call does not go online */
    assert_int_equal(word_in(domain), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static void assert_ends_by_a_quiescent_state(struct prudence_domain *domain)
{
    prudence_gp_t cookie = prudence_domain_start_poll(domain);

    assert_false(prudence_domain_poll_state(domain, cookie));
    prudence_qsbr_quiescent(domain);
    assert_true(prudence_domain_poll_state(domain, cookie));
}

TEST(of_two_domains_in_turn)
{
    struct prudence_domain *one = make("one"), *two = make("two");

    prudence_qsbr_online(one);
    prudence_qsbr_online(two);
    for (unsigned i = 0; i < 3; i++) {
        assert_ends_by_a_quiescent_state(one);
        assert_ends_by_a_quiescent_state(two);
    }
    prudence_qsbr_offline(one);
    assert_ends_by_a_quiescent_state(two);
    prudence_qsbr_offline(two);
    assert_int_equal(prudence_domain_destroy(one), 0);
    assert_int_equal(prudence_domain_destroy(two), 0);
}

/* New domains reuse the places and slots of destroyed ones. */
TEST(of_a_domain_where_another_one_was)
{
    struct prudence_domain *before = NULL, *domain;
    unsigned same = 0;

    for (unsigned i = 0; i < 50; i++) {
        domain = make("again");
        same += domain == before;
        prudence_qsbr_quiescent(domain); /* offline here, whatever its state in the other */
        assert_null(readers_slot_if_any(domain));
        prudence_qsbr_online(domain);
        assert_ends_by_a_quiescent_state(domain);
        prudence_qsbr_offline(domain);
        assert_int_equal(prudence_domain_destroy(domain), 0);
        before = domain;
    }
    assert_true(same || gp_check); /* which keeps destroyed domains apart */
}

/* Fills the chunk, so that the next thread needs another one. Marks free slots as this thread's. */
static void fill_the_chunk_of(struct prudence_domain *domain, bool fill)
{
    struct reader_chunk *chunk = domain->chunks;

    while (chunk->next) /* the first chunk is last in the list */
        chunk = chunk->next;
    for (unsigned i = 1; i < SLOTS_IN_CHUNK; i++)
        store_release(&chunk->slots[i].thread, fill ? gettid() : 0);
}

struct newcomer {
    struct prudence_domain *domain;
    sem_t is_online, be_quiescent, is_quiescent, end;
};

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore))
        ;
}

static void *comes_later(void *argument)
{
    struct newcomer *newcomer = argument;

    prudence_qsbr_online(newcomer->domain);
    sem_post(&newcomer->is_online);
    wait_for(&newcomer->be_quiescent);
    prudence_qsbr_quiescent(newcomer->domain);
    sem_post(&newcomer->is_quiescent);
    wait_for(&newcomer->end);
    prudence_qsbr_offline(newcomer->domain);
    return NULL;
}

/* This thread was in a domain that is gone. Its slot there now belongs to another thread, in the
 * domain that this one is online in. The two threads' announcements stay separate. */
TEST(of_a_thread_whose_last_slot_is_now_anothers)
{
    struct prudence_domain *stays = make("stays"), *goes = make("goes");
    struct newcomer newcomer = {.domain = stays};
    prudence_gp_t cookie;
    pthread_t thread;

    prudence_qsbr_online(stays);
    prudence_qsbr_online(goes);
    prudence_qsbr_offline(goes);
    fill_the_chunk_of(stays, true);
    assert_int_equal(prudence_domain_destroy(goes), 0);
    sem_init(&newcomer.is_online, 0, 0);
    sem_init(&newcomer.be_quiescent, 0, 0);
    sem_init(&newcomer.is_quiescent, 0, 0);
    sem_init(&newcomer.end, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, comes_later, &newcomer), 0);
    wait_for(&newcomer.is_online);
    if (!gp_check) /* otherwise the thread remembers no slot */
        assert_ptr_equal(prudence_qsbr_self, &stays->chunks->slots[0].reader);
    cookie = prudence_domain_start_poll(stays);
    sem_post(&newcomer.be_quiescent);
    wait_for(&newcomer.is_quiescent);
    assert_false(prudence_domain_poll_state(stays, cookie));
    prudence_qsbr_quiescent(stays);
    assert_true(prudence_domain_poll_state(stays, cookie));
    sem_post(&newcomer.end);
    pthread_join(thread, NULL);
    prudence_qsbr_offline(stays);
    fill_the_chunk_of(stays, false);
    assert_int_equal(prudence_domain_destroy(stays), 0);
}

/* A note about a slot's last thread does not count against the next thread, whose section has
 * the same number in another domain. */
TEST(a_new_thread_is_not_blamed_for_the_last_one)
{
    uint64_t timeout = gp_stall_timeout;

    gp_stall_timeout = UINT64_C(3600) * 1000000000;
    for (unsigned i = 0; i < 2; i++) {
        struct prudence_domain *domain = make("blamed");
        struct reader_slot *slot;
        prudence_gp_t cookie;

        prudence_qsbr_online(domain);
        slot = readers_slot_if_any(domain);
        cookie = prudence_domain_start_poll(domain);
        assert_false(prudence_domain_poll_state(domain, cookie));
        assert_int_equal(domain->stalls, 0);
        slot->stall_since -= 2 * gp_stall_timeout; /* it has held up grace periods for long */
        prudence_qsbr_offline(domain);
        assert_int_equal(prudence_domain_destroy(domain), 0);
    }
    gp_stall_timeout = timeout;
}

static pthread_key_t key;

static void quiescent_in_a_destructor(void *domain)
{
    prudence_qsbr_quiescent(domain);
    prudence_qsbr_online(domain);
    prudence_qsbr_quiescent(domain);
    prudence_qsbr_offline(domain);
}

static void *reads(void *domain)
{
    pthread_setspecific(key, domain);
    prudence_qsbr_online(domain);
    prudence_qsbr_quiescent(domain);
    prudence_qsbr_offline(domain);
    return NULL;
}

/* Runs before and after the thread's slots are freed. */
TEST(by_a_thread_that_ends)
{
    struct prudence_domain *domain = make("ending");

    prudence_qsbr_online(domain);
    prudence_qsbr_offline(domain); /* creates our own key before */
    pthread_key_create(&key, quiescent_in_a_destructor);
    for (unsigned i = 0; i < 3; i++) {
        in_thread(reads, domain);
        assert_true(prudence_domain_poll_state(domain, prudence_domain_start_poll(domain)));
    }
    pthread_key_delete(key);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static int quiescent_nowhere(void)
{
    struct prudence_domain *volatile nowhere = NULL; /* hides the NULL from the compiler */

    gp_check = true;
    prudence_qsbr_quiescent(nowhere);
    return 0;
}

static int quiescent_after_destroy(void)
{
    struct prudence_domain *domain;

    gp_check = true;
    domain = make("gone");
    prudence_qsbr_online(domain);
    prudence_qsbr_quiescent(domain);
    prudence_qsbr_offline(domain);
    prudence_domain_destroy(domain);
    prudence_qsbr_quiescent(domain);
    return 0;
}

/* First, because this thread was in none yet. */
TEST_FIRST(of_no_domain_it_says_so_when_asked_to_check)
{
    expect_death(quiescent_nowhere(), "prudence_qsbr_quiescent");
    expect_death(quiescent_after_destroy(), "prudence_qsbr_quiescent");
}

/* Ignores the option: a membarrier would cost more than all the fences that it saves. */
TEST(its_grace_periods_need_no_membarrier)
{
    struct prudence_domain *domain = make("quiet");

    assert_int_equal(prudence_option_set("reader_mode", "free"), 0);
    prudence_qsbr_online(domain);
    for (unsigned i = 0; i < 100; i++)
        assert_ends_by_a_quiescent_state(domain);
    assert_int_equal(domain->membarriers, 0);
    assert_int_equal(domain->mode_switches, 0);
    assert_int_equal(prudence_option_set("reader_mode", "auto"), 0);
    prudence_qsbr_offline(domain);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

SUITE()
