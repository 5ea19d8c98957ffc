/* SPDX-License-Identifier: MIT */
/*
 * Callbacks, step by step: no worker thread exists, the test takes the worker's steps. Also
 * instruction by instruction: everything that another thread could do between any two of them.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <prudence/call.h>
#include <prudence/hazard.h>
#include <prudence/prudence.h>
#include <prudence/urcu-compat.h>

#include "toolkit/callbacks/callback_life.h"
#include "toolkit/callbacks/callback_queue.h"
#include "gp/user/domain.h"
#include "toolkit/callbacks/callback_wait.h"
#include "toolkit/callbacks/callback_worker.h"
#include "support/patience.h"
#include "support/step.h"
#include "support/suite.h"
#include "support/threads.h"

static struct prudence_domain *domain;
static struct callback_queue *queue;
static struct callback_worker *const worker = &callback_main_worker;
static unsigned ran;

static void count(struct prudence_head *head)
{
    __atomic_fetch_add(&ran, 1, __ATOMIC_SEQ_CST);
}

static unsigned runs(void)
{
    return __atomic_load_n(&ran, __ATOMIC_SEQ_CST);
}

/* Pretends that an awake thread exists, so that no thread starts one. */
static void pretend_a_thread(void)
{
    store_relaxed(&worker->started, 1u);
    store_relaxed(&worker->awake, 1u);
}

static int set_up(void **state)
{
    if (!domain) {
        callback_queue_of(&prudence_default);
        callbacks_other_work = NULL;
        pretend_a_thread();
        domain = prudence_domain_create("manual", PRUDENCE_DOMAIN_MANUAL, NULL);
        queue = domain->callbacks;
    }
    pretend_a_thread();
    ran = 0;
    return 0;
}

static void push(struct callback_queue *to, struct prudence_head *head)
{
    head->func = count;
    callback_push(to, head, 0);
}

static enum callback_turn turn(void)
{
    return callback_worker_serve_all(worker);
}

/* ------------------------------------------------------------------------------- step by step */

TEST(a_callback_waits_for_its_own_grace_period, set_up)
{
    static struct prudence_head before, after;

    assert_int_equal(turn(), CALLBACK_TURN_EMPTY);
    push(queue, &before);
    assert_int_equal(turn(), CALLBACK_TURN_WAITS); /* detached, and a cookie taken */
    push(queue, &after);
    prudence_manual_advance(domain);
    assert_int_equal(turn(), CALLBACK_TURN_RAN);
    assert_int_equal(runs(), 1); /* the other was detached after that grace period */
    assert_int_equal(turn(), CALLBACK_TURN_WAITS);
    prudence_manual_advance(domain);
    assert_int_equal(turn(), CALLBACK_TURN_RAN);
    assert_int_equal(runs(), 2);
    assert_int_equal(turn(), CALLBACK_TURN_EMPTY);
}

/* With more cookies than segments the newest segment takes all further callbacks; none runs too
 * early, and none waits for ever. */
TEST(segments_run_out, set_up)
{
    static struct prudence_head heads[10];

    for (unsigned i = 0; i < 10; i++) {
        push(queue, &heads[i]);
        turn();
        prudence_manual_advance(domain);
        assert_true(runs() <= i);
        if (i >= 1)
            assert_true(runs() >= i - 1);
    }
    turn();
    assert_int_equal(runs(), 10);
}

static void *barrier(void *over)
{
    callback_barrier(queue);
    __atomic_store_n((bool *)over, true, __ATOMIC_SEQ_CST);
    return NULL;
}

static void wait_for_watcher(void)
{
    while (!__atomic_load_n(&queue->watchers, __ATOMIC_SEQ_CST))
        sched_yield();
}

/* A barrier is not ended by a check that began before it, nor by a callback that has only begun. */
TEST(a_barrier_waits, set_up)
{
    static struct prudence_head head;
    static bool over;
    pthread_t thread;

    push(queue, &head);
    pthread_create(&thread, NULL, barrier, &over);
    wait_for_watcher();
    assert_int_equal(turn(), CALLBACK_TURN_WAITS);
    assert_int_equal(turn(), CALLBACK_TURN_WAITS);
    assert_false(__atomic_load_n(&over, __ATOMIC_SEQ_CST));
    prudence_manual_advance(domain);
    assert_int_equal(turn(), CALLBACK_TURN_RAN);
    pthread_join(thread, NULL);
    assert_int_equal(runs(), 1);
}

/* A callback is pushed after the worker's first check, before the worker announces sleep.
 * No thread wakes the worker, so it has to check a second time. */
