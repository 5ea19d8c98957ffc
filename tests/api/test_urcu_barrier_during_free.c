/* SPDX-License-Identifier: MIT */
/*
 * rcu_barrier while another thread is in call_rcu_data_free: when the barrier returns, all
 * callbacks queued before it have returned, wherever they are moved in between. Also tests barriers
 * in qsbr, in a section, and in a callback.
 *
 * ctest: needs liburcu
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include "support/suite.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include <urcu/urcu-memb.h>
#include <urcu/urcu-qsbr.h>
#include <urcu.h> /* last, because it defines the names without a flavour */

#include "toolkit/callbacks/callback_queue.h"
#include "toolkit/callbacks/callback_worker.h"
#include "support/gp_child.h"

/* A callback that blocks until the test lets it return. */
struct blocker {
    struct rcu_head head;
    sem_t entered, leave;
    unsigned returned;
};

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore))
        ;
}

static void block(struct rcu_head *head)
{
    struct blocker *blocker = (struct blocker *)((char *)head - offsetof(struct blocker, head));

    sem_post(&blocker->entered);
    wait_for(&blocker->leave);
    __atomic_store_n(&blocker->returned, 1, __ATOMIC_SEQ_CST);
}

static void blocker_init(struct blocker *blocker)
{
    sem_init(&blocker->entered, 0, 0);
    sem_init(&blocker->leave, 0, 0);
    blocker->returned = 0;
}

static unsigned ran;

static void count(struct rcu_head *head)
{
    __atomic_fetch_add(&ran, 1, __ATOMIC_SEQ_CST);
}

/* A worker, with the library's view of its queue. */
struct made {
    struct call_rcu_data *data;
    struct callback_queue *queue;
};

static struct made make(void)
{
    struct callback_worker *worker;
    struct made made = {.data = create_call_rcu_data(0, -1)};

    assert_non_null(made.data);
    os_lock_take(&callbacks_lock);
    worker = list_entry(callback_workers.previous, struct callback_worker, link);
    made.queue = list_entry(worker->queues.next, struct callback_queue, link);
    os_lock_release(&callbacks_lock);
    return made;
}

static void call_on(const struct made *made, struct rcu_head *head,
                    void (*func)(struct rcu_head *head))
{
    set_thread_call_rcu_data(made->data);
    call_rcu(head, func);
    set_thread_call_rcu_data(NULL);
}

static void *free_it(void *made)
{
    call_rcu_data_free(((struct made *)made)->data);
    return NULL;
}

static struct blocker first, second;
static struct made a, b;
static bool barrier_is_over;

static bool is_over(void)
{
    return __atomic_load_n(&barrier_is_over, __ATOMIC_SEQ_CST);
}

/* Lets the callback return when the barrier waits for its queue, or has ended too early. */
static void *let_go_when_waited_for(void *unused)
{
    while (!__atomic_load_n(&a.queue->watchers, __ATOMIC_SEQ_CST) && !is_over())
        sched_yield();
    sem_post(&first.leave);
    return unused;
}

TEST(a_worker_that_is_being_freed_is_waited_for)
{
    static struct rcu_head behind;
    pthread_t freer, releaser;

    ran = barrier_is_over = 0;
    blocker_init(&first);
    a = make();
    call_on(&a, &first.head, block);
    wait_for(&first.entered);
    call_on(&a, &behind, count);
    pthread_create(&freer, NULL, free_it, &a);
    while (!__atomic_load_n(&a.queue->worker->stopping, __ATOMIC_SEQ_CST))
        sched_yield(); /* the freeing thread waits for the callback */
    pthread_create(&releaser, NULL, let_go_when_waited_for, NULL);
    rcu_barrier();
    assert_int_equal(first.returned, 1);
    assert_int_equal(ran, 1);
    __atomic_store_n(&barrier_is_over, true, __ATOMIC_SEQ_CST);
    pthread_join(freer, NULL);
    pthread_join(releaser, NULL);
}

