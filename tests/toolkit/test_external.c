/* SPDX-License-Identifier: MIT */
/* External domains: which thread calls which foreign function, and when. The test plays the
 * foreign scheme. */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include <prudence/call.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/slab_test.h"
#include "support/suite.h"
#include "support/threads.h"

static struct {
    uint64_t begun, over; /* foreign cookies */
    unsigned polls;
    sem_t called, go_on; /* synchronize */
    unsigned synchronized, starts, ends;
    pthread_t caller;
    bool blocks;
} foreign;

static uint64_t start_poll(void *context)
{
    assert_ptr_equal(context, &foreign);
    return ++foreign.begun;
}

static bool poll_state(void *context, uint64_t cookie)
{
    foreign.polls++;
    return foreign.over >= cookie;
}

static void synchronize(void *context)
{
    foreign.caller = pthread_self();
    if (__atomic_load_n(&foreign.blocks, __ATOMIC_ACQUIRE)) {
        sem_post(&foreign.called);
        while (sem_wait(&foreign.go_on))
            ;
    }
    __atomic_fetch_add(&foreign.synchronized, 1, __ATOMIC_RELEASE);
}

static void thread_starts(void *context)
{
    __atomic_fetch_add(&foreign.starts, 1, __ATOMIC_RELEASE);
}

static void thread_ends(void *context)
{
    __atomic_fetch_add(&foreign.ends, 1, __ATOMIC_RELEASE);
}

static const struct prudence_domain_ops polled = {.size = sizeof polled,
                                                  .start_poll = start_poll,
                                                  .poll_state = poll_state},
                                        waited = {.size = sizeof waited,
                                                  .synchronize = synchronize,
                                                  .thread_starts = thread_starts,
                                                  .thread_ends = thread_ends};

static struct prudence_domain *make(const struct prudence_domain_ops *ops)
{
    struct prudence_domain *domain;

    memset(&foreign, 0, sizeof foreign);
    sem_init(&foreign.called, 0, 0);
    sem_init(&foreign.go_on, 0, 0);
    domain = prudence_domain_create_external("foreign", ops, &foreign);
    assert_non_null(domain);
    return domain;
}

static unsigned synchronized(void)
{
    return __atomic_load_n(&foreign.synchronized, __ATOMIC_ACQUIRE);
}