TEST(a_worker_looks_twice, set_up)
{
    static struct prudence_head head;

    assert_int_equal(turn(), CALLBACK_TURN_EMPTY);
    push(queue, &head);
    assert_false(callback_worker_may_sleep(worker));
    assert_int_equal(worker->awake, 1);
    prudence_manual_advance(domain);
    turn();
    assert_int_equal(runs(), 1);
}

/* The worker rests once after callbacks have run, whether others wait by then or not. */
TEST(a_worker_rests_once, set_up)
{
    bool rested = true;

    assert_int_equal(callback_worker_pause_after(CALLBACK_TURN_WAITS, &rested), CALLBACK_POLL);
    assert_int_equal(callback_worker_pause_after(CALLBACK_TURN_RAN, &rested), CALLBACK_NO_PAUSE);
    assert_int_equal(callback_worker_pause_after(CALLBACK_TURN_RAN, &rested), CALLBACK_NO_PAUSE);
    assert_int_equal(callback_worker_pause_after(CALLBACK_TURN_WAITS, &rested), CALLBACK_REST);
    assert_int_equal(callback_worker_pause_after(CALLBACK_TURN_WAITS, &rested), CALLBACK_POLL);
    assert_int_equal(callback_worker_pause_after(CALLBACK_TURN_RAN, &rested), CALLBACK_NO_PAUSE);
    assert_int_equal(callback_worker_pause_after(CALLBACK_TURN_EMPTY, &rested), CALLBACK_REST);
    assert_int_equal(callback_worker_pause_after(CALLBACK_TURN_LATER, &rested), CALLBACK_LONG_REST);
    assert_int_equal(callback_worker_pause_after(CALLBACK_TURN_EMPTY, &rested), CALLBACK_SLEEP);
}

/* A push does not end the rest, unless much is queued; a waiter does. */
TEST(a_rest_is_ended_for_who_waits, set_up)
{
    static struct prudence_head few, many;

    worker->awake = CALLBACK_RESTS;
    few.func = many.func = count;
    assert_false(callback_push(queue, &few, 16));
    assert_int_equal(worker->awake, CALLBACK_RESTS);
    assert_true(callback_push(queue, &many, 65536));
    assert_int_equal(worker->awake, CALLBACK_AWAKE);
    worker->awake = CALLBACK_RESTS;
    callback_worker_look_at(queue);
    assert_int_equal(worker->awake, CALLBACK_AWAKE);
    worker->awake = CALLBACK_RESTS;
    callback_worker_nudge();
    assert_int_equal(worker->awake, CALLBACK_AWAKE);
    while (runs() < 2) {
        turn();
        prudence_manual_advance(domain);
    }
}

/* A callback is pushed after the worker's second check: the push finds the worker asleep, and
 * wakes it. */
TEST(a_sleeping_worker_is_woken, set_up)
{
    static struct prudence_head head;

    assert_true(callback_worker_may_sleep(worker));
    assert_int_equal(worker->awake, 0);
    push(queue, &head);
    assert_int_equal(worker->awake, 1);
    turn();
    prudence_manual_advance(domain);
    turn();
    assert_int_equal(runs(), 1);
}

/* A cache that cannot end yet tries again and again, which is no work done: the worker pauses
 * between its tries, and does not fall asleep. */
TEST(a_cache_that_cannot_end_yet_is_no_work, set_up)
{
    struct prudence_domain *hazards = prudence_domain_create("own", PRUDENCE_DOMAIN_HAZARD, NULL);
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = hazards};
    struct prudence_cache *cache = prudence_cache_create("named", 64, &attr);
    struct prudence_hazard *slot = prudence_hazard_acquire_movable();
    void *object = prudence_cache_alloc(cache);
    unsigned tries = 0;

    prudence_hazard_set(slot, object);
    prudence_cache_free_deferred(cache, object);
    assert_int_equal(prudence_cache_destroy_later(cache), 0);
    for (unsigned i = 0; i < 20; i++) {
        enum callback_turn is = turn();

        assert_true(is == CALLBACK_TURN_LATER || is == CALLBACK_TURN_WAITS);
        tries += is == CALLBACK_TURN_LATER;
    }
    assert_true(tries > 0);
    prudence_hazard_release(slot);
    while (turn() != CALLBACK_TURN_RAN)
        ;
    assert_int_equal(prudence_domain_destroy(hazards), 0);
}

static struct prudence_domain *ending;
static bool waits_at_end;
static int destroyed_at_end;

