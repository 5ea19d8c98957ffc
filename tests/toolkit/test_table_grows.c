/* SPDX-License-Identifier: MIT */
/*
 * A thread's table of slots, which grows when the thread reads in the 1,025th domain, and later
 * again: slots are still found and given back, others' are not, and all tables of a thread are
 * freed with it, whether it reports its end or is found to be gone.
 */
#define _GNU_SOURCE

#include <prudence/epoch.h>

#include "gp/user/domain.h"
#include "gp/user/readers.h"
#include "gp/user/thread_memory.h"
#include "support/actor.h"
#include "support/gp_reader.h"
#include "support/reader_memory.h"
#include "support/suite.h"
#include "support/threads.h"

#define MANY 2100

static struct prudence_domain *many[MANY];
static const unsigned some[] = {0, 1023, 1024, 2047, 2048, MANY - 1};
static int32_t last_reader;

static void *reads_in_some(void *unused)
{
    struct reader_slot *slots[6];

    last_reader = gettid();
    for (unsigned i = 0; i < 6; i++) {
        prudence_domain_read_lock(many[some[i]]);
        slots[i] = readers_slot_if_any(many[some[i]]);
    }
    for (unsigned i = 0; i < 6; i++) {
        assert_ptr_equal(readers_slot_if_any(many[some[i]]), slots[i]);
        prudence_domain_read_unlock(many[some[i]]);
    }
    return NULL;
}

static void *has_a_record_too(void *unused)
{
    prudence_epoch_record(many[0]);
    return reads_in_some(NULL);
}

/* Returns the metadata after some threads have run, and are gone. */
static uint64_t after_threads(void *(*body)(void *))
{
    for (unsigned i = 0; i < 20; i++) {
        in_thread(body, NULL);
        while (os_thread_exists(last_reader))
            pause_ms(1);
    }
    thread_memory_reap();
    return metadata();
}

TEST(all_tables_of_a_thread_go_with_it)
{
    uint64_t before = after_threads(reads_in_some);

    assert_int_equal(after_threads(reads_in_some), before);
    before = after_threads(has_a_record_too);
    assert_int_equal(after_threads(has_a_record_too), before);
}

static int enters(void *domain)
{
    prudence_domain_read_lock(domain);
    return 0;
}

static int leaves(void *domain)
{
    prudence_domain_read_unlock(domain);
    return 0;
}

static void enter_and_leave(unsigned i)
{
    prudence_domain_read_lock(many[i]);
    prudence_domain_read_unlock(many[i]);
}

static void make(unsigned i)
{
    many[i] = prudence_domain_create("many", PRUDENCE_DOMAIN_MEMB, NULL);
}

static void *enters_some(void *unused)
{
    for (unsigned i = 0; i < 6; i++)
        enter_and_leave(some[i]);
    return unused;
}

/* Its slots go with two domains. One comes back to it, in another domain, and one to a thread that
 * stays. */
static void *outlives_domains(void *stays)
{
    enters_some(NULL);
    for (unsigned i = 1; i <= 2; i++)
        assert_int_equal(prudence_domain_destroy(many[some[i]]), 0);
    make(some[1]);
    make(some[2]);
    enter_and_leave(some[2]);
    assert_int_equal(does(stays, enters, many[some[1]]), 0);
    return NULL;
}

TEST_FIRST(a_thread_gives_its_slots_back_and_no_others)
{
    struct actor stays;

    actor_start(&stays);
    in_thread(enters_some, NULL);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(slots_in_use(many[some[i]]), 0);
    in_thread(outlives_domains, &stays);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(slots_in_use(many[some[i]]), i == 1);
    does(&stays, leaves, many[some[1]]);
    actor_end(&stays);
    assert_int_equal(slots_in_use(many[some[1]]), 0);
}

static int set_up(void **state)
{
    for (unsigned i = 0; i < MANY; i++)
        make(i);
    return many[MANY - 1] == NULL;
}

SUITE_BETWEEN(set_up, NULL)