static void *barrier(void *unused)
{
    rcu_barrier();
    __atomic_store_n(&barrier_is_over, true, __ATOMIC_SEQ_CST);
    return unused;
}

/* The barrier waits at the first worker, which is then freed; it must not forget the second one. */
TEST(the_walk_goes_on_behind_a_worker_that_is_freed)
{
    pthread_t waiter, freer;

    barrier_is_over = false;
    blocker_init(&first);
    blocker_init(&second);
    a = make();
    b = make();
    call_on(&a, &first.head, block);
    call_on(&b, &second.head, block);
    wait_for(&first.entered);
    wait_for(&second.entered);
    pthread_create(&waiter, NULL, barrier, NULL);
    while (!__atomic_load_n(&a.queue->watchers, __ATOMIC_SEQ_CST))
        sched_yield();
    pthread_create(&freer, NULL, free_it, &a);
    /* The worker is asked to end while it is still on the list. If it were taken off first, it
     * would not be stopping yet. */
    for (unsigned i = 0;
         i < 100000 && !__atomic_load_n(&a.queue->worker->stopping, __ATOMIC_SEQ_CST); i++)
        sched_yield();
    sem_post(&first.leave);
    while (!__atomic_load_n(&b.queue->watchers, __ATOMIC_SEQ_CST) && !is_over())
        sched_yield();
    assert_false(is_over());
    sem_post(&second.leave);
    pthread_join(waiter, NULL);
    assert_int_equal(first.returned, 1);
    assert_int_equal(second.returned, 1);
    pthread_join(freer, NULL);
    call_rcu_data_free(b.data);
}

static int free_in_child(void *unused)
{
    call_rcu_data_free(b.data);
    return 42;
}

/* In the child there is no barrier, so the worker can be freed. */
TEST(a_child_forgets_the_barriers_of_other_threads)
{
    struct child_result result;
    pthread_t waiter;

    barrier_is_over = false;
    blocker_init(&first);
    b = make();
    call_on(&b, &first.head, block);
    wait_for(&first.entered);
    pthread_create(&waiter, NULL, barrier, NULL);
    while (!__atomic_load_n(&b.queue->watchers, __ATOMIC_SEQ_CST))
        sched_yield();
    child_run(free_in_child, NULL, &result);
    sem_post(&first.leave);
    pthread_join(waiter, NULL);
    call_rcu_data_free(b.data);
    assert_child_result(&result);
}

/* The same at random times: in each round another thread frees the worker during the barrier. */
TEST(at_any_moment)
{
    static struct rcu_head heads[8];

    for (unsigned round = 0; round < 300; round++) {
        pthread_t freer;

        ran = 0;
        a = make();
        for (unsigned i = 0; i < 8; i++)
            call_on(&a, &heads[i], count);
        pthread_create(&freer, NULL, free_it, &a);
        for (unsigned i = 0; i < round % 5; i++)
            sched_yield();
        rcu_barrier();
        assert_int_equal(ran, 8);
        pthread_join(freer, NULL);
    }
}

/* ---------------------------------------------------------------------------------- odd places */

TEST(flavours_do_not_know_of_each_other)
{
    static struct rcu_head head;

    ran = 0;
    urcu_qsbr_register_thread();
    urcu_memb_call_rcu(&head, count);
    urcu_memb_barrier();
    assert_int_equal(ran, 1);
    urcu_memb_synchronize_rcu();
    assert_true(urcu_qsbr_read_ongoing()); /* the callback may hold pointers */
    urcu_qsbr_unregister_thread();
}

static sem_t qsbr_entered, qsbr_go;
static unsigned qsbr_returned;

static void synchronize_qsbr(struct rcu_head *head)
{
    sem_post(&qsbr_entered);
    wait_for(&qsbr_go);
    urcu_qsbr_synchronize_rcu();
    __atomic_store_n(&qsbr_returned, 1, __ATOMIC_SEQ_CST);
}