static void destroy_at_end(void *unused)
{
    waits_at_end = callback_queue_waits(ending->callbacks);
    if (waits_at_end) /* otherwise the thread would wait for itself */
        destroyed_at_end = prudence_domain_destroy(ending);
}

/* A function around callbacks is refused what a callback is refused: the end of its domain. */
TEST(the_end_of_a_turn_keeps_its_domain, set_up)
{
    static struct prudence_head head;

    ending = prudence_domain_create("ending", PRUDENCE_DOMAIN_MANUAL, NULL);
    assert_int_equal(prudence_domain_call_around(ending, 0, NULL, destroy_at_end, NULL), 0);
    push(ending->callbacks, &head);
    turn();
    prudence_manual_advance(ending);
    assert_int_equal(turn(), CALLBACK_TURN_RAN);
    assert_int_equal(runs(), 1);
    assert_true(waits_at_end);
    assert_int_equal(destroyed_at_end, EBUSY);
    assert_int_equal(prudence_domain_destroy(ending), 0);
}

#if STEP_POSSIBLE

/* ------------------------------------------------------------------- instruction by instruction */

static unsigned steps, at_step;
static struct prudence_head the_head;
static bool may_sleep;

static void finish_head(void)
{
    while (!runs()) {
        turn();
        prudence_manual_advance(domain);
    }
    turn();
}

/* Covers all of the first instructions, where a worker announces sleep, and a sample of the
 * others, because most instructions of a check of the lanes do not matter. */
#define EACH_OF_THE_FIRST 48
#define OF_THE_OTHERS     24

static unsigned next_step(unsigned step, unsigned all)
{
    return step < EACH_OF_THE_FIRST ? step + 1 : step + 1 + all / OF_THE_OTHERS;
}

static void only_count(const greg_t *registers)
{
    steps++;
}

static unsigned count_steps(void (*body)(void *argument))
{
    set_up(NULL);
    steps = 0;
    step_through(body, NULL, only_count);
    return steps;
}

static void push_at_step(const greg_t *registers)
{
    if (steps++ != at_step)
        return;
    push(queue, &the_head);
    step_enough = true;
}

static void go_to_sleep(void *unused)
{
    may_sleep = callback_worker_may_sleep(worker);
}

/* A whole push between any two instructions of a worker that goes to sleep: the worker never
 * sleeps with a callback pending. */
TEST(no_push_is_slept_on, set_up)
{
    unsigned all = count_steps(go_to_sleep);

    for (at_step = 0; at_step < all; at_step = next_step(at_step, all)) {
        set_up(NULL);
        steps = 0;
        step_through(go_to_sleep, NULL, push_at_step);
        if (may_sleep && !worker->awake)
            fail_msg("the worker sleeps on what was pushed before its step %u", at_step);
        finish_head();
    }
    assert_true(all > EACH_OF_THE_FIRST);
}

static void sleep_at_step(const greg_t *registers)
{
    if (steps++ != at_step)
        return;
    go_to_sleep(NULL);
    step_enough = true;
}

static void push_the_head(void *unused)
{
    push(queue, &the_head);
}

/* The reverse: a worker that goes to sleep between any two instructions of a push. */
TEST(no_sleep_goes_unnoticed, set_up)
{
    unsigned all = count_steps(push_the_head);

    finish_head();
    for (at_step = 0; at_step < all; at_step = next_step(at_step, all)) {
        set_up(NULL);
        steps = 0;
        step_through(push_the_head, NULL, sleep_at_step);
        if (may_sleep && !worker->awake)
            fail_msg("the worker went to sleep at step %u of a push, and is not woken", at_step);
        finish_head();
    }
    assert_true(all > 10);
}

static void serve(void *unused)
{
    turn();
}

static bool returned;

static void returns(struct prudence_head *head)
{
    returned = true;
}

static uint64_t weighed;
static bool half_done; /* while the runner is not busy, so that another thread may fork */

static void find_unweighed(const greg_t *registers)
{
    half_done |= queue->current && !queue->busy && queue->bytes_left == weighed;
}

/* A child in which the callback counts as done has counted its bytes. */
TEST(a_callback_is_weighed_before_a_fork, set_up)
{
    static struct prudence_head head;

    half_done = false;
    weighed = queue->bytes_left;
    push(queue, &head);
    for (unsigned i = 0; i < 3; i++) {
        step_through(serve, NULL, find_unweighed);
        prudence_manual_advance(domain);
    }
    assert_int_equal(runs(), 1);
    assert_int_not_equal(queue->bytes_left, weighed);
    assert_false(half_done);
}

