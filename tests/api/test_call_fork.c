/* SPDX-License-Identifier: MIT */
/*
 * fork with callbacks queued, running and being queued: the child runs the pending ones once.
 *
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children, no exit beside threads)
 */
#define _GNU_SOURCE

#include <sched.h>

#include <prudence/call.h>
#include <prudence/rcu.h>

#include "toolkit/callbacks/callback_life.h"
#include "toolkit/callbacks/callback_queue.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/settle.h"
#include "support/suite.h"
#include "support/threads.h"

#define HEADS 1000

static unsigned ran;
static bool stop;
static struct prudence_head heads[HEADS];
static sem_t entered, leave;

static void count(struct prudence_head *head)
{
    __atomic_fetch_add(&ran, 1, __ATOMIC_SEQ_CST);
}

static int runs_all(void *unused)
{
    return prudence_barrier() == 0 && ran == HEADS ? 42 : 1;
}

TEST(the_child_runs_what_waits)
{
    struct held_reader reader = {.domain = NULL};
    struct child_result result;

    ran = 0;
    held_reader_start(&reader);
    for (unsigned i = 0; i < HEADS; i++) {
        prudence_call(&heads[i], count);
        if (i == HEADS / 2)
            pause_ms(2); /* half of them in segments, half in lanes */
    }
    threads_settle();
    child_run(runs_all, NULL, &result); /* the child has no such reader */
    assert_child_result(&result);
    assert_int_equal(ran, 0);
    held_reader_end(&reader);
    assert_int_equal(prudence_barrier(), 0);
    assert_int_equal(ran, HEADS);
}

static void blocks(struct prudence_head *head)
{
    sem_post(&entered);
    while (sem_wait(&leave))
        ;
}

static int all_but_that_one(void *unused)
{
    return prudence_barrier() == 0 && ran == HEADS - 1 ? 42 : 1;
}

TEST(a_callback_that_blocks_does_not_block_fork)
{
    ran = 0;
    sem_init(&entered, 0, 0);
    sem_init(&leave, 0, 0);
    prudence_call(&heads[0], blocks);
    while (sem_wait(&entered))
        ;
    for (unsigned i = 1; i < HEADS; i++)
        prudence_call(&heads[i], count);
    assert_child(all_but_that_one, NULL);
    sem_post(&leave);
    assert_int_equal(prudence_barrier(), 0);
    assert_int_equal(ran, HEADS - 1);
}

static void begin_waits(void *unused)
{
    sem_post(&entered);
    while (sem_wait(&leave))
        ;
}

static bool three_ran;

static void *advances(void *domain)
{
    while (!load_acquire(&three_ran)) {
        prudence_manual_advance(domain);
        pause_ms(1);
    }
    return NULL;
}

/* Lets the turns begin and the callbacks run, which may have been taken for several grace
 * periods. */
static int let_three_run(struct prudence_domain *domain)
{
    pthread_t thread;
    int error;

    three_ran = false;
    thread = thread_start(advances, domain);
    for (unsigned i = 0; i < 3; i++) /* as many turns at most */
        sem_post(&leave);
    error = prudence_domain_barrier(domain);
    store_release(&three_ran, true);
    pthread_join(thread, NULL);
    return error;
}

static int runs_three(void *domain)
{
    return let_three_run(domain) == 0 && ran == 3 ? 42 : 1;
}

/* The callbacks that the parent's thread is about to run are all the child's, too. */
TEST(a_fork_before_a_turn_of_callbacks_loses_none)
{
    struct prudence_domain *domain = prudence_domain_create("manual", PRUDENCE_DOMAIN_MANUAL, NULL);
    struct child_result result;

    ran = 0;
    sem_init(&entered, 0, 0);
    sem_init(&leave, 0, 0);
    assert_int_equal(prudence_domain_call_around(domain, 3, begin_waits, NULL, NULL), 0);
    for (unsigned i = 0; i < 3; i++)
        prudence_domain_call(domain, &heads[i], count);
    while (sem_trywait(&entered)) {
        prudence_manual_advance(domain);
        pause_ms(1);
    }
    child_run(runs_three, domain, &result);
    assert_child_result(&result);
    assert_int_equal(let_three_run(domain), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
    assert_int_equal(ran, 3);
}

static pid_t forked;

static void forks(struct prudence_head *head)
{
    forked = fork();
    if (forked == 0) { /* only this thread: callbacks queued after this one wait until it returns */
        static struct prudence_head mine;

        prudence_call(&mine, count);
        _exit(callback_queue_is_pending(callback_queue_of(prudence_default_domain())) ? 42 : 1);
    }
}

TEST(a_callback_may_fork)
{
    int status;

    prudence_call(&heads[0], forks);
    assert_int_equal(prudence_barrier(), 0);
    assert_int_equal(waitpid(forked, &status, 0), forked);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

struct object {
    struct prudence_head head;
    uint64_t check[8];
};

static void check_and_free(struct prudence_head *head)
{
    struct object *object = (struct object *)head;

    for (unsigned i = 0; i < 8; i++)
        if (object->check[i] != (uintptr_t)object + i)
            abort();
    memset(object->check, 0, sizeof object->check);
    prudence_free(object);
}

static void queue_one(void)
{
    struct object *object = prudence_malloc(sizeof *object);

    for (unsigned i = 0; i < 8; i++)
        object->check[i] = (uintptr_t)object + i;
    prudence_call(&object->head, check_and_free);
}

static unsigned up; /* threads that are queueing */

static void *queue_many(void *unused)
{
    queue_one();
    __atomic_add_fetch(&up, 1, __ATOMIC_RELAXED);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        queue_one();
    return unused;
}

static int use(void *unused)
{
    for (unsigned i = 0; i < 100; i++)
        queue_one();
    return prudence_barrier() ? 1 : 42;
}

/* Every head that the child finds is whole. */
TEST(while_others_queue)
{
    struct child_result result;
    pthread_t threads[3];

    threads_start(threads, 3, queue_many);
    /* AddressSanitizer allocates for a new thread. A child forked in the middle of that inherits
     * the taken lock. */
    while (__atomic_load_n(&up, __ATOMIC_RELAXED) < 3)
        sched_yield();
    for (unsigned i = 0; i < 20; i++) {
        child_run(use, NULL, &result);
        if (!child_exited_with(&result, 42))
            print_error("round %u: %d %s\n", i, result.status, result.output);
        assert_child_result(&result);
    }
    stop = true;
    threads_join(threads, 3);
    assert_int_equal(prudence_barrier(), 0);
}

static struct prudence_head handlers_head;
static bool in_handler;

static void prepare(void)
{
    if (in_handler)
        prudence_call(&handlers_head, count);
}

static int counts_handlers(void *unused)
{
    return prudence_barrier() == 0 && ran == 1 ? 42 : 1;
}

TEST(a_handler_may_queue)
{
    struct child_result result;

    ran = 0;
    in_handler = true;
    child_run(counts_handlers, NULL, &result);
    in_handler = false;
    assert_child_result(&result);
    assert_int_equal(prudence_barrier(), 0);
    assert_int_equal(ran, 1);
}

SUITE(prudence_option_set("call_limit", "1M"), pthread_atfork(prepare, NULL, NULL))
