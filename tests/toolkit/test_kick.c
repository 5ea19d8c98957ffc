/* SPDX-License-Identifier: MIT */
/*
 * A thread that blocks a grace period is notified by the function that it gave: once a
 * section, by the thread that drives, and never after it took the function back, ended or forked.
 * The reader is a thread of its own; this one drives, so it makes the calls.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <prudence/epoch.h>
#include <prudence/prudence.h>

#include "gp/user/domain.h"
#include "gp/user/readers.h"
#include "os/posix/posix.h"
#include "support/actor.h"
#include "support/gp_child.h"
#include "support/step.h"
#include "support/threads.h"

static struct prudence_domain *domain;
static struct actor reader;
static struct reader_slot *slot; /* the reader's */
static unsigned calls, wrong;
static void (*in_call)(void); /* what a call does in addition */

static void count_call(void *argument)
{
    int cancelable;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelable);
    wrong += os_locks_held() != 0 || os_busy != 0 || argument != &calls ||
             cancelable != PTHREAD_CANCEL_DISABLE;
    errno = EDOM;
    calls++;
    if (in_call)
        in_call();
}

static struct prudence_kick kick = {
    .size = sizeof kick, .function = count_call, .argument = &calls};

static int sets(void *which)
{
    int result = prudence_kick_set(domain, which);

    slot = readers_slot_if_any(domain);
    return result;
}

static int enters(void *unused)
{
    if (domain->kind == PRUDENCE_DOMAIN_QSBR)
        prudence_qsbr_online(domain);
    else
        prudence_domain_read_lock(domain);
    return 0;
}

static int leaves(void *unused)
{
    if (domain->kind == PRUDENCE_DOMAIN_QSBR)
        prudence_qsbr_offline(domain);
    else
        prudence_domain_read_unlock(domain);
    return 0;
}

static void start(enum prudence_domain_kind kind)
{
    domain = prudence_domain_create("kicked", kind, NULL);
    assert_non_null(domain);
    calls = wrong = 0;
    in_call = NULL;
    kick.after = 0;
    actor_start(&reader);
    assert_int_equal(does(&reader, sets, &kick), 0);
}

