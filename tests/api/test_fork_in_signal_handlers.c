/* SPDX-License-Identifier: MIT */
/*
 * A signal handler forks, wherever in the library it has interrupted its thread: fork does not wait
 * for anything that the thread holds. The child of a process with one thread continues as usual.
 *
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children, no exit with threads)
 */
#define _GNU_SOURCE

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "support/gp_child.h"
#include "support/suite.h"

#define FORKS       200
#define FORKS_LEAST 20 /* enough where a fork takes a tenth of a second, as in an emulated guest */
#define SECONDS     10

static struct prudence_cache *cache;
static volatile unsigned forks, failures;
static volatile bool in_child, children_go_on;

static timer_t timer;
static time_t end;

static bool more(void)
{
    return forks < FORKS_LEAST || (forks < FORKS && time(NULL) < end);
}

/* Arms the timer once, so that no signal is pending when the handler returns. A pending one
 * would interrupt the same instruction for ever. */
static void fork_soon(void)
{
    struct itimerspec soon = {.it_value.tv_nsec = 20000 + forks % 50 * 1000};

    if (timer_settime(timer, 0, &soon, NULL))
        abort();
}

static void fork_here(int signal)
{
    int saved_errno = errno, status;
    pid_t child;

    if (in_child || !more())
        return;
    forks++;
    child = fork();
    if (child == 0) {
        alarm(CHILD_PATIENCE);
        if (!children_go_on)
            _exit(42);
        in_child = true; /* and back to the interrupted code */
        errno = saved_errno;
        return;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    failures += !WIFEXITED(status) || WEXITSTATUS(status) != 42;
    fork_soon();
    errno = saved_errno;
}

static void use(unsigned i)
{
    void *objects[40];

    for (unsigned n = 0; n < 40; n++)
        objects[n] = prudence_cache_alloc(cache);
    for (unsigned n = 0; n < 40; n++)
        prudence_cache_free_deferred(cache, objects[n]);
    prudence_free(prudence_malloc(i % 70000));
    prudence_free_deferred(prudence_calloc(1, i * 13 % 5000));
}

/* Ends with a fork that takes everything. */
static void go_on_in_the_child(void)
{
    int status;
    pid_t child;

    for (unsigned i = 0; i < 200; i++)
        use(i * 31);
    prudence_synchronize();
    prudence_trim();
    child = fork();
    if (child == 0)
        _exit(42);
    waitpid(child, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static int fork_from_handlers(void *go_on)
{
    struct sigaction action = {.sa_handler = fork_here, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};

    children_go_on = go_on != NULL;
    end = time(NULL) + SECONDS;
    sigaction(SIGUSR1, &action, NULL);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer))
        return 2;
    fork_soon();
    for (unsigned i = 0; more(); i++) {
        use(i);
        if (in_child)
            go_on_in_the_child();
    }
    return failures ? 1 : 42;
}

TEST(the_child_goes_on)
{
    assert_child(fork_from_handlers, "go on");
}

static void *keep_busy(void *unused)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    for (unsigned i = 0; more(); i++)
        use(i);
    return unused;
}

static int fork_from_handlers_of_threads(void *unused)
{
    pthread_t thread;
    int result;

    pthread_create(&thread, NULL, keep_busy, NULL);
    result = fork_from_handlers(NULL);
    pthread_join(thread, NULL);
    return result;
}

TEST(with_other_threads_it_may_exit)
{
    assert_child(fork_from_handlers_of_threads, NULL);
}

/* Sends everything down the slow path, so that many signals arrive inside the library. */
static int set_up(void **state)
{
    prudence_option_set("rseq", "0");
    cache = prudence_cache_create("interrupted", 64, NULL);
    return cache == NULL;
}

SUITE_BETWEEN(set_up, NULL)
