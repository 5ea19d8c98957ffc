/* SPDX-License-Identifier: MIT */
/*
 * A signal handler may read at any instruction of the thread's own read_lock and read_unlock, also
 * of its first read_lock, which registers it. Whatever the interrupted section and the handler read
 * stays protected.
 *
 * ctest: not-with thread (ThreadSanitizer forgets a thread before its last destructors, handlers)
 */
#define _GNU_SOURCE

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "support/gp_reader.h"
#include "support/step.h"
#include "support/suite.h"

#define SPAN_NS 700000000 /* at least, until enough signals came */

static struct prudence_domain *domain;
static volatile uint64_t handled, broken;

/* Enters and leaves, and checks that the words are unchanged. */
static void handler(int number)
{
    struct prudence_reader *self = prudence_reader_self;
    uint64_t before = self ? self->word : 0;

    prudence_read_lock();
    if (!prudence_read_lock_held())
        broken++;
    prudence_domain_read_lock(domain);
    prudence_domain_read_unlock(domain);
    prudence_read_unlock();
    if ((prudence_reader_self ? prudence_reader_self->word : 0) != before)
        broken++;
    handled++;
}

static void timer(unsigned microseconds)
{
    struct itimerval every = {.it_interval = {.tv_usec = microseconds},
                              .it_value = {.tv_usec = microseconds}};

    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &every, NULL);
}

TEST(handlers_read_between_any_two_instructions)
{
    unsigned long long end = now_ns() + SPAN_NS;
    uint64_t sections = 0;

    timer(100);
    while (now_ns() < end || handled <= 100) {
        for (unsigned i = 0; i < 1000; i++, sections++) {
            prudence_read_lock();
            prudence_read_lock();
            if (!prudence_read_lock_held())
                broken++;
            prudence_read_unlock();
            if (!prudence_read_lock_held())
                broken++;
            prudence_read_unlock();
            if (prudence_read_lock_held())
                broken++;
        }
    }
    timer(0);
    print_message("%llu sections, %llu handlers\n", (unsigned long long)sections,
                  (unsigned long long)handled);
    assert_int_equal(broken, 0);
}

/* The same, instruction by instruction (support/step.h). */
#if STEP_POSSIBLE

static uint64_t steps;

static void visit(const greg_t *registers)
{
    steps++;
    handler(0);
    /* While the thread's own word shows it inside, grace periods must see it. */
    if (prudence_reader_self->word & PRUDENCE_NESTING_MASK) {
        prudence_gp_t cookie = prudence_gp_start_poll();

        if (prudence_gp_poll_state(cookie))
            broken++;
    }
}

static void nested_sections(void *unused)
{
    prudence_read_lock();
    prudence_read_lock();
    prudence_domain_read_lock(domain);
    prudence_domain_read_unlock(domain);
    prudence_read_unlock();
    prudence_read_unlock();
}

TEST(handlers_read_after_every_instruction)
{
    prudence_read_lock();
    prudence_read_unlock();
    step_through(nested_sections, NULL, visit);
    print_message("%llu instructions stepped\n", (unsigned long long)steps);
    assert_true(steps > 20);
    assert_int_equal(broken, 0);
    assert_false(prudence_read_lock_held());
}

#endif

static void *read_first(void *unused)
{
    prudence_read_lock();
    prudence_read_unlock();
    prudence_domain_read_lock(domain);
    prudence_domain_read_unlock(domain);
    return unused;
}

/* Signals interrupt threads' first entry and their exit: no slot is lost or shared. */
TEST(registration_and_exit_are_interrupted)
{
    unsigned long long end = now_ns() + SPAN_NS;
    struct prudence_stats stats;
    unsigned threads = 0;
    sigset_t alarm_only;
    pthread_t thread;

    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    for (handled = 0; now_ns() < end || handled == 0; threads++) {
        pthread_create(&thread, NULL, read_first, NULL);
        pthread_sigmask(SIG_BLOCK, &alarm_only, NULL); /* so that the other thread gets them */
        timer(30);
        pthread_join(thread, NULL);
        timer(0);
        pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
    }
    print_message("%u threads, %llu handlers\n", threads, (unsigned long long)handled);
    assert_int_equal(broken, 0);
    prudence_synchronize();
    assert_int_equal(prudence_domain_synchronize(domain), 0);
    prudence_stats(&stats);
    print_message("slots in use in the end: %llu\n", (unsigned long long)stats.readers);
    assert_true(stats.readers <= SLOTS_IN_CHUNK); /* lost slots would add up */
}

/* ThreadSanitizer delays handlers to points of its own, so there is nothing to find. */
#if defined(__SANITIZE_THREAD__)
int main(void)
{
    print_message("skipped under ThreadSanitizer\n");
    (void)handlers_read_between_any_two_instructions;
    (void)registration_and_exit_are_interrupted;
    return 0;
}
#else
SUITE(domain = prudence_domain_create("signals", PRUDENCE_DOMAIN_MEMB, NULL))
#endif