/* A callback of qsbr that waits for this thread's quiescent state runs on a separate worker. */
TEST(a_callback_of_qsbr_holds_up_no_other_flavour)
{
    static struct rcu_head of_qsbr, of_memb;

    ran = 0;
    sem_init(&qsbr_entered, 0, 0);
    sem_init(&qsbr_go, 0, 0);
    urcu_qsbr_call_rcu(&of_qsbr, synchronize_qsbr);
    wait_for(&qsbr_entered);
    urcu_qsbr_register_thread();
    sem_post(&qsbr_go);
    urcu_memb_call_rcu(&of_memb, count);
    urcu_memb_barrier();
    assert_int_equal(ran, 1);
    urcu_qsbr_unregister_thread();
    urcu_qsbr_barrier();
    assert_int_equal(qsbr_returned, 1);
}

/* The thread may hold pointers, so grace periods wait for it. */
TEST(freeing_an_idle_worker_of_qsbr_is_no_quiescent_state)
{
    struct call_rcu_data *idle;
    prudence_gp_t cookie;
    bool over = false;

    urcu_qsbr_register_thread();
    idle = urcu_qsbr_create_call_rcu_data(0, -1);
    get_call_rcu_thread(idle); /* has started, and looks for callbacks */
    cookie = prudence_domain_start_poll(prudence_urcu_qsbr());
    urcu_qsbr_call_rcu_data_free(idle);
    for (unsigned i = 0; i < 20; i++) {
        over |= prudence_domain_poll_state(prudence_urcu_qsbr(), cookie);
        usleep(1000);
    }
    urcu_qsbr_unregister_thread();
    assert_false(over);
    while (!prudence_domain_poll_state(prudence_urcu_qsbr(), cookie))
        usleep(1000);
}

/* Unless a callback runs there, which may wait for the thread. */
TEST(freeing_a_busy_worker_of_qsbr_is_one)
{
    static struct rcu_head head;
    struct call_rcu_data *busy = urcu_qsbr_create_call_rcu_data(0, -1);

    qsbr_returned = 0;
    sem_init(&qsbr_entered, 0, 0);
    sem_init(&qsbr_go, 0, 0);
    urcu_qsbr_set_thread_call_rcu_data(busy);
    urcu_qsbr_call_rcu(&head, synchronize_qsbr);
    urcu_qsbr_set_thread_call_rcu_data(NULL);
    wait_for(&qsbr_entered);
    urcu_qsbr_register_thread();
    sem_post(&qsbr_go);
    urcu_qsbr_call_rcu_data_free(busy);
    assert_int_equal(qsbr_returned, 1);
    assert_true(urcu_qsbr_read_ongoing());
    urcu_qsbr_unregister_thread();
}

static struct call_rcu_data *mine;

static void free_own_worker(struct rcu_head *head)
{
    call_rcu_data_free(mine);
    rcu_barrier();
    rcu_defer_barrier();
    free_all_cpu_call_rcu_data();
    ran++;
}

static int refused(void)
{
    static struct rcu_head head;

    mine = create_call_rcu_data(0, -1);
    set_thread_call_rcu_data(mine);
    call_rcu(&head, free_own_worker);
    rcu_barrier();
    if (ran != 1)
        return 1;
    set_thread_call_rcu_data(NULL);
    rcu_read_lock();
    call_rcu_data_free(mine);
    rcu_barrier();
    rcu_defer_barrier();
    free_all_cpu_call_rcu_data();
    /* waiting would close a circle with a qsbr thread that synchronizes memb */
    urcu_qsbr_barrier();
    rcu_read_unlock();
    call_rcu_data_free(mine);
    return 42;
}

/* First, because it forks. */
TEST_FIRST(what_would_wait_for_itself_is_refused)
{
    ran = 0;
    expect_exit(42, refused(), "");
    assert_int_equal(said("in a callback: the thread would wait for itself"), 4);
    assert_int_equal(said("inside a read-side critical section"), 5);
    assert_int_equal(said("call_rcu_data_free for domain 'default'"), 2);
    assert_int_equal(said("rcu_barrier for domain 'urcu-qsbr'"), 1);
}

/* An alarm instead of a hang. */
SUITE(alarm(patience(120)))
