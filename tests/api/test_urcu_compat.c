/* SPDX-License-Identifier: MIT */
/*
 * liburcu's interface on ours: both kinds of flavours, workers, barriers, deferred calls, fork.
 *
 * ctest: needs liburcu
 */
#define _GNU_SOURCE
#define _LGPL_SOURCE /* a program that wants liburcu's inline functions */
#include <urcu.h>    /* first, to test the headers that programs expect it to include */
#if !defined(assert) || !defined(_URCU_WFCQUEUE_H)
#error "liburcu's <urcu.h> includes <assert.h> and <urcu/wfcqueue.h>"
#endif
#if !defined(CDS_LIST_HEAD_INIT) || !defined(DEFINE_URCU_TLS) || !defined(FUTEX_WAIT)
#error "with _LGPL_SOURCE, <urcu.h> includes <urcu/list.h> and others"
#endif

#include <errno.h>
#include <sched.h>

#include <urcu-bp.h>
#include <urcu-call-rcu.h>
#include <urcu-defer.h>
#include <urcu-pointer.h>
#include <urcu-poll.h>
#include <urcu-qsbr.h>
#include <urcu/futex.h>
#include <urcu.h> /* last, because it defines the names without a flavour */

#include "os/os.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/suite.h"
#include "support/threads.h"

#define HEADS 500

static struct rcu_head heads[HEADS];
static unsigned ran;
static pthread_t ran_on;

static void count(struct rcu_head *head)
{
    ran_on = pthread_self();
    __atomic_fetch_add(&ran, 1, __ATOMIC_SEQ_CST);
}

static void call_all(void)
{
    __atomic_store_n(&ran, 0, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < HEADS; i++)
        call_rcu(&heads[i], count);
}

static void barrier_and_count(void)
{
    rcu_barrier();
    assert_int_equal(__atomic_load_n(&ran, __ATOMIC_SEQ_CST), HEADS);
}

TEST(the_plain_names)
{
    static int value = 4711, *pointer, *old;
    struct urcu_gp_poll_state poll;

    rcu_init();
    rcu_register_thread();
    rcu_assign_pointer(pointer, &value);
    rcu_read_lock();
    assert_true(rcu_read_ongoing());
    assert_int_equal(*rcu_dereference(pointer), 4711);
    rcu_read_unlock();
    assert_false(rcu_read_ongoing());
    old = rcu_xchg_pointer(&pointer, NULL);
    assert_ptr_equal(old, &value);
    assert_null(rcu_cmpxchg_pointer(&pointer, NULL, &value));
    assert_ptr_equal(rcu_cmpxchg_pointer(&pointer, NULL, NULL), &value);
    rcu_set_pointer(&pointer, NULL);
    assert_null(pointer);
    rcu_quiescent_state();
    rcu_thread_offline();
    rcu_thread_online();
    synchronize_rcu();
    poll = start_poll_synchronize_rcu();
    while (!poll_state_synchronize_rcu(poll))
        ;
    call_all();
    barrier_and_count();
    assert_int_equal(rcu_flavor.read_ongoing(), 0);
    rcu_flavor.read_lock();
    assert_true(urcu_memb_read_ongoing());
    rcu_flavor.read_unlock();
    rcu_unregister_thread();
}

TEST(qsbr_is_a_flavour_of_its_own)
{
    urcu_qsbr_register_thread();
    assert_true(urcu_qsbr_read_ongoing());
    urcu_qsbr_read_lock();
    urcu_qsbr_read_unlock();
    urcu_qsbr_synchronize_rcu(); /* is offline for the call */
    assert_true(urcu_qsbr_read_ongoing());
    ran = 0;
    urcu_qsbr_call_rcu(&heads[0], count);
    urcu_qsbr_barrier();
    assert_int_equal(ran, 1);
    urcu_qsbr_quiescent_state();
    urcu_qsbr_thread_offline();
    assert_false(urcu_qsbr_read_ongoing());
    synchronize_rcu(); /* waits for no reader of qsbr */
    urcu_qsbr_unregister_thread();
}

static void *ask_before_it_was_online(void *domain)
{
    const struct prudence_reader *nobody;

    assert_false(urcu_qsbr_read_ongoing());
    nobody = prudence_urcu_qsbr_self;
    urcu_qsbr_quiescent_state(); /* reports no quiescent state, and registers no thread */
    assert_ptr_equal(prudence_urcu_qsbr_self, nobody);
    urcu_qsbr_register_thread();
    assert_true(urcu_qsbr_read_ongoing());
    assert_ptr_equal(prudence_urcu_qsbr_self->domain, domain);
    urcu_qsbr_unregister_thread();
    assert_false(urcu_qsbr_read_ongoing());
    prudence_qsbr_online(domain); /* the same by another name */
    assert_true(urcu_qsbr_read_ongoing());
    return NULL; /* the thread ends online */
}

