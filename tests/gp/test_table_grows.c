/* SPDX-License-Identifier: MIT */
/*
 * A thread's table of slots, which grows when the thread reads in the 1,025th domain, and later
 * again: slots are still found, and all tables of a thread are freed with it, whether it tells of
 * its end or is found to be gone.
 */
#define _GNU_SOURCE

#include <prudence/epoch.h>

#include "gp/user/domain.h"
#include "gp/user/readers.h"
#include "gp/user/thread_memory.h"
#include "support/gp_reader.h"
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

static uint64_t metadata(void)
{
    struct os_pages_stats stats;

    os_pages_stats(&stats);
    return stats.metadata;
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

static int set_up(void **state)
{
    for (unsigned i = 0; i < MANY; i++)
        many[i] = prudence_domain_create("many", PRUDENCE_DOMAIN_MEMB, NULL);
    return many[MANY - 1] == NULL;
}

SUITE_BETWEEN(set_up, NULL)
