/* SPDX-License-Identifier: MIT */
/* Callbacks run after their grace period, once, in order; barriers, limits, misuse. */
#define _GNU_SOURCE

#include <errno.h>
#include <pthread.h>

#include <prudence/call.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "toolkit/callbacks/callback_life.h"
#include "toolkit/callbacks/callback_queue.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/slab_test.h"
#include "support/suite.h"
#include "support/threads.h"

struct object {
    char before[24];
    struct prudence_head head;
    unsigned number;
};

static unsigned ran, last;
static bool out_of_order;

static void count(struct prudence_head *head)
{
    __atomic_fetch_add(&ran, 1, __ATOMIC_SEQ_CST);
}

static unsigned runs(void)
{
    return __atomic_load_n(&ran, __ATOMIC_SEQ_CST);
}

static int set_up(void **state)
{
    ran = last = 0;
    out_of_order = false;
    return 0;
}

/* Advances until `count` callbacks have run. A worker that started late may detach some of them
 * after the last grace period. */
static void advance_until(struct prudence_domain *domain, unsigned count)
{
    do {
        prudence_manual_advance(domain);
        pause_ms(1);
    } while (runs() < count);
}

TEST(none_before_its_grace_period, set_up)
{
    struct prudence_domain *domain = prudence_domain_create("manual", PRUDENCE_DOMAIN_MANUAL, NULL);
    static struct prudence_head heads[100];

    for (unsigned i = 0; i < 100; i++)
        prudence_domain_call(domain, &heads[i], count);
    pause_ms(20);
    assert_int_equal(runs(), 0);
    assert_int_equal(prudence_domain_destroy(domain), EBUSY);
    advance_until(domain, 100);
    assert_int_equal(prudence_domain_barrier(domain), 0);
    assert_int_equal(runs(), 100);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* What the functions around callbacks saw. Only the thread that runs callbacks changes it. */
static struct around {
    bool open;
    unsigned begun, most, now, outside;
} around;

static void begin_around(void *argument)
{
    struct around *seen = argument;

    seen->outside += seen->open;
    seen->open = true;
    seen->begun++;
    seen->now = 0;
}

static void end_around(void *argument)
{
    struct around *seen = argument;

    seen->outside += !seen->open;
    seen->open = false;
    seen->most = seen->now > seen->most ? seen->now : seen->most;
}

static void count_around(struct prudence_head *head)
{
    around.outside += !around.open;
    around.now++;
    count(head);
}

static int set_up_around(void **state)
{
    around = (struct around){0};
    return set_up(state);
}

TEST(callbacks_run_between_two_functions, set_up_around)
{
    struct prudence_domain *domain = prudence_domain_create("manual", PRUDENCE_DOMAIN_MANUAL, NULL);
    static struct prudence_head heads[100];

    assert_int_equal(prudence_domain_call_around(domain, 7, begin_around, end_around, &around), 0);
    pause_ms(5);
    assert_int_equal(around.begun, 0); /* nothing was queued */
    for (unsigned i = 0; i < 100; i++)
        prudence_domain_call(domain, &heads[i], count_around);
    assert_int_equal(prudence_domain_call_around(domain, 0, NULL, NULL, NULL), EBUSY);
    advance_until(domain, 100);
    assert_int_equal(prudence_domain_barrier(domain), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0); /* waits for the last end */
    assert_int_equal(around.outside, 0);
    assert_false(around.open);
    assert_int_equal(around.most, 7);
    assert_in_range(around.begun, 100 / 7 + 1, 100);
}

static void count_refused(void *argument)
{
    assert_int_equal(prudence_domain_call_around(argument, 0, NULL, NULL, NULL), EBUSY);
    around.begun++;
}

TEST(the_functions_around_callbacks_are_changed_while_none_waits, set_up_around)
{
    struct prudence_domain *domain = prudence_domain_create("memb", PRUDENCE_DOMAIN_MEMB, NULL);
    static struct prudence_head heads[2];

    assert_int_equal(prudence_domain_call_around(NULL, 0, NULL, NULL, NULL), EINVAL);
    assert_int_equal(prudence_domain_call_around(domain, 0, count_refused, count_refused, domain),
                     0);
    prudence_domain_call(domain, &heads[0], count);
    assert_int_equal(prudence_domain_barrier(domain), 0);
    while (prudence_domain_call_around(domain, 0, NULL, NULL, NULL)) /* EBUSY until the end */
        pause_ms(1);
    assert_int_equal(around.begun, 2);
    prudence_domain_call(domain, &heads[1], count);
    assert_int_equal(prudence_domain_barrier(domain), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
    assert_int_equal(around.begun, 2);
}

/* Uses more cookies than there are segments: callbacks that come late do not hold up earlier
 * ones. */
TEST(more_cookies_than_segments, set_up)
{
    struct prudence_domain *domain = prudence_domain_create("manual", PRUDENCE_DOMAIN_MANUAL, NULL);
    static struct prudence_head heads[20];

    for (unsigned i = 0; i < 20; i++) {
        prudence_domain_call(domain, &heads[i], count);
        pause_ms(3); /* the worker has detached it, under a separate cookie */
        prudence_manual_advance(domain);
    }
    advance_until(domain, 20);
    assert_int_equal(prudence_domain_barrier(domain), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* Queues callbacks without pause, so that some always lack a grace period: the earlier ones
 * still run. */
TEST(a_steady_stream_does_not_starve, set_up)
{
    struct prudence_domain *domain = prudence_domain_create("manual", PRUDENCE_DOMAIN_MANUAL, NULL);
    static struct prudence_head heads[500000];
    unsigned made = 0;

    while (runs() < 1000 &&
           made < 500000) { /* by then a thread that has to wait for a turn has run */
        unsigned long long began = now_ns();

        prudence_domain_call(domain, &heads[made++], count);
        while (now_ns() - began < 50000)
            sched_yield();
        if (made % 100 == 0)
            prudence_manual_advance(domain);
    }
    assert_true(runs() >= 1000);
    while (runs() < made) {
        prudence_manual_advance(domain);
        pause_ms(1);
    }
    assert_int_equal(prudence_domain_barrier(domain), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(a_reader_holds_them_up, set_up)
{
    struct held_reader reader = {.domain = NULL};
    static struct prudence_head head;

    held_reader_start(&reader);
    prudence_call(&head, count);
    pause_ms(20);
    assert_int_equal(runs(), 0);
    held_reader_end(&reader);
    assert_int_equal(prudence_barrier(), 0);
    assert_int_equal(runs(), 1);
}

static void check_order(struct prudence_head *head)
{
    struct object *object = (struct object *)((char *)head - offsetof(struct object, head));

    out_of_order |= object->number != last + 1;
    last = object->number;
    prudence_free(object);
}

TEST(in_order_of_one_cpu, set_up)
{
    cpu_set_t saved, one;

    sched_getaffinity(0, sizeof saved, &saved);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    for (unsigned i = 1; i <= 10000; i++) {
        struct object *object = prudence_malloc(sizeof *object);

        object->number = i;
        prudence_call(&object->head, check_order);
    }
    sched_setaffinity(0, sizeof saved, &saved);
    assert_int_equal(prudence_barrier(), 0);
    assert_int_equal(last, 10000);
    assert_false(out_of_order);
}

static void again(struct prudence_head *head)
{
    if (__atomic_add_fetch(&ran, 1, __ATOMIC_SEQ_CST) < 50)
        prudence_call(head, again);
}

TEST(a_callback_may_queue_itself, set_up)
{
    static struct prudence_head head;

    prudence_call(&head, again);
    while (runs() < 50)
        assert_int_equal(prudence_barrier(), 0);
    assert_int_equal(runs(), 50);
}

static int barrier_error;

static void barrier_inside(struct prudence_head *head)
{
    barrier_error = prudence_barrier();
}

static int misplaced_barriers(void)
{
    static struct prudence_head head;

    prudence_call(&head, barrier_inside);
    if (prudence_barrier() || barrier_error != EDEADLK)
        return 1;
    prudence_read_lock();
    if (prudence_barrier() != EDEADLK)
        return 2;
    prudence_read_unlock();
    if (prudence_domain_barrier(NULL) != EINVAL)
        return 3;
    return 42;
}

TEST(a_barrier_that_would_wait_for_itself, set_up)
{
    expect_exit(42, misplaced_barriers(), "");
    assert_int_equal(said("prudence_barrier for domain 'default'"), 2);
}

TEST(barrier_of_qsbr_goes_offline, set_up)
{
    struct prudence_domain *domain = prudence_domain_create("qsbr", PRUDENCE_DOMAIN_QSBR, NULL);
    static struct prudence_head head;

    prudence_qsbr_online(domain);
    prudence_domain_call(domain, &head, count);
    assert_int_equal(prudence_domain_barrier(domain), 0);
    assert_int_equal(runs(), 1);
    assert_true(prudence_domain_read_lock_held(domain));
    prudence_qsbr_offline(domain);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(a_barrier_ends_at_its_deadline, set_up)
{
    struct prudence_domain *domain = prudence_domain_create("manual", PRUDENCE_DOMAIN_MANUAL, NULL);
    static struct prudence_head head;
    unsigned long long began = now_ns();

    assert_int_equal(prudence_domain_barrier_timed(domain, 0), 0);
    prudence_domain_call(domain, &head, count);
    assert_int_equal(prudence_domain_barrier_timed(domain, 0), ETIMEDOUT);
    assert_int_equal(prudence_domain_barrier_timed(domain, 5000000), ETIMEDOUT);
    assert_true(now_ns() - began >= 5000000);
    assert_int_equal(runs(), 0);
    advance_until(domain, 1);
    assert_int_equal(prudence_domain_barrier_timed(domain, UINT64_MAX), 0);
    assert_int_equal(prudence_domain_barrier_timed(NULL, 0), EINVAL);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(errno_is_kept, set_up)
{
    static struct prudence_head head;

    errno = 4711;
    prudence_call(&head, count);
    assert_int_equal(errno, 4711);
    assert_int_equal(prudence_barrier(), 0);
}

/* Queues single callbacks to a thread that is busy, about to sleep, or asleep.
 * (tests/model/source, "late-pusher", checks how soon they run on an idle machine.) */
TEST(one_by_one, set_up)
{
    static struct prudence_head head;

    for (unsigned i = 0; i < 200; i++) {
        prudence_call(&head, count);
        while (runs() != i + 1)
            sched_yield();
        if (i % 10 == 0)
            pause_ms(1); /* the thread sleeps */
    }
}

/* ThreadSanitizer starts a separate thread, and starts it late. */
static void skip_where_threads_cannot_be_counted(void)
{
#if defined(__SANITIZE_THREAD__)
    skip();
#endif
}

static int no_thread_before(void *unused)
{
    static struct prudence_head head;
    unsigned before = threads_now();

    prudence_free_deferred(prudence_malloc(100));
    prudence_synchronize();
    if (threads_now() != before)
        return 1;
    prudence_call(&head, count);
    return prudence_barrier() == 0 && threads_now() == before + 1 ? 42 : 2;
}

TEST(nobody_else_pays, set_up)
{
    skip_where_threads_cannot_be_counted();
    assert_child_again("no-thread-before", NULL);
}

/* Pending bytes stay near call_limit. While a reader stays, deferrals expire, and each call still
 * returns. */
static int flood(void *unused)
{
    struct held_reader reader = {.domain = NULL};
    struct callback_queue *queue;
    struct prudence_stats stats;
    uint64_t most = 0;
    unsigned made = 0;

    prudence_option_set("call_limit", "1M");
    prudence_option_set("wait_max", "1s");
    queue = callback_queue_of(prudence_default_domain());
    for (unsigned i = 0; i < 200000; i++, made++) {
        struct object *object = prudence_malloc(1000);

        object->number = i;
        prudence_call(&object->head, check_order);
        if (callback_queue_bytes(queue) > most)
            most = callback_queue_bytes(queue);
    }
    if (most > (2u << 20))
        return 1;
    prudence_option_set("wait_max", "20ms");
    held_reader_start(&reader);
    for (unsigned i = 0; i < 5000; i++) {
        unsigned long long began = now_ns();
        struct object *object = prudence_malloc(1000);

        object->number = i;
        prudence_call(&object->head, check_order);
        if (now_ns() - began > 5000000000ull)
            return 2;
    }
    held_reader_end(&reader);
    if (prudence_barrier() || prudence_stats(&stats) || !stats.call_waits || !stats.call_expiries ||
        !stats.call_overruns || stats.call_bytes)
        return 3;
    return callback_queue_bytes(queue) == 0 ? 42 : 4;
}

TEST(a_flood_is_held_back, set_up)
{
    assert_child_again("flood", NULL);
}

static bool released;

static void wait_for_release(struct prudence_head *head)
{
    while (!__atomic_load_n(&released, __ATOMIC_ACQUIRE))
        sched_yield();
    count(head);
}

static void take_time(struct prudence_head *head)
{
    unsigned long long began = now_ns();

    while (now_ns() - began < 20000)
        ;
    count(head);
    prudence_free(head);
}

/* A thread that queues is held back by a worker that lags, even where the thread could not wait
 * for readers. A callback that waits for its caller does not hold it back for long. */
static int keep_pace(void *unused)
{
    static struct prudence_head heads[20000];
    struct prudence_domain *domain = prudence_domain_create("qsbr", PRUDENCE_DOMAIN_QSBR, NULL);
    struct prudence_stats stats;
    unsigned long long began, waits = 0;
    unsigned made = 0;

    prudence_qsbr_online(domain);
    for (; made < 300000 && waits < 5; made++) { /* at once, unless the worker gets no processor */
        prudence_domain_call(domain, prudence_malloc(64), take_time);
        prudence_qsbr_quiescent(domain);
        if (made % 256 == 0 && prudence_stats(&stats) == 0)
            waits = stats.call_waits;
    }
    if (waits < 5)
        return 1;
    prudence_qsbr_offline(domain);
    if (prudence_domain_barrier(domain) || runs() != made)
        return 2;
    prudence_domain_call(domain, &heads[0], wait_for_release);
    began = now_ns();
    for (unsigned i = 1; i < 20000; i++)
        prudence_domain_call(domain, &heads[i], count);
    if (now_ns() - began > 30000000000ull)
        return 3;
    __atomic_store_n(&released, true, __ATOMIC_RELEASE);
    return prudence_domain_barrier(domain) || runs() != made + 20000 ? 4 : 42;
}

TEST(a_queueing_thread_keeps_pace, set_up)
{
    assert_child_again("keep-pace", NULL);
}

/* The thread cannot be started: a barrier runs the callbacks itself. */
static int without_thread(void *unused)
{
    static struct prudence_head heads[1000];
    unsigned before = threads_now();

    memory_fail(0, UINT32_MAX);
    for (unsigned i = 0; i < 1000; i++)
        prudence_call(&heads[i], count);
    if (prudence_barrier() || runs() != 1000 || threads_now() != before)
        return 1;
    memory_succeed();
    for (unsigned i = 0; i < 50 && threads_now() == before; i++) {
        prudence_call(&heads[i], count);
        pause_ms(1);
    }
    return threads_now() == before + 1 && prudence_barrier() == 0 ? 42 : 2;
}

TEST(a_barrier_does_without_a_thread, set_up)
{
    skip_where_threads_cannot_be_counted();
    assert_child_again("without-thread", NULL);
}

static int queued_twice(void *unused)
{
    static struct prudence_head heads[5000];

    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 5000; i++)
            prudence_call(&heads[i], count);
        if (prudence_barrier())
            return 1;
    }
    if (runs() != 15000)
        return 2;
    prudence_read_lock();
    prudence_call(&heads[7], count);
    prudence_call(&heads[7], count);
    return 3;
}

TEST(a_head_queued_twice_is_misuse, set_up)
{
    struct child_result result;

    child_again("twice", "check=1", &result);
    assert_true(child_died(&result));
    assert_true(child_said(&result, "is queued already"));
}

static int null_function(void)
{
    static struct prudence_head head;

    prudence_call(&head, NULL);
    return 0;
}

TEST(null_is_misuse, set_up)
{
    expect_death(null_function(), "prudence_call: the function is NULL");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*body)(void *unused);
    } roles[] = {
        {"no-thread-before", no_thread_before}, {"flood", flood},        {"keep-pace", keep_pace},
        {"without-thread", without_thread},     {"twice", queued_twice},
    };

    for (unsigned i = 0; argc > 1 && i < sizeof roles / sizeof roles[0]; i++)
        if (strcmp(argv[1], roles[i].name) == 0)
            return roles[i].body(NULL);
    return suite_run(NULL, NULL);
}
