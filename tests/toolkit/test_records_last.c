/* SPDX-License-Identifier: MIT */
/*
 * An epoch's record stays with its thread until that is gone. A program may use the record in a
 * destructor that runs after the library's, in any round. No other thread is given it in that time,
 * and all records are used again later.
 *
 * ctest: not-with thread (ThreadSanitizer forgets a thread before its last destructors)
 */
#define _GNU_SOURCE

#include <limits.h>
#include <sys/syscall.h>

#include <prudence/epoch.h>
#include <prudence/hazard.h>

#include "gp/user/domain.h"
#include "gp/user/slots.h"
#include "support/gp_child.h"
#include "support/suite.h"
#include "support/threads.h"

static pthread_key_t key; /* made after the library's */
static struct prudence_domain *domain;
static unsigned last_round, wrong;
static __thread unsigned rounds;
static __thread struct prudence_reader *record;

#define CHECK(truth) ((truth) ? (void)0 : (void)(wrong = __LINE__))

static void *takes_a_record(void *other)
{
    CHECK(prudence_epoch_record(domain) != other);
    CHECK(!prudence_epoch_is_pinned(prudence_epoch_record(domain)));
    return NULL;
}

static void uses_the_record(void)
{
    prudence_gp_t cookie;

    CHECK(prudence_epoch_record(domain) == record);
    prudence_epoch_pin(record);
    cookie = prudence_domain_start_poll(domain);
    in_thread(takes_a_record, record);
    if (domain->kind == PRUDENCE_DOMAIN_MEMB)
        CHECK(!prudence_domain_poll_state(domain, cookie));
    CHECK(prudence_epoch_is_pinned(record));
    prudence_epoch_unpin(record);
}

static void in_destructor(void *unused)
{
    in_thread(takes_a_record, record);
    if (++rounds < last_round)
        pthread_setspecific(key, &key);
    else
        uses_the_record();
}

static void *has_a_record(void *unused)
{
    record = prudence_epoch_record(domain);
    pthread_setspecific(key, &key);
    return NULL;
}

static void expect_in_each_round(void)
{
    for (last_round = 1; last_round <= PTHREAD_DESTRUCTOR_ITERATIONS; last_round++) {
        in_thread(has_a_record, NULL);
        if (wrong)
            fail_msg("line %u, in round %u of destructors", wrong, last_round);
    }
}

TEST(records_last)
{
    static const enum prudence_domain_kind kinds[] = {PRUDENCE_DOMAIN_MEMB, PRUDENCE_DOMAIN_MANUAL};

    domain = prudence_default_domain();
    expect_in_each_round();
    for (unsigned i = 0; i < 2; i++) {
        domain = prudence_domain_create("records", kinds[i], NULL);
        expect_in_each_round();
        assert_int_equal(prudence_domain_destroy(domain), 0);
    }
}

/* ------------------------------------------------------------------------------- used again */

static void *only_has_a_record(void *unused)
{
    prudence_epoch_record(domain);
    return NULL;
}

TEST(records_of_threads_that_are_gone_are_used_again)
{
    domain = prudence_domain_create("records", PRUDENCE_DOMAIN_MEMB, NULL);
    for (unsigned i = 0; i < 10 * SLOTS_IN_CHUNK; i++)
        in_thread(only_has_a_record, NULL);
    assert_null(domain->chunks->next);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* ---------------------------------------------------------------------------------- sandbox */

/* No thread is ever found to be gone there, so what it had is given on in its last round. */
static int in_a_sandbox(void *unused)
{
    if (prudence_option_set("sandbox", "1"))
        return 1;
    domain = prudence_domain_create("records", PRUDENCE_DOMAIN_MEMB, NULL);
    for (unsigned i = 0; i < 2 * SLOTS_IN_CHUNK; i++)
        in_thread(only_has_a_record, NULL);
    return domain->chunks->next ? 2 : 42;
}

TEST_FIRST(in_a_sandbox_they_last_until_the_last_round)
{
    assert_child(in_a_sandbox, NULL);
}

static unsigned asked;

/* In the place of the C library's. */
pid_t getpid(void)
{
    asked++;
    return (pid_t)syscall(SYS_getpid);
}

static void *ends_online(void *unused)
{
    prudence_qsbr_online(domain);
    return unused;
}

static void *ends_with_a_name(void *object)
{
    prudence_hazard_set(prudence_hazard_acquire(), object);
    return NULL;
}

/* The waits would never end. A filter may kill a process that asks which threads exist. */
static int waits_in_a_sandbox(void *unused)
{
    struct prudence_cache_attr attr = {.size = sizeof attr};
    struct prudence_cache *cache;
    void *object;

    if (prudence_option_set("sandbox", "1"))
        return 1;
    domain = prudence_domain_create("online", PRUDENCE_DOMAIN_QSBR, NULL);
    in_thread(ends_online, NULL);
    if (prudence_domain_synchronize(domain))
        return 2;
    domain = prudence_domain_create("named", PRUDENCE_DOMAIN_HAZARD, NULL);
    attr.domain = domain;
    cache = prudence_cache_create("named", 64, &attr);
    object = prudence_cache_alloc(cache);
    in_thread(ends_with_a_name, object);
    prudence_cache_free_deferred(cache, object);
    if (prudence_cache_destroy(cache))
        return 3;
    asked = 0;
    return os_thread_exists(os_thread_id()) && !asked ? 42 : 4;
}

TEST_FIRST(in_a_sandbox_no_thread_that_has_ended_is_waited_for)
{
    assert_child(waits_in_a_sandbox, NULL);
}

SUITE(pthread_key_create(&key, in_destructor))