/* The inline functions find the thread's word by their own pointer, so they must agree with the
 * domain's functions in any thread at any time. */
TEST(read_ongoing_is_of_the_thread)
{
    struct prudence_domain *domain = prudence_urcu_qsbr();
    struct prudence_domain *other = prudence_domain_create("other", PRUDENCE_DOMAIN_QSBR, NULL);

    urcu_qsbr_register_thread();
    assert_ptr_equal(prudence_urcu_qsbr_self->domain, domain);
    for (int i = 0; i < 3; i++) {
        in_thread(ask_before_it_was_online, domain);
        assert_true(urcu_qsbr_read_ongoing());
    }
    urcu_qsbr_unregister_thread();
    prudence_qsbr_online(other);
    assert_false(urcu_qsbr_read_ongoing());
    prudence_qsbr_offline(other);
    assert_int_equal(prudence_domain_destroy(other), 0);
    urcu_qsbr_synchronize_rcu(); /* does not wait for threads that have ended */
}

/* A quiescent state is announced only after a grace period has begun. */
TEST(quiescent_state_ends_the_grace_period_before)
{
    struct urcu_gp_poll_state before;
    uint64_t word;

    urcu_qsbr_register_thread();
    word = prudence_urcu_qsbr_self->word;
    urcu_qsbr_quiescent_state();
    assert_int_equal(prudence_urcu_qsbr_self->word, word);
    before = urcu_qsbr_start_poll_synchronize_rcu();
    assert_false(urcu_qsbr_poll_state_synchronize_rcu(before));
    urcu_qsbr_quiescent_state();
    assert_int_not_equal(prudence_urcu_qsbr_self->word, word);
    assert_true(urcu_qsbr_poll_state_synchronize_rcu(before));
    urcu_qsbr_thread_offline();
    urcu_qsbr_quiescent_state(); /* the thread is offline and stays so */
    assert_false(urcu_qsbr_read_ongoing());
    urcu_qsbr_unregister_thread();
}

/* Threads keep pointers to words in the domain, so destroying it is refused. */
TEST(the_domain_stays)
{
    assert_int_equal(prudence_domain_destroy(prudence_urcu_qsbr()), EINVAL);
}

TEST(workers_of_threads)
{
    struct call_rcu_data *mine = create_call_rcu_data(0, -1);

    assert_non_null(mine);
    assert_ptr_equal(get_call_rcu_data(), get_default_call_rcu_data());
    set_thread_call_rcu_data(mine);
    assert_ptr_equal(get_thread_call_rcu_data(), mine);
    assert_ptr_equal(get_call_rcu_data(), mine);
    call_all();
    barrier_and_count();
    assert_true(pthread_equal(ran_on, get_call_rcu_thread(mine)));
    set_thread_call_rcu_data(NULL);
    call_all();
    barrier_and_count();
    assert_false(pthread_equal(ran_on, get_call_rcu_thread(mine)));
    call_rcu_data_free(mine);
    call_rcu_data_free(NULL);
    call_rcu_data_free(get_default_call_rcu_data()); /* does nothing */
}

/* Pending callbacks move to the default worker, and run once. */
TEST(freed_with_callbacks)
{
    struct held_reader reader = {.domain = NULL};
    struct call_rcu_data *mine = create_call_rcu_data(URCU_CALL_RCU_RT, 0);

    held_reader_start(&reader);
    set_thread_call_rcu_data(mine);
    call_all();
    set_thread_call_rcu_data(NULL);
    pause_ms(5); /* the worker has them under a cookie */
    call_rcu_data_free(mine);
    assert_int_equal(ran, 0);
    held_reader_end(&reader);
    barrier_and_count();
}

TEST(workers_of_cpus)
{
    struct call_rcu_data *other = create_call_rcu_data(0, -1);
    int cpu = sched_getcpu();

    assert_int_equal(set_cpu_call_rcu_data(-1, other), -EINVAL);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(set_cpu_call_rcu_data(1 << 20, other), -EINVAL);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(set_cpu_call_rcu_data((int)os_cpu_count(), other), -EINVAL);
    assert_int_equal(errno, EINVAL);
    assert_null(get_cpu_call_rcu_data(cpu));
    assert_null(get_cpu_call_rcu_data(-1));
    assert_null(get_cpu_call_rcu_data(1 << 20));
    assert_int_equal(create_all_cpu_call_rcu_data(0), 0);
    assert_int_equal(create_all_cpu_call_rcu_data(0), 0); /* all are there */
    assert_non_null(get_cpu_call_rcu_data(cpu));
    assert_int_equal(set_cpu_call_rcu_data(cpu, other), -EEXIST);
    assert_int_equal(errno, EEXIST);
    assert_ptr_not_equal(get_call_rcu_data(), get_default_call_rcu_data());
    set_thread_call_rcu_data(other);
    assert_ptr_equal(get_call_rcu_data(), other); /* the thread's comes first */
    set_thread_call_rcu_data(NULL);
    call_all();
    free_all_cpu_call_rcu_data();
    assert_null(get_cpu_call_rcu_data(cpu));
    barrier_and_count();
    call_rcu_data_free(other);
}

