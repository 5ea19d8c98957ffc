/* SPDX-License-Identifier: MIT */
/*
 * Threads that register where their exit hook cannot be armed (in a handler, with many
 * thread-specific keys) leave no slot, no table and no section behind, although nothing announces
 * their end. They get their hook at the next call that may allocate. A reused thread id is
 * recognized.
 */
#define _GNU_SOURCE

#include <pthread.h>
#include <unistd.h>

#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "gp/user/reader_exit.h"
#include "gp/user/readers.h"
#include "gp/user/slots.h"
#include "gp/user/thread_memory.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/reader_memory.h"
#include "support/suite.h"

#define LONG_NS UINT64_C(1000000000) /* held up for long enough to be checked */

static struct prudence_domain *domain;

static int set_up(void **state)
{
    reader_keys_without_memory = 0; /* as if all keys that need no memory were in use */
    domain = prudence_domain_create("unnoticed", PRUDENCE_DOMAIN_MEMB, NULL);
    return domain == NULL;
}

static int tear_down(void **state)
{
    return prudence_domain_destroy(domain);
}

static int32_t last_reader; /* id of the thread; 0: none since the last run */

static void run(void *(*body)(void *), void *argument)
{
    pthread_t thread;

    last_reader = 0;
    assert_int_equal(pthread_create(&thread, NULL, body, argument), 0);
    pthread_join(thread, NULL);
    while (last_reader && os_thread_exists(last_reader)) /* the thread ends a little later */
        pause_ms(1);
}

static void *only_read(void *unused)
{
    last_reader = gettid();
    prudence_read_lock();
    prudence_domain_read_lock(domain);
    prudence_domain_read_unlock(domain);
    prudence_read_unlock();
    assert_true(reader_unwatched);
    return NULL;
}

TEST(they_leave_nothing_behind, set_up, tear_down)
{
    struct prudence_domain_stats stats;
    uint64_t before;

    run(only_read, NULL);
    assert_int_equal(slots_in_use(domain), 1); /* no driver has checked */
    prudence_domain_stats(domain, &stats);
    assert_int_equal(stats.readers, 0);
    assert_int_equal(slots_in_use(domain), 0);
    for (unsigned i = 0; i < 300; i++)
        run(only_read, NULL);
    assert_true(slots_in_use(domain) <= SLOTS_IN_CHUNK);
    thread_memory_reap();
    before = metadata();
    for (unsigned i = 0; i < 300; i++)
        run(only_read, NULL);
    thread_memory_reap();
    assert_int_equal(metadata(), before);
    assert_null(domain->chunks->next);
}

static void *end_inside(void *unused)
{
    prudence_domain_read_lock(domain);
    return NULL;
}

static int end_a_section(void)
{
    prudence_gp_t cookie;
    pthread_t thread;

    if (pthread_create(&thread, NULL, end_inside, NULL))
        return 1;
    pthread_join(thread, NULL);
    cookie = prudence_domain_start_poll(domain);
    while (!prudence_domain_poll_state(domain, cookie)) /* until it has been blocking for some ms */
        pause_ms(1);
    if (pthread_create(&thread, NULL, end_inside, NULL))
        return 1;
    pthread_join(thread, NULL);
    while (prudence_domain_destroy(
        domain)) /* pthread_join is a little earlier than the thread's end */
        pause_ms(1);
    return 42;
}

TEST(their_sections_end, set_up, tear_down)
{
    expect_exit(42, end_a_section(), "");
    assert_int_equal(said("exits inside a read-side critical section of domain 'unnoticed'"), 2);
}

static void *read_then_wait(void *slot)
{
    prudence_domain_read_lock(domain);
    *(struct reader_slot **)slot = readers_slot_if_any(domain);
    prudence_domain_read_unlock(domain);
    assert_true(reader_unwatched);
    prudence_domain_synchronize(domain);
    assert_false(reader_unwatched);
    return NULL;
}

TEST(a_call_that_may_allocate_arms_the_hook, set_up, tear_down)
{
    struct reader_slot *slot = NULL;

    run(read_then_wait, &slot);
    assert_int_equal(slot->thread, 0); /* no driver had to check */
}

static struct reader_slot *slot_of_thread(int thread)
{
    struct reader_chunk *chunk;
    struct reader_slot *slot;

    for_each_slot(chunk, slot, domain) if (slot->thread == thread) return slot;
    return NULL;
}

static int take_the_id(void *unused)
{
    static struct held_reader reader; /* its thread stays inside until the process ends */
    uint64_t now = os_clock_ns();
    struct reader_slot *slot;

    reader.domain = domain;
    held_reader_start(&reader);
    slot = slot_of_thread(reader.tid);
    if (!slot || slots_reap_one(domain, slot, now, LONG_NS))
        return 1;
    if (slots_reap_one(domain, slot, now + LONG_NS, LONG_NS) ||
        slots_reap(domain, true, READERS_ALL) != 1)
        return 2;         /* the thread is alive */
    slot->claimed_at = 1; /* the boot time of the machine */
    if (!slots_reap_one(domain, slot, now + 2 * LONG_NS, LONG_NS) || slot->thread)
        return 3;
    return 42;
}

/* The slot was claimed before the current thread of that id started, so its owner is gone. */
TEST(a_new_thread_of_the_same_id_is_not_the_old_one, set_up, tear_down)
{
    assert_child(take_the_id, NULL);
}

static int table_in_a_child(void *unused)
{
    prudence_domain_read_lock(domain);
    thread_memory_reap(); /* our own table stays */
    prudence_domain_read_unlock(domain);
    return readers_slot_if_any(domain) ? 42 : 1;
}

static void *fork_unwatched(void *unused)
{
    prudence_domain_read_lock(domain);
    prudence_domain_read_unlock(domain);
    assert_child(table_in_a_child, NULL);
    return NULL;
}

TEST(a_forked_child_keeps_its_own, set_up, tear_down)
{
    run(fork_unwatched, NULL);
}

SUITE()