static void do_nothing(void *argument)
{
}

static void change_around(void *argument)
{
    prudence_domain_call_around(domain, 0, argument ? do_nothing : NULL, NULL, argument);
}

static void find_half_changed(const greg_t *registers)
{
    half_done |= !queue->busy && !queue->around.begin != !queue->around.argument;
}

/* A child calls none of the functions around callbacks with another's argument. */
TEST(the_functions_around_callbacks_change_together, set_up)
{
    half_done = false;
    step_through(change_around, &steps, find_half_changed);
    assert_ptr_equal(queue->around.argument, &steps);
    change_around(NULL);
    assert_false(half_done);
}

static struct callback_queue *moved_to;

/* Checks as a barrier does: at the queue, and then at the queue that the callback may have been
 * moved to. */
static void must_be_pending(const greg_t *registers)
{
    steps++;
    if (!returned && !callback_queue_is_pending(queue) &&
        (!moved_to || !callback_queue_is_pending(moved_to)))
        fail_msg("at step %u the callback is nowhere, and has not returned", steps);
}

/* A callback is pending from push to return: a barrier may ask at any moment. */
TEST(a_callback_is_always_somewhere, set_up)
{
    static struct prudence_head head;

    steps = 0;
    returned = false;
    head.func = returns;
    callback_push(queue, &head, 0);
    for (unsigned i = 0; i < 3; i++) {
        step_through(serve, NULL, must_be_pending);
        prudence_manual_advance(domain);
    }
    assert_true(returned);
    assert_false(callback_queue_is_pending(queue));
    assert_true(steps > 100);
}

static void move(void *unused)
{
    callback_worker_move_queue(queue, moved_to);
}

/* Checks the same while the queue is moved. `detached`: the callback already has a cookie. There
 * is one callback only, because another would make its queue pending. */
static void move_one(bool detached)
{
    static struct prudence_head head;
    struct callback_queue *saved = queue;
    struct callback_worker *own;

    steps = 0;
    returned = false;
    moved_to = domain->callbacks;
    queue = callback_queue_make(domain, 1);
    own = callback_worker_make(queue, -1, false);
    own->started = own->awake = 1;
    head.func = returns;
    callback_push(queue, &head, 0);
    if (detached)
        callback_worker_serve_all(own);
    own->started = 0; /* the thread has ended as requested */
    step_through(move, NULL, must_be_pending);
    assert_false(callback_queue_is_pending(queue));
    assert_true(callback_queue_is_pending(moved_to));
    callback_queue_release(queue);
    callback_worker_release(own);
    queue = saved;
    moved_to = NULL;
    while (!returned) {
        turn();
        prudence_manual_advance(domain);
    }
}

TEST(a_callback_that_moves_is_somewhere, set_up)
{
    move_one(false);
    move_one(true);
}

static bool slept;
static uint32_t *held; /* by a runner without a CPU */

static void ask_whether_it_waits(void *unused)
{
    callback_queue_waits(queue);
}

/* The runner gets a CPU when the asking thread sleeps. */
static void go_on_when_it_sleeps(const greg_t *registers)
{
    slept = step_is_at_call(registers, SYS_futex); /* os_sleep_ns */
    if (!slept && ++steps < 1000000)
        return;
    store_release(held, 0u);
    step_enough = true;
}

static void must_sleep(void (*body)(void *argument), uint32_t *word)
{
    steps = 0;
    held = word;
    store_relaxed(held, 1u);
    step_through(body, NULL, go_on_when_it_sleeps);
    assert_true(slept);
}

/* A runner of lower priority is never on a CPU while the asking thread spins. */
TEST(a_runner_gets_the_cpu, set_up)
{
    must_sleep(ask_whether_it_waits, &queue->busy);
    must_sleep(change_around, &queue->running);
}

/* -------------------------------------------------------------------- liburcu's workers of CPUs */

static struct rcu_head of_urcu;
static bool is_queued, was_inside; /* when the callback was queued */

static void call_of_urcu(void *unused)
{
    prudence_urcu_call(NULL, &of_urcu, (void (*)(struct rcu_head *))(void (*)(void))count);
}

/* The callback is in one of the queues, although no thread serves any. */
static bool some_queue_is_pending(void)
{
    struct list *at, *item;

    list_for_each(at, &callback_workers)
    {
        list_for_each(item, &list_entry(at, struct callback_worker, link)->queues)
        {
            if (callback_queue_is_pending(list_entry(item, struct callback_queue, link)))
                return true;
        }
    }
    return false;
}

