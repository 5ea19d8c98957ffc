/* SPDX-License-Identifier: MIT */
/*
 * Threads as readers: an exit inside a section, slots that are freed, a thousand threads.
 *
 * ctest: not-with thread (ThreadSanitizer forgets a thread before its last destructors, handlers)
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include "support/suite.h"

#include <prudence/prudence.h>
#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/threads.h"
#include "support/stats.h"

static uint64_t readers_now(void)
{
    return stats_now().readers;
}

static void *exit_inside(void *domain)
{
    if (domain)
        prudence_domain_read_lock(domain);
    else
        prudence_read_lock();
    return NULL;
}

static int exits_inside(void *domain)
{
    prudence_gp_t cookie;
    pthread_t thread;
    uint64_t before = readers_now();

    pthread_create(&thread, NULL, exit_inside, domain);
    pthread_join(thread, NULL);
    cookie = prudence_gp_start_poll();
    while (!prudence_gp_poll_state(cookie)) /* the thread ends a little after the join */
        pause_ms(1);
    if (readers_now() != before)
        return 1;
    if (domain && prudence_domain_synchronize(domain))
        return 2;
    return domain && prudence_domain_destroy(domain) ? 3 : 42;
}

TEST(exit_inside_a_section_is_reported_and_blocks_nobody)
{
    expect_exit(42, exits_inside(NULL), "exits inside a read-side critical section", "'default'");
    expect_exit(42, exits_inside(prudence_domain_create("mine", PRUDENCE_DOMAIN_MEMB, NULL)),
                "'mine'");
}

static void *read_after(void *held)
{
    prudence_read_lock();
    prudence_read_unlock();
    *(bool *)held = prudence_read_lock_held();
    return NULL;
}

static int read_with_the_slot_of_one_that_exited_inside(void *unused)
{
    bool held = true;

    in_thread(exit_inside, NULL);
    in_thread(read_after, &held);
    return held ? 1 : 42;
}

TEST(the_next_owner_of_the_slot_starts_outside)
{
    assert_child(read_with_the_slot_of_one_that_exited_inside, NULL);
}

static pthread_key_t last_key;

/* Enters in the last round of destructors, after the library's own destructor. */
static void enter_in_the_last_round(void *value)
{
    uintptr_t rounds = (uintptr_t)value;

    if (rounds > 1)
        pthread_setspecific(last_key, (void *)(rounds - 1));
    else
        prudence_read_lock();
}

static void *exit_inside_at_the_very_end(void *unused)
{
    prudence_read_lock();
    prudence_read_unlock();
    pthread_setspecific(last_key, (void *)(uintptr_t)4);
    return unused;
}

static int synchronize_after_it(void *unused)
{
    pthread_key_create(&last_key, enter_in_the_last_round);
    in_thread(exit_inside_at_the_very_end, NULL);
    alarm(patience(30));
    prudence_synchronize();
    return 42;
}

TEST(exit_inside_at_the_very_end_blocks_nobody)
{
    assert_child(synchronize_after_it, NULL);
}

static void *exit_online(void *domain)
{
    prudence_qsbr_online(domain);
    return NULL;
}

static int exits_online(void *domain)
{
    in_thread(exit_online, domain);
    return prudence_domain_synchronize(domain) == 0 && prudence_domain_destroy(domain) == 0 ? 42
                                                                                            : 1;
}

TEST(exit_online_is_going_offline)
{
    expect_exit(42, exits_online(prudence_domain_create("qsbr", PRUDENCE_DOMAIN_QSBR, NULL)), "");
    assert_string_equal(last_child.output, "");
}

static void *read_once(void *unused)
{
    prudence_read_lock();
    prudence_read_unlock();
    return unused;
}

static unsigned chunks_now(void)
{
    struct reader_chunk *chunk;
    unsigned chunks = 0;

    for (chunk = prudence_default.chunks; chunk; chunk = chunk->next)
        chunks++;
    return chunks;
}

TEST(slots_are_used_again)
{
    uint64_t before = readers_now();
    unsigned chunks;

    read_once(NULL);
    chunks = chunks_now();
    for (unsigned i = 0; i < 2000; i++) {
        in_thread(read_once, NULL);
    }
    assert_in_range(readers_now(), before, before + 1);
    assert_int_equal(chunks_now(), chunks);
}

#define MANY 1000

/* A scan costs as much as its slots; a bound far above the usual 2 to 10 us catches a lock, a
 * system call or a quadratic walk. */
TEST(a_thousand_readers_are_scanned_fast)
{
    static struct held_reader readers[MANY];
    unsigned long long began, spent, best = ~0ull;
    uint64_t before;

    while ((before = readers_now()) > 1) /* a thread ends a little after the join */
        pause_ms(1);
    for (unsigned i = 0; i < MANY; i++)
        held_reader_start(&readers[i]);
    assert_int_equal(readers_now(), before + MANY);
    for (unsigned i = 0; i < 100; i++) {
        prudence_gp_t cookie = prudence_gp_start_poll();

        began = now_ns();
        assert_false(prudence_gp_poll_state(cookie)); /* one scan, with all of them inside */
        spent = now_ns() - began;
        best = spent < best ? spent : best;
    }
    print_message("scan of %u registered readers, all inside: %.1f us\n", MANY,
                  (double)best / 1000);
    for (unsigned i = 0; i < MANY; i++)
        sem_post(&readers[i].leave);
    for (unsigned i = 0; i < MANY; i++)
        pthread_join(readers[i].thread, NULL);
    assert_int_equal(readers_now(), before);
    assert_true(best < 2000000);
    best = ~0ull;
    for (unsigned i = 0; i < 100; i++) {
        began = now_ns();
        prudence_synchronize();
        spent = now_ns() - began;
        best = spent < best ? spent : best;
    }
    print_message("synchronize after they ended: %.1f us\n", (double)best / 1000);
}

static pthread_key_t key;
static unsigned reads_in_destructors;

/* Runs in every round of destructors; each read registers the thread anew. */
static void read_in_destructor(void *value)
{
    uintptr_t rounds = (uintptr_t)value;
    void *object = prudence_malloc(100);

    prudence_read_lock();
    __atomic_fetch_add(&reads_in_destructors, 1, __ATOMIC_RELAXED);
    prudence_read_unlock();
    prudence_free_deferred(object);
    if (rounds > 1)
        pthread_setspecific(key, (void *)(rounds - 1));
}

static void *use_key(void *rounds)
{
    read_once(NULL);
    pthread_setspecific(key, rounds);
    return NULL;
}

/* Runs more threads than two chunks have slots: lost slots would need a third. */
static void read_in_key_destructors(uintptr_t rounds)
{
    unsigned threads = 3 * SLOTS_IN_CHUNK, chunks;

    read_once(NULL);
    chunks = chunks_now();
    __atomic_store_n(&reads_in_destructors, 0, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < threads; i++) {
        in_thread(use_key, (void *)rounds);
    }
    assert_int_equal(__atomic_load_n(&reads_in_destructors, __ATOMIC_RELAXED), threads * rounds);
    prudence_synchronize();
    assert_int_equal(chunks_now(), chunks);
}

TEST(key_destructors_may_read)
{
    assert_int_equal(pthread_key_create(&key, read_in_destructor), 0);
    read_in_key_destructors(1);
    read_in_key_destructors(2);
    read_in_key_destructors(3);
}

/* No slot is lost in the system's last round (PTHREAD_DESTRUCTOR_ITERATIONS). */
TEST(key_destructors_may_read_in_the_last_round)
{
    read_in_key_destructors(4);
}

SUITE()
