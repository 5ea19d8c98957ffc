/* SPDX-License-Identifier: MIT */
/*
 * A thread that queues callbacks while the blocking reader has been preempted is held back for a
 * while, even where it may not wait for readers. The test plays the system that reports on the
 * reader's thread. No worker thread exists; the test takes the worker's turns.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include "support/slab_test.h"
#include "support/suite.h"

#include "toolkit/callbacks/callback_life.h"
#include "toolkit/callbacks/callback_queue.h"
#include "gp/user/domain.h"
#include "os/posix/posix.h"
#include "toolkit/callbacks/callback_wait.h"
#include "toolkit/callbacks/callback_worker.h"
#include "support/gp_reader.h"

#define MUCH     ((size_t)1 << 20) /* bytes; more than may be pending before the worker checks */
#define LOOKS    4
#define ATTEMPTS 100000 /* of 1 ms each; a check comes every half one */

static struct prudence_domain *domain;
static struct callback_queue *queue;
static struct prudence_head head;

/* The thread that is online, and so holds up grace periods. */
static pthread_t thread;
static pid_t tid;
static sem_t inside, leave;

/* The system's answer about it. */
static bool told, wants;
static uint64_t had_more_each_time;
static unsigned looks;

static bool tell(int of, bool *wants_cpu, uint64_t *had)
{
    assert_int_equal(of, tid);
    *wants_cpu = wants;
    *had = 4711 + looks++ * had_more_each_time;
    return told;
}

static void ignore(struct prudence_head *unused)
{
}

static void *stay(void *unused)
{
    tid = gettid();
    prudence_qsbr_online(domain);
    sem_post(&inside);
    while (sem_wait(&leave))
        ;
    prudence_qsbr_offline(domain);
    return unused;
}

/* Pretends that an awake worker exists, so that no thread starts one. */
static int set_up(void **state)
{
    callback_queue_of(&prudence_default);
    callbacks_other_work = NULL;
    callbacks_weigh = NULL; /* a head weighs the size that the test gives */
    store_relaxed(&callback_main_worker.started, 1u);
    store_relaxed(&callback_main_worker.awake, 1u);
    domain = prudence_domain_create("qsbr", PRUDENCE_DOMAIN_QSBR, NULL);
    queue = domain->callbacks;
    posix_cpu_injected = tell;
    sem_init(&inside, 0, 0);
    sem_init(&leave, 0, 0);
    return 0;
}

/* Queues many bytes that wait for that reader; the worker has noticed. */
static void queue_much(bool is_told, bool wants_cpu, uint64_t had_more)
{
    looks = 0;
    told = is_told;
    wants = wants_cpu;
    had_more_each_time = had_more;
    assert_int_equal(pthread_create(&thread, NULL, stay, NULL), 0);
    while (sem_wait(&inside))
        ;
    head.func = ignore;
    callback_push(queue, &head, MUCH);
    assert_int_equal(callback_worker_serve(queue), CALLBACK_TURN_WAITS);
    assert_true(gp_is_held_up(domain));
}

static void run_all(void)
{
    while (callback_worker_serve(queue) != CALLBACK_TURN_EMPTY)
        ;
    queue->bytes_left += MUCH;
    assert_int_equal(callback_queue_bytes(queue), 0);
}

static void finish(void)
{
    sem_post(&leave);
    pthread_join(thread, NULL);
    run_all();
}

/* Queues until the system was asked `asked` times. Returns whether this thread was held back. */
static bool keep_pace_for(unsigned asked)
{
    bool held = false;

    for (unsigned i = 0; looks < asked && i < ATTEMPTS; i++) {
        held |= callback_wait_keep_pace(queue);
        if (looks < asked)
            pause_ms(1);
    }
    assert_true(looks >= asked);
    return held;
}

TEST(a_reader_without_cpu_is_given_one)
{
    queue_much(true, true, 0);
    assert_true(keep_pace_for(LOOKS));
    assert_int_equal(queue->no_pace_until, 0); /* the worker does not count as stuck */
    finish();
}

/* Also holds back a thread that may hold pointers, and so never waits for readers. */
TEST(by_a_thread_that_is_online)
{
    queue_much(true, true, 0);
    prudence_qsbr_online(domain);
    assert_false(gp_may_wait());
    assert_true(keep_pace_for(LOOKS));
    prudence_qsbr_offline(domain);
    finish();
}

TEST(one_that_has_a_cpu_is_not_waited_for)
{
    queue_much(true, true, 1);
    assert_false(keep_pace_for(LOOKS));
    finish();
}

/* A blocked reader is not waited for, because it may wait for a lock of this thread's. */
TEST(one_that_is_blocked_is_not_waited_for)
{
    queue_much(true, false, 0);
    assert_false(keep_pace_for(LOOKS));
    finish();
}

TEST(one_that_nobody_knows_of_is_not_waited_for)
{
    queue_much(false, true, 0);
    assert_false(keep_pace_for(LOOKS));
    finish();
}

/* The thread that queues holds up the grace period itself: it has a CPU, and the system is not
 * asked. */
TEST(nobody_waits_for_itself)
{
    looks = 0;
    prudence_qsbr_online(domain);
    callback_push(queue, &head, MUCH);
    assert_int_equal(callback_worker_serve(queue), CALLBACK_TURN_WAITS);
    assert_true(gp_is_held_up(domain));
    for (unsigned i = 0; i < LOOKS; i++, pause_ms(1)) /* a check may not be due at first */
        assert_false(callback_wait_keep_pace(queue));
    assert_int_equal(looks, 0);
    prudence_qsbr_offline(domain);
    run_all();
}

#define MANY 20000

_Static_assert(sizeof(struct prudence_head) == 2 * sizeof(void *), "all that a callback takes");
_Static_assert(sizeof(struct callback_queue) + sizeof(struct callback_lane) <= 416,
               "all that a queue takes, and a CPU of it");

/* Pending heads lie in the program's memory, and cost no further byte. */
TEST(callbacks_take_no_memory)
{
    static struct prudence_head heads[MANY];
    uint64_t invoked = queue->invoked;

    memory_fail(0, UINT32_MAX);
    for (unsigned i = 0; i < MANY; i++) {
        heads[i].func = ignore;
        callback_push(queue, &heads[i], 0);
    }
    while (callback_worker_serve(queue) != CALLBACK_TURN_EMPTY)
        ;
    memory_succeed();
    assert_int_equal(queue->invoked - invoked, MANY);
}

SUITE_BETWEEN(set_up, NULL)