/* Comes before each instruction. Notes whether the one that queued was in a section. */
static void make_workers_at_step(const greg_t *registers)
{
    struct list *at;

    if (!is_queued) {
        was_inside = prudence_read_lock_held();
        is_queued = some_queue_is_pending();
    }
    if (steps++ == at_step) {
        prudence_urcu_create_all(NULL, 0);
        list_for_each(at, &callback_workers)
        {
            struct callback_worker *made = list_entry(at, struct callback_worker, link);

            made->started = made->awake = 1; /* no thread can be made in steps */
        }
    }
}

enum { RIGHT, FREED_UNDER_IT, NO_SUCH_STEP };

/* Whichever queue has the callback, its worker cannot be freed in the midst of the call. */
static int call_in_child(void)
{
    pretend_a_thread();
    prudence_urcu_default(NULL);
    prudence_read_lock(); /* so that its first section is not in steps */
    prudence_read_unlock();
    steps = 0;
    step_through(call_of_urcu, NULL, make_workers_at_step);
    if (steps <= at_step)
        return NO_SUCH_STEP;
    return was_inside || callback_queue_is_pending(prudence_default.callbacks) ? RIGHT
                                                                               : FREED_UNDER_IT;
}

/* All CPUs get workers between any two instructions of a call. */
TEST(a_worker_of_a_cpu_is_found_in_a_section, set_up)
{
    int status = RIGHT;

    for (at_step = 0; status == RIGHT; at_step++) {
        pid_t child = fork();

        if (child == 0)
            _exit(call_in_child());
        status = status_of(child);
        assert_true(WIFEXITED(status));
        status = WEXITSTATUS(status);
    }
    assert_int_equal(status, NO_SUCH_STEP);
    assert_true(at_step > 10);
}

static struct call_rcu_data *made;
static bool is_child;
static unsigned hung; /* the step of the child that did not end */

static void barrier_of_urcu(void *unused)
{
    prudence_urcu_barrier(NULL);
}

/* The child goes on with the barrier. */
static void fork_at_each_step(const greg_t *registers)
{
    pid_t child = fork();

    steps++;
    if (child) {
        hung = status_of(child) ? steps : 0;
        step_enough = hung;
        return;
    }
    alarm(patience(3));
    is_child = step_enough = true;
}

/* A handler that forks between any two instructions of a barrier: in the child nothing pins a
 * worker when that barrier is over. */
TEST(a_child_pins_what_its_thread_pinned, set_up)
{
    steps = 0;
    made = prudence_urcu_create(NULL, 0, -1);
    step_through(barrier_of_urcu, NULL, fork_at_each_step);
    prudence_urcu_free(made);
    if (is_child)
        _exit(0);
    assert_true(steps > 100);
    assert_int_equal(hung, 0);
}

/* ------------------------------------------------------------------------- destroying a domain */

static struct prudence_domain *visited;
static bool is_visited;
static int destroyed;

static void destroy_visited(void *unused)
{
    destroyed = prudence_domain_destroy(visited);
}

/* The visitor leaves when the destroyer has slept a few times. gp_check keeps a dead domain in
 * memory, so the test may read it. */
static void leave_late(const greg_t *registers)
{
    if (is_visited && load_relaxed(&visited->life) != DOMAIN_LIVE)
        fail_msg("a domain was destroyed under a thread that reads it");
    if (is_visited && step_is_at_call(registers, SYS_futex) && ++steps == 3) { /* os_sleep_ns */
        gp_domain_leave(visited);
        is_visited = false;
    }
}

TEST(destroying_a_domain_waits_for_visitors, set_up)
{
    struct prudence_domain *domains[16];
    unsigned count, others;
    uint64_t after = 0;

    gp_check = true;
    steps = 0;
    visited = prudence_domain_create("visited", PRUDENCE_DOMAIN_MEMB, NULL);
    gp_domain_get(visited);
    count = gp_domains_visit(domains, 16, &after);
    for (others = 0; others < count; others++) {
        is_visited |= domains[others] == visited;
        if (domains[others] != visited)
            gp_domain_leave(domains[others]);
    }
    assert_true(is_visited);
    gp_domain_put(visited);
    step_through(destroy_visited, NULL, leave_late);
    assert_int_equal(destroyed, 0);
    assert_false(is_visited);
    assert_int_equal(visited->life, DOMAIN_DEAD);
}

#endif

SUITE(alarm(patience(110)))