static bool all_are_free;

static void *free_all(void *unused)
{
    free_all_cpu_call_rcu_data();
    __atomic_store_n(&all_are_free, true, __ATOMIC_SEQ_CST);
    return unused;
}

/* A reader that found a CPU's worker may still queue a callback on it. */
TEST(workers_of_cpus_stay_until_readers_have_left)
{
    struct held_reader reader = {.domain = NULL};
    int cpu = sched_getcpu();
    pthread_t thread;
    bool too_early;

    assert_int_equal(create_all_cpu_call_rcu_data(0), 0);
    held_reader_start(&reader);
    thread = thread_start(free_all, NULL);
    while (get_cpu_call_rcu_data(cpu))
        sched_yield();
    pause_ms(50); /* without a grace period, all would be free by then */
    too_early = __atomic_load_n(&all_are_free, __ATOMIC_SEQ_CST);
    held_reader_end(&reader);
    pthread_join(thread, NULL);
    assert_false(too_early);
}

static void add_one(void *at)
{
    __atomic_fetch_add((unsigned *)at, 1, __ATOMIC_SEQ_CST);
}

TEST(deferred_calls)
{
    static unsigned number;

    assert_int_equal(rcu_defer_register_thread(), 0);
    for (unsigned i = 0; i < 1000; i++) {
        defer_rcu(add_one, &number);
        defer_rcu(prudence_free, prudence_malloc(100));
    }
    rcu_defer_barrier_thread();
    assert_int_equal(number, 1000);
    defer_rcu(add_one, &number);
    rcu_defer_barrier();
    assert_int_equal(number, 1001);
    rcu_defer_unregister_thread();
}

/* The default worker had a thread in the parent; the child gets the one that it makes anew. */
static int child(void *unused)
{
    char name[16];

    if (pthread_getname_np(get_call_rcu_thread(get_default_call_rcu_data()), name, sizeof name))
        return 2;
    call_rcu_after_fork_child();
    while (__atomic_load_n(&ran, __ATOMIC_SEQ_CST) < HEADS) /* without a barrier */
        sched_yield();
    call_all();
    rcu_barrier();
    return ran == HEADS ? 42 : 1;
}

TEST(fork_with_workers)
{
    struct held_reader reader = {.domain = NULL};
    struct call_rcu_data *mine = create_call_rcu_data(0, -1);
    struct child_result result;

#if defined(__SANITIZE_THREAD__)
    call_rcu_data_free(mine);
    skip(); /* it supports no threads in the child of a threaded process */
#endif
    held_reader_start(&reader);
    set_thread_call_rcu_data(mine);
    call_all();
    call_rcu_before_fork();
    child_run(child, NULL, &result);
    call_rcu_after_fork_parent();
    held_reader_end(&reader);
    set_thread_call_rcu_data(NULL);
    barrier_and_count();
    call_rcu_data_free(mine);
    assert_child_result(&result);
}

/* Calls the functions that a binary compiled against liburcu's own <urcu-pointer.h> uses. */
TEST(functions_of_pointers)
{
    static int value, other;
    void *pointer = NULL;

    assert_ptr_equal(rcu_set_pointer_sym(&pointer, &value), &value);
    assert_ptr_equal(rcu_dereference_sym(pointer), &value);
    assert_ptr_equal(rcu_xchg_pointer_sym(&pointer, &other), &value);
    assert_ptr_equal(rcu_cmpxchg_pointer_sym(&pointer, &value, NULL), &other);
    assert_ptr_equal(pointer, &other);
    assert_ptr_equal(rcu_cmpxchg_pointer_sym(&pointer, &other, NULL), &other);
    assert_null(pointer);
}

static void *sleep_until_woken(void *unused)
{
    while (!__atomic_load_n(&ran, __ATOMIC_SEQ_CST))
        futex_noasync((int32_t *)&ran, FUTEX_WAIT, 0, NULL, NULL, 0);
    return unused;
}

/* The functions of <urcu/futex.h>, none of which may be one of liburcu. */
TEST(futexes)
{
    int32_t word = 1;
    pthread_t thread;

    assert_int_equal(futex_async(&word, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
    assert_int_equal(futex_async(&word, FUTEX_WAIT, 0, NULL, NULL, 0), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(compat_futex_async(&word, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
    assert_int_equal(compat_futex_noasync(&word, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
    ran = 0;
    assert_int_equal(pthread_create(&thread, NULL, sleep_until_woken, NULL), 0);
    __atomic_store_n(&ran, 1, __ATOMIC_SEQ_CST);
    assert_true(futex_noasync((int32_t *)&ran, FUTEX_WAKE, 1, NULL, NULL, 0) >= 0);
    pthread_join(thread, NULL);
}

SUITE()
