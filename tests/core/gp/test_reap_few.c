/* SPDX-License-Identifier: MIT */
/*
 * Drivers search for dead threads' slots a few at a time. Neither a request for figures nor a
 * registration makes a system call for each reader thread, however many there are. Still, a slot
 * that no thread owns any more is found.
 */
#define _GNU_SOURCE

#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "gp/user/reader_exit.h"
#include "support/gp_reader.h"
#include "support/seen_calls.h"
#include "support/suite.h"
#include "support/threads.h"

#define READERS 1500

static struct prudence_domain *domain;

/* Number of times that the library asked whether a thread exists. */
static unsigned asked;

static void sees_call(long number, long *arguments)
{
    if (number == SYS_tgkill)
        __atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
}

static unsigned readers_now(void)
{
    struct prudence_domain_stats stats;

    assert_int_equal(prudence_domain_stats(domain, &stats), 0);
    return (unsigned)stats.readers;
}

static sem_t registered, end;

static void *read_and_stay(void *unused)
{
    prudence_domain_read_lock(domain);
    prudence_domain_read_unlock(domain);
    sem_post(&registered);
    while (sem_wait(&end))
        ;
    return NULL;
}

static int32_t dead;

static void *read_and_go(void *unused)
{
    dead = gettid();
    prudence_domain_read_lock(domain);
    prudence_domain_read_unlock(domain);
    return NULL;
}

static pthread_t threads[READERS];

static void start_readers(void)
{
    pthread_attr_t small;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (unsigned i = 0; i < READERS; i++) {
        assert_int_equal(pthread_create(&threads[i], &small, read_and_stay, NULL), 0);
        while (sem_wait(&registered))
            ;
    }
    pthread_attr_destroy(&small);
}

TEST(to_register_takes_few_looks)
{
    start_readers();
    assert_true(asked < 4 * READERS); /* asking about all for each chunk of 127 would exceed this */
    assert_int_equal(readers_now(), READERS);
}

TEST(figures_take_few_looks)
{
    unsigned before = asked;

    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(readers_now(), READERS);
    assert_true(asked - before <= 10 * 64);
}

/* Nothing announces the end, whether the slot is the last or any other. */
TEST(one_that_is_gone_is_found)
{
    pthread_t thread;

    for (unsigned i = 0; i < 3; i++) {
        unsigned calls = 0;

        reader_keys_without_memory = 0; /* the exit hook cannot be armed */
        assert_int_equal(pthread_create(&thread, NULL, read_and_go, NULL), 0);
        pthread_join(thread, NULL);
        reader_keys_without_memory = 32;
        while (os_thread_exists(dead)) /* the thread ends a little later */
            pause_ms(1);
        while (readers_now() != READERS)
            assert_true(++calls <= READERS / 64 + 2);
    }
}

TEST(destruction_looks_at_all)
{
    for (unsigned i = 0; i < READERS; i++)
        sem_post(&end);
    threads_join(threads, READERS);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

int main(void)
{
    sem_init(&registered, 0, 0);
    sem_init(&end, 0, 0);
    domain = prudence_domain_create("few", PRUDENCE_DOMAIN_MEMB, NULL);
    return domain ? suite_run(NULL, NULL) : 1;
}