static void end(void)
{
    actor_end(&reader);
    assert_int_equal(wrong, 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static int set_up(void **state)
{
    start(PRUDENCE_DOMAIN_QSBR);
    return 0;
}

static int tear_down(void **state)
{
    end();
    return 0;
}

/* Returns whether a grace period that begins now ends at once. */
static bool drive(void)
{
    return prudence_domain_poll_state(domain, prudence_domain_start_poll(domain));
}

/* ------------------------------------------------------------------------------------ calls */

static void called_once_a_section(void)
{
    assert_true(drive()); /* the reader is outside */
    assert_int_equal(calls, 0);
    for (unsigned section = 1; section <= 3; section++) {
        does(&reader, enters, NULL);
        assert_int_equal(calls, section - 1); /* no thread checks */
        errno = 0;
        for (int i = 0; i < 10; i++)
            assert_false(drive());
        assert_int_equal(errno, 0);
        assert_int_equal(calls, section);
        does(&reader, leaves, NULL);
        drive();
        assert_true(drive());
        assert_int_equal(calls, section);
    }
}

TEST(told_once_a_section)
{
    static const enum prudence_domain_kind kinds[] = {PRUDENCE_DOMAIN_QSBR, PRUDENCE_DOMAIN_MEMB,
                                                      PRUDENCE_DOMAIN_SRCU};

    for (unsigned i = 0; i < 3; i++) {
        start(kinds[i]);
        called_once_a_section();
        end();
    }
}

/* A section that was entered after the grace period began is not blocking. */
TEST(not_told_of_the_next_section, set_up, tear_down)
{
    prudence_gp_t cookie = prudence_domain_start_poll(domain);

    does(&reader, enters, NULL);
    assert_true(prudence_domain_poll_state(domain, cookie));
    assert_int_equal(calls, 0);
    does(&reader, leaves, NULL);
}

static int is_quiescent(void *unused)
{
    prudence_qsbr_quiescent(domain);
    return 0;
}

TEST(an_online_thread_is_told_once_for_each_epoch, set_up, tear_down)
{
    does(&reader, enters, NULL);
    for (unsigned epoch = 1; epoch <= 5; epoch++) {
        prudence_gp_t cookie = prudence_domain_start_poll(domain);

        assert_false(prudence_domain_poll_state(domain, cookie));
        assert_false(prudence_domain_poll_state(domain, cookie));
        assert_int_equal(calls, epoch);
        does(&reader, is_quiescent, NULL);
        assert_true(prudence_domain_poll_state(domain, cookie));
    }
    does(&reader, leaves, NULL);
}

TEST(told_when_the_time_is_over, set_up, tear_down)
{
    kick.after = os_clock_ns() / 4; /* too long to pass in the test */
    does(&reader, enters, NULL);
    assert_false(drive());
    assert_false(drive());
    assert_int_equal(calls, 0);
    slot->stall_since -= 2 * kick.after;
    assert_false(drive());
    assert_int_equal(calls, 1);
    does(&reader, leaves, NULL);
}

static int drives(void *unused)
{
    return drive();
}

TEST(nobody_calls_its_own_function, set_up, tear_down)
{
    does(&reader, enters, NULL);
    assert_int_equal(does(&reader, drives, NULL), 0);
    assert_int_equal(calls, 0);
    assert_false(drive());
    assert_int_equal(calls, 1);
    does(&reader, leaves, NULL);
}

/* A thread that allocates drives as well, when a grace period is due. */
TEST(an_allocating_thread_tells, set_up, tear_down)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
    struct prudence_cache *cache = prudence_cache_create("kicked", 4096, &attr);

    does(&reader, enters, NULL);
    for (int i = 0; i < 100000 && !calls; i++)
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    assert_int_equal(calls, 1);
    does(&reader, leaves, NULL);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

#if STEP_POSSIBLE
/* ------------------------------------------------------------------- instruction by instruction */

static unsigned steps, at_step;
static prudence_gp_t under_way;

static int begins_another_section(void *unused)
{
    leaves(NULL);
    return enters(NULL);
}

static void reader_moves_at_step(const greg_t *registers)
{
    if (steps++ != at_step)
        return;
    does(&reader, begins_another_section, NULL);
    step_enough = true;
}

static void drives_on(void *unused)
{
    prudence_domain_poll_state(domain, under_way);
}

/* Begins a grace period that the reader's section blocks, and expects one call. */
static void expect_to_be_told(void)
{
    const unsigned before = calls;

    under_way = prudence_domain_start_poll(domain);
    for (int i = 0; i < 3; i++) /* perhaps the grace period before ends first */
        assert_false(prudence_domain_poll_state(domain, under_way));
    if (calls != before + 1)
        fail_msg("step %u: notified %u times of a blocking section", at_step, calls - before);
}

/* The reader leaves and begins a section between any two instructions of a driver that has found
 * the section before blocking. The new one is notified of when it is blocking itself: not before,
 * since it would not be notified again. */
static void moves_at_each_step(enum prudence_domain_kind kind)
{
    start(kind);
    for (at_step = steps = 0; steps >= at_step; at_step++) {
        does(&reader, enters, NULL);
        expect_to_be_told();
        steps = 0;
        step_through(drives_on, NULL, reader_moves_at_step);
        if (steps > at_step)
            expect_to_be_told();
        does(&reader, leaves, NULL);
        while (!drive())
            ;
    }
    assert_true(at_step > 50);
    end();
}

TEST(a_newer_section_is_told_of_when_it_is_in_the_way)
{
    moves_at_each_step(PRUDENCE_DOMAIN_MEMB);
    moves_at_each_step(PRUDENCE_DOMAIN_QSBR);
}
#endif

/* ----------------------------------------------------------------------------------- its end */

TEST(not_told_after_it_took_the_function_back, set_up, tear_down)
{
    does(&reader, enters, NULL);
    assert_int_equal(does(&reader, sets, NULL), 0);
    assert_false(drive());
    assert_int_equal(does(&reader, sets, &kick), 0);
    assert_false(drive());
    assert_int_equal(calls, 1);
    does(&reader, leaves, NULL);
}

/* A thread that sets another function in the midst of a section is notified by that one as well. */
TEST(a_function_that_replaces_another_tells, set_up, tear_down)
{
    does(&reader, enters, NULL);
    for (unsigned i = 1; i <= 3; i++) {
        assert_false(drive());
        assert_false(drive());
        assert_int_equal(calls, i);
        assert_int_equal(does(&reader, sets, &kick), 0);
    }
    does(&reader, leaves, NULL);
}

static sem_t go_on;
static uint32_t returned, in_it;

static void waits_in_call(void)
{
    store_release(&in_it, 1u);
    while (sem_wait(&go_on))
        ;
}

static void *drives_once(void *unused)
{
    drive();
    return NULL;
}

static void *takes_back(void *unused)
{
    does(&reader, sets, NULL);
    store_release(&returned, 1u);
    return NULL;
}

static void *ends(void *unused)
{
    actor_end(&reader);
    store_release(&returned, 1u);
    return NULL;
}

/* Has another thread call, and while that call runs, the reader do what ends the function. */
static void expect_to_wait_for_the_call(void *(*what)(void *), bool inside)
{
    pthread_t driver, taker;

    returned = in_it = 0;
    sem_init(&go_on, 0, 0);
    in_call = waits_in_call;
    does(&reader, enters, NULL);
    driver = thread_start(drives_once, NULL);
    while (!load_acquire(&in_it))
        sched_yield();
    if (!inside)
        does(&reader, leaves, NULL);
    taker = thread_start(what, NULL);
    while (load_acquire(&slot->kick))
        sched_yield();
    for (int i = 0; i < 100; i++)
        sched_yield();
    assert_int_equal(load_acquire(&returned), 0);
    sem_post(&go_on);
    pthread_join(taker, NULL);
    pthread_join(driver, NULL);
    in_call = NULL;
    assert_int_equal(calls, 1);
    assert_int_equal(load_relaxed(&slot->kicking), 0);
}

TEST(to_take_it_back_waits_for_a_call_that_runs, set_up, tear_down)
{
    expect_to_wait_for_the_call(takes_back, true);
    assert_false(drive());
    assert_int_equal(calls, 1);
    does(&reader, leaves, NULL);
}

TEST(the_end_of_the_thread_waits_for_a_call_that_runs)
{
    set_up(NULL);
    expect_to_wait_for_the_call(ends, false);
    assert_null(slot->kick);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static int ends_inside(void)
{
    start(PRUDENCE_DOMAIN_MEMB);
    does(&reader, enters, NULL);
    actor_end(&reader);
    while (!drive())
        ;
    return (int)calls;
}

/* The thread's stack, where the argument may be, is gone. */
TEST(a_thread_that_ended_inside_is_not_told)
{
    expect_exit(0, ends_inside(), "");
}

#if !defined(__SANITIZE_THREAD__) /* which sees nothing of the last round */
static pthread_key_t key;
static int results[PTHREAD_DESTRUCTOR_ITERATIONS];
static unsigned rounds;

static void sets_in_a_destructor(void *value)
{
    results[rounds++] = prudence_kick_set(domain, &kick);
    if (rounds < PTHREAD_DESTRUCTOR_ITERATIONS)
        pthread_setspecific(key, value);
}

static void *registers_as_it_ends(void *unused)
{
    prudence_qsbr_online(domain);
    prudence_qsbr_offline(domain);
    pthread_setspecific(key, &key);
    return NULL;
}

/* The library's destructor runs before the test's, whose key is newer. */
TEST(refused_in_the_last_round_of_destructors, set_up, tear_down)
{
    struct reader_chunk *chunk;
    struct reader_slot *any;

    assert_int_equal(pthread_key_create(&key, sets_in_a_destructor), 0);
    in_thread(registers_as_it_ends, NULL);
    pthread_key_delete(key);
    assert_int_equal(rounds, PTHREAD_DESTRUCTOR_ITERATIONS);
    assert_int_equal(results[0], 0);
    assert_int_equal(results[rounds - 1], ESRCH);
    for (chunk = domain->chunks; chunk; chunk = chunk->next)
        for (any = chunk->slots; any < chunk->slots + SLOTS_IN_CHUNK; any++)
            assert_true(any == slot || !load_relaxed(&any->kick));
}
#endif

/* ------------------------------------------------------------------------- signals and forks */

static pthread_t told_thread;
static uint32_t handled;

static void handler(int number)
{
    prudence_qsbr_quiescent(domain);
    store_release(&handled, 1u);
}

static void signals(void *unused)
{
    pthread_kill(told_thread, SIGUSR1);
}

static int sleeps_online(void *unused)
{
    static struct prudence_kick by_signal = {.size = sizeof by_signal, .function = signals};

    told_thread = pthread_self();
    prudence_qsbr_online(domain);
    prudence_kick_set(domain, &by_signal);
    store_release(&in_it, 1u);
    while (!load_acquire(&handled))
        usleep(100);
    prudence_qsbr_offline(domain);
    return prudence_kick_set(domain, NULL);
}

static void *tells_sleeper(void *result)
{
    *(int *)result = does(&reader, sleeps_online, NULL);
    return NULL;
}

/* The handler passes the quiescent state, wherever the thread is. */
TEST(told_by_a_signal, set_up, tear_down)
{
    struct sigaction action = {.sa_handler = handler}, before;
    prudence_gp_t cookie;
    pthread_t thread;
    int result = -1;

    in_it = handled = 0;
    sigaction(SIGUSR1, &action, &before);
    thread = thread_start(tells_sleeper, &result);
    while (!load_acquire(&in_it))
        sched_yield();
    cookie = prudence_domain_start_poll(domain);
    while (!prudence_domain_poll_state(domain, cookie))
        sched_yield();
    pthread_join(thread, NULL);
    assert_int_equal(result, 0);
    sigaction(SIGUSR1, &before, NULL);
}

/* The forking thread's function is its parent's, which shares the descriptor that it writes to. */
static int has_none_in_the_child(void *unused)
{
    struct reader_slot *own = readers_slot_if_any(domain);
    int bad = own->kick || own->kicking;

    bad += prudence_kick_set(domain, &kick) != 0 || own->kick != &kick;
    prudence_qsbr_offline(domain);
    return bad;
}

TEST(a_forked_child_has_none, set_up, tear_down)
{
    struct child_result result;

    assert_int_equal(prudence_kick_set(domain, &kick), 0);
    prudence_qsbr_online(domain);
    readers_slot_if_any(domain)->kicking = 1; /* as if another thread were calling */
    child_run(has_none_in_the_child, NULL, &result);
    readers_slot_if_any(domain)->kicking = 0;
    assert_true(child_exited_with(&result, 0));
    prudence_qsbr_offline(domain);
    assert_int_equal(prudence_kick_set(domain, NULL), 0);
}

static pid_t forked;

static void forks(void)
{
    forked = fork();
}

/* In the child the call returns to a slot that was forgotten in between. */
TEST(a_fork_in_a_call, set_up, tear_down)
{
    int status;

    in_call = forks;
    does(&reader, enters, NULL);
    assert_false(drive());
    if (!forked)
        _exit(slot->kicking || slot->kick || !drive());
    assert_int_equal(waitpid(forked, &status, 0), forked);
    assert_int_equal(status, 0);
    does(&reader, leaves, NULL);
}

/* --------------------------------------------------------------------------------- refusals */

static int refuses(void)
{
    struct prudence_domain *member = prudence_default_domain();
    struct prudence_domain *set = prudence_domain_create_set("set", &member, 1);
    struct prudence_domain *manual = prudence_domain_create("own", PRUDENCE_DOMAIN_MANUAL, NULL);
    struct prudence_kick small = kick, idle = kick;

    small.size--;
    idle.function = NULL;
    return prudence_kick_set(set, &kick) != EINVAL || prudence_kick_set(manual, NULL) != EINVAL ||
           prudence_kick_set(member, &small) != EINVAL ||
           prudence_kick_set(member, &idle) != EINVAL || prudence_kick_set(member, NULL) != 0 ||
           prudence_kick_set(member, &kick) != 0;
}

TEST(bad_input_is_named)
{
    expect_exit(0, refuses(), "");
    assert_true(said("no thread searches for readers of domain 'set', which is set"));
    assert_true(said("no thread searches for readers of domain 'own', which is manual"));
    assert_true(said("prudence_kick_set: domain 'default': kick->size is 31"));
    assert_true(said("kick->function is NULL"));
}

SUITE()
