/* SPDX-License-Identifier: MIT */
/*
 * fork with callbacks queued, running and being queued (support/fork_matrix.h): the child runs the
 * pending ones once.
 *
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children, no exit with threads)
 */
#define _GNU_SOURCE

#include "toolkit/callbacks/callback_life.h"
#include "toolkit/callbacks/callback_queue.h"
#include "support/fork_matrix.h"
#include "support/settle.h"

#define HEADS 1000

static unsigned ran;
static struct prudence_head heads[HEADS];

static void count(struct prudence_head *head)
{
    __atomic_fetch_add(&ran, 1, __ATOMIC_SEQ_CST);
}

/* --------------------------------------------------------------------------- what waits or runs */

static struct held_reader reader;

static void queue_all(void)
{
    ran = 0;
    held_reader_start(&reader);
    for (unsigned i = 0; i < HEADS; i++) {
        prudence_call(&heads[i], count);
        if (i == HEADS / 2)
            pause_ms(2); /* half of them in segments, half in lanes */
    }
    threads_settle();
}

/* The child has no such reader. */
static int all_run(void)
{
    return prudence_barrier() || ran != HEADS;
}

static void all_ran(void)
{
    if (reader.thread)
        held_reader_end(&reader);
    assert_int_equal(prudence_barrier(), 0);
    assert_int_equal(ran, HEADS);
}

static void block(struct prudence_head *head)
{
    count(head);
    fork_reach();
}

/* Counts as done in the child. */
static void queue_behind_one_that_blocks(void)
{
    ran = 0;
    reader.thread = 0;
    prudence_call(&heads[0], block);
    fork_await();
    for (unsigned i = 1; i < HEADS; i++)
        prudence_call(&heads[i], count);
}

/* ------------------------------------------------------------------------ before a turn of them */

static struct prudence_domain *domain;

static void begin_to_wait(void *unused)
{
    fork_reach();
}

static bool three_ran;

static void *advance(void *unused)
{
    while (!load_acquire(&three_ran)) {
        prudence_manual_advance(domain);
        pause_ms(1);
    }
    return unused;
}

/* Lets the turns begin and the callbacks run, which may have been taken for several grace
 * periods. */
static int let_three_run(void)
{
    pthread_t thread;
    int error;

    three_ran = false;
    thread = thread_start(advance, NULL);
    for (unsigned i = 0; i < 3; i++) /* as many turns at most */
        sem_post(&fork_may_go_on);
    error = prudence_domain_barrier(domain);
    store_release(&three_ran, true);
    pthread_join(thread, NULL);
    return error || ran != 3;
}

/* The callbacks that the parent's thread is about to run are all the child's, too. */
static void begin_turn(void)
{
    ran = 0;
    domain = prudence_domain_create("manual", PRUDENCE_DOMAIN_MANUAL, NULL);
    assert_int_equal(prudence_domain_call_around(domain, 3, begin_to_wait, NULL, NULL), 0);
    for (unsigned i = 0; i < 3; i++)
        prudence_domain_call(domain, &heads[i], count);
    while (sem_trywait(&fork_reached)) {
        prudence_manual_advance(domain);
        pause_ms(1);
    }
}

static void end_turn(void)
{
    assert_int_equal(let_three_run(), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* ---------------------------------------------------------------------- while others queue them */

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

/* Every head that the child finds is whole. */
static int queues_more(void)
{
    for (unsigned i = 0; i < 100; i++)
        queue_one();
    return prudence_barrier();
}

/* ----------------------------------------------------------------------------------- the matrix */

static const struct fork_row rows[] = {
    {"callbacks wait", queue_all, .in_child = all_run, .tear_down = all_ran},
    {"a callback blocks", queue_behind_one_that_blocks, .in_child = all_run, .tear_down = all_ran},
    {"a turn of callbacks begins", begin_turn, .in_child = let_three_run, .tear_down = end_turn},
    {"others queue callbacks", .busy = queue_one, .in_child = queues_more},
};

TEST(the_child_runs_what_waits)
{
    fork_matrix(rows, sizeof rows / sizeof rows[0]);
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

SUITE(prudence_option_set("call_limit", "1M"))
