/* SPDX-License-Identifier: MIT */
/*
 * Which of the handlers that a copy of liburcu-cds registers are called around a fork, and how
 * often. No liburcu is needed, because the handlers here only count.
 *
 * ctest: not-with address (a thread of the library ends during forks; ASan's list stays locked)
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children)
 */
#define _GNU_SOURCE

#include <semaphore.h>
#include <stdlib.h>

#include <prudence/prudence.h>
#include <prudence/urcu-compat/urcu/flavor.h>

#include "support/before_constructors.h"
#include "support/gp_child.h"
#include "support/suite.h"
#include "support/threads.h"

/* A copy of the table library: how often each of its handlers has run. */
static struct tables {
    unsigned stops, goes_on, starts_in_child;
} tables;

static void stop(void *priv)
{
    __atomic_fetch_add(&((struct tables *)priv)->stops, 1, __ATOMIC_SEQ_CST);
}

static void go_on(void *priv)
{
    __atomic_fetch_add(&((struct tables *)priv)->goes_on, 1, __ATOMIC_SEQ_CST);
}

static void start_in_child(void *priv)
{
    ((struct tables *)priv)->starts_in_child++;
}

static struct urcu_atfork handlers = {stop, go_on, start_in_child, &tables};

static void registered(void)
{
    tables = (struct tables){0};
    prudence_urcu_atfork_register(&handlers);
}

/* In a child: the worker was stopped once, and has been started again here. */
static int stopped_and_started(void *unused)
{
    return tables.stops == 1 && tables.goes_on == 0 && tables.starts_in_child == 1 ? 42 : 1;
}

TEST(a_worker_is_stopped_before_a_fork_and_goes_on_after_it)
{
    registered();
    assert_child(stopped_and_started, NULL);
    assert_int_equal(tables.stops, 1);
    assert_int_equal(tables.goes_on, 1);
    assert_int_equal(tables.starts_in_child, 0);
    prudence_urcu_atfork_unregister(&handlers);
}

/* Each table registers the handlers of its library. */
TEST(handlers_registered_twice_are_called_once_until_both_are_gone)
{
    registered();
    prudence_urcu_atfork_register(&handlers);
    prudence_urcu_atfork_unregister(&handlers);
    assert_child(stopped_and_started, NULL);
    prudence_urcu_atfork_unregister(&handlers);
    prudence_urcu_before_fork();
    prudence_urcu_after_fork_parent();
    assert_int_equal(tables.stops, 1);
    assert_int_equal(tables.goes_on, 1);
}

/* The program's call and the fork want the worker stopped; it goes on after the last of them. */
TEST(it_goes_on_when_no_caller_wants_it_stopped)
{
    registered();
    prudence_urcu_before_fork();
    prudence_urcu_before_fork(); /* the thread has called it already */
    assert_int_equal(tables.stops, 1);
    assert_child(stopped_and_started, NULL);
    assert_int_equal(tables.goes_on, 0);
    prudence_urcu_after_fork_parent();
    assert_int_equal(tables.goes_on, 1);
    prudence_urcu_after_fork_parent(); /* has no counterpart */
    assert_int_equal(tables.goes_on, 1);
    prudence_urcu_atfork_unregister(&handlers);
}

static sem_t may_stop;

static void stop_when_told(void *priv)
{
    while (sem_wait(&may_stop))
        ;
    stop(priv);
}

static int fork_before_it_stops(void)
{
    static struct urcu_atfork slow = {stop_when_told, go_on, start_in_child, &tables};
    pid_t child;

    sem_init(&may_stop, 0, 0);
    prudence_urcu_atfork_register(&slow);
    if (prudence_option_set("wait_max", "1ms"))
        return 1;
    child = fork();
    if (child == 0)
        _exit(tables.stops || tables.starts_in_child);
    if (status_of(child))
        return 2;
    sem_post(&may_stop);
    while (!__atomic_load_n(&tables.goes_on, __ATOMIC_SEQ_CST))
        usleep(1000);
    return tables.stops == 1 && tables.goes_on == 1 ? 42 : 3;
}

/* The worker goes on when it has stopped at last. */
TEST(a_fork_waits_for_no_longer_than_wait_max)
{
    tables = (struct tables){0};
    expect_exit(42, fork_before_it_stops(), "");
    assert_int_equal(said("did not stop within wait_max"), 1);
}

/* Handlers of a program, as liburcu wants them. They are registered before the library's, so they
 * run between those. */
static bool has_handlers;

static void handler_before(void)
{
    if (has_handlers)
        prudence_urcu_before_fork();
}

static void handler_after(void)
{
    if (has_handlers)
        prudence_urcu_after_fork_parent();
}

static void register_between(void)
{
    pthread_atfork(handler_before, handler_after, NULL);
}

/* Runs before any constructor. */
BEFORE_CONSTRUCTORS(register_between);

static void *let_it_stop(void *unused)
{
    usleep(100000); /* while the handler runs */
    sem_post(&may_stop);
    return unused;
}

static int fork_with_handlers_before_it_stops(void)
{
    pthread_t thread;

    has_handlers = true;
    alarm(patience(5));
    sem_init(&may_stop, 0, 0);
    pthread_create(&thread, NULL, let_it_stop, NULL);
    return fork_before_it_stops();
}

/* The thread that stops the worker then waits for the end of the fork, so no handler waits for
 * it. */
TEST(a_handler_between_does_not_wait_for_a_worker)
{
    tables = (struct tables){0};
    expect_exit(42, fork_with_handlers_before_it_stops(),
                "call_rcu_before_fork, called in a handler of pthread_atfork");
}

static int fork_with_handlers_when_it_stops(void)
{
    has_handlers = true;
    registered();
    assert_child(stopped_and_started, NULL);
    return tables.stops == 1 && tables.goes_on == 1 ? 42 : 1;
}

TEST(a_handler_between_finds_the_worker_stopped)
{
    expect_exit(42, fork_with_handlers_when_it_stops(), "");
    assert_false(said("call_rcu_before_fork"));
}

/* However loaded the machine is. */
SUITE(alarm(patience(120)), prudence_option_set("wait_max", "20s"))