TEST(one_grace_period_is_under_way_and_the_next_covers_the_rest)
{
    struct prudence_domain *domain = make(&polled);
    prudence_gp_t first = prudence_domain_start_poll(domain), second, third;

    assert_int_equal(foreign.begun, 0); /* no thread has driven it */
    assert_false(prudence_domain_poll_state(domain, first));
    assert_int_equal(foreign.begun, 1);
    second = prudence_domain_start_poll(domain);
    third = prudence_domain_start_poll(domain);
    assert_false(prudence_domain_poll_state(domain, third));
    assert_int_equal(foreign.begun, 1);
    foreign.over = 1;
    assert_true(prudence_domain_poll_state(domain, first));
    assert_false(prudence_domain_poll_state(domain, second));
    assert_int_equal(foreign.begun, 2);
    foreign.over = 2;
    assert_true(prudence_domain_poll_state(domain, third));
    assert_true(prudence_domain_poll_state(domain, second));
    assert_int_equal(foreign.begun, 2); /* no grace period is requested */
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* The call that <prudence/rcu.h> asks of a scheme when a quiescent state has moved. */
static void say_that_it_moved(struct prudence_domain *domain)
{
    prudence_domain_poll_state(domain, prudence_domain_get_state(domain));
}

TEST(the_scheme_may_say_that_it_moved)
{
    struct prudence_domain *domain = make(&polled);
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
    struct prudence_cache *cache = prudence_cache_create("objects", 64, &attr);
    prudence_gp_t first, second;

    say_that_it_moved(domain);
    assert_int_equal(foreign.begun, 0); /* no thread has asked */
    prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    first = prudence_domain_start_poll(domain);
    say_that_it_moved(domain);
    assert_int_equal(foreign.begun, 1);
    second = prudence_domain_start_poll(domain);
    foreign.over = 1;
    say_that_it_moved(domain); /* ends the first and begins the second */
    assert_int_equal(foreign.begun, 2);
    foreign.over = 2;
    say_that_it_moved(domain);
    foreign.polls = 0;
    assert_true(prudence_domain_poll_state(domain, first));
    assert_true(prudence_domain_poll_state(domain, second));
    assert_int_equal(foreign.polls, 0);
    say_that_it_moved(domain);
    assert_int_equal(foreign.begun + foreign.polls, 2); /* no thread has asked since */
    foreign.over = 100;
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(nothing_runs_unless_asked_for)
{
    struct prudence_domain *domain = make(&waited);

    prudence_domain_get_state(domain);
    pause_ms(20);
    assert_int_equal(synchronized(), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(polling_never_blocks_in_synchronize)
{
    struct prudence_domain *domain = make(&waited);
    prudence_gp_t cookie;

    foreign.blocks = true;
    cookie = prudence_domain_start_poll(domain);
    assert_false(prudence_domain_poll_state(domain, cookie));
    while (sem_wait(&foreign.called))
        ;
    assert_false(pthread_equal(foreign.caller, pthread_self()));
    for (unsigned i = 0; i < 10; i++)
        assert_false(prudence_domain_poll_state(domain, cookie));
    sem_post(&foreign.go_on);
    while (!prudence_domain_poll_state(domain, cookie))
        pause_ms(1);
    assert_int_equal(synchronized(), 1);
    __atomic_store_n(&foreign.blocks, false, __ATOMIC_RELEASE);
    assert_int_equal(prudence_domain_synchronize(domain), 0);
    assert_int_equal(synchronized(), 2);
    assert_int_equal(__atomic_load_n(&foreign.starts, __ATOMIC_ACQUIRE), 1);
    assert_int_equal(prudence_domain_destroy(domain), 0);
    assert_int_equal(__atomic_load_n(&foreign.ends, __ATOMIC_ACQUIRE), 1);
}

TEST(without_a_thread_there_is_no_domain)
{
    memory_fail(0, UINT32_MAX);
    errno = 0;
    assert_null(prudence_domain_create_external("foreign", &waited, NULL));
    assert_int_equal(errno, ENOMEM);
    memory_succeed();
}

static int synchronize_without_threads(void *domain)
{
    memory_succeed();
    if (prudence_domain_synchronize(domain) || synchronized() != 1 ||
        !pthread_equal(foreign.caller, pthread_self()))
        return 1;
    return prudence_domain_destroy(domain) == 0 ? 42 : 2;
}

/* In a child that cannot start the thread, a waiter without a deadline drives. */
TEST(without_a_thread_the_waiter_does_it)
{
    struct prudence_domain *domain = make(&waited);
    struct child_result result;

    memory_fail(0, UINT32_MAX);
    child_run(synchronize_without_threads, domain, &result);
    memory_succeed();
    assert_child_result(&result);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static unsigned called;

static void note_call(struct prudence_head *head)
{
    called += synchronized();
}

/* The alarm ends a barrier that waits for the missing thread. */
static int barrier_without_threads(void *domain)
{
    static struct prudence_head head;

    alarm(patience(2));
    prudence_domain_call(domain, &head, note_call);
    if (prudence_domain_barrier(domain) || called != 1 ||
        !pthread_equal(foreign.caller, pthread_self()))
        return 1;
    return prudence_domain_destroy(domain) == 0 ? 42 : 2;
}

/* The same for a barrier of callbacks. The child cannot start the thread that runs them either. */
TEST(without_a_thread_the_barrier_does_it)
{
    struct prudence_domain *domain = make(&waited);
    struct child_result result;

    memory_fail(0, UINT32_MAX);
    child_run(barrier_without_threads, domain, &result);
    memory_succeed();
    assert_child_result(&result);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

#ifndef __SANITIZE_THREAD__ /* it needs its own pthread_create */

static bool raises;
static pid_t forked = -1;

/* The library blocks signals here, so the handler comes when it does so no more. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    __typeof(pthread_create) *real = NULL;
    int error;

    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    error = real(thread, attributes, run, argument);
    if (raises)
        raise(SIGUSR1);
    return error;
}

static void fork_in_handler(int signal)
{
    (void)signal;
    raises = false;
    forked = fork();
}

static int create_and_fork(void *unused)
{
    struct prudence_domain *domain;

    signal(SIGUSR1, fork_in_handler);
    raises = true;
    domain = make(&waited);
    alarm(patience(3));
    if (prudence_domain_synchronize(domain) || prudence_domain_destroy(domain))
        return 1;
    return forked > 0 && status_of(forked) != 42 << 8 ? 2 : forked < 0 ? 3 : 42;
}

/* A signal handler forks while the domain is made. Parent and child have one thread each. */
TEST(a_fork_while_it_is_made_leaves_it_its_thread)
{
    assert_child(create_and_fork, NULL);
}

#endif

TEST(its_readers_are_not_ours)
{
    struct prudence_domain *domain = make(&polled);

    assert_false(prudence_domain_read_lock_held(domain));
    expect_death(prudence_domain_read_lock(domain),
                 "'foreign' has no readers of its own (external)");
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static int stall(void *unused)
{
    struct prudence_domain *domain = make(&polled);
    prudence_gp_t cookie;

    prudence_option_set("stall_timeout", "20ms");
    cookie = prudence_domain_start_poll(domain);
    for (unsigned i = 0; i < 20000 && (i < 60 || !load_relaxed(&domain->stalls)); i++) {
        prudence_domain_poll_state(domain, cookie);
        pause_ms(1);
    }
    return 0;
}

TEST(a_stall_is_reported_without_a_name)
{
    struct child_result result;

    child_run(stall, NULL, &result);
    assert_int_equal(child_count(&result, "stall: a grace period of domain 'foreign'"), 1);
}

SUITE()
