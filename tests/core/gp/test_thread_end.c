/* SPDX-License-Identifier: MIT */
/*
 * A section lasts until the program ends it, even in a destructor of the thread: of a
 * thread-specific key made before or after the library's own, in any round, in any kind of domain,
 * or of a C++ variable (__cxa_thread_atexit_impl). Until then its grace period is not over. Later
 * destructors may read, defer, allocate and leave again. A thread that really ends inside is
 * reported once, and holds up no thread, whether its first section was in its body or in a
 * destructor.
 *
 * ctest: not-with thread (ThreadSanitizer forgets a thread before its last destructors, handlers)
 */
#define _GNU_SOURCE

#include <limits.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "gp/user/thread_memory.h"
#include "support/before_constructors.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/reader_memory.h"
#include "support/suite.h"
#include "support/threads.h"

#define ROUNDS PTHREAD_DESTRUCTOR_ITERATIONS

/* One key on each side of the library's own. */
enum { EARLY, LATE, KEYS };
static pthread_key_t keys[KEYS];

static struct {
    struct prudence_domain *domain; /* NULL: the default one */
    unsigned key, enter, leave;     /* rounds: 0 is the thread's body; above the last: never */
    bool reads_before;              /* a whole section, in the thread's body */
} plan;

static __thread unsigned rounds;
static __thread prudence_gp_t cookie; /* of a grace period requested inside */
static unsigned wrong;
static pid_t last; /* thread that ran body() */

#define CHECK(truth) ((truth) ? (void)0 : (void)(wrong = __LINE__))

/* ------------------------------------------------------------------------- the thread's section */

static bool is_qsbr(void)
{
    return plan.domain && plan.domain->kind == PRUDENCE_DOMAIN_QSBR;
}

static void enter(void)
{
    if (is_qsbr())
        prudence_qsbr_online(plan.domain);
    else if (plan.domain)
        prudence_domain_read_lock(plan.domain);
    else
        prudence_read_lock();
    cookie = plan.domain ? prudence_domain_start_poll(plan.domain) : prudence_gp_start_poll();
}

static bool is_over(void)
{
    return plan.domain ? prudence_domain_poll_state(plan.domain, cookie)
                       : prudence_gp_poll_state(cookie);
}

static bool is_held(void)
{
    return plan.domain ? prudence_domain_read_lock_held(plan.domain) : prudence_read_lock_held();
}

static void leave(void)
{
    if (is_qsbr())
        prudence_qsbr_offline(plan.domain);
    else if (plan.domain)
        prudence_domain_read_unlock(plan.domain);
    else
        prudence_read_unlock();
}

/* Does everything that the last destructor of a thread may do. */
static void use_everything(void)
{
    void *object = prudence_malloc(100);

    CHECK(object);
    prudence_read_lock();
    prudence_free_deferred(object);
    prudence_read_unlock();
    CHECK(!prudence_read_lock_held());
    prudence_synchronize();
}

static void read_once_more(void)
{
    if (is_qsbr())
        return;
    enter();
    leave();
    CHECK(!is_held());
}

static void step(void)
{
    if (rounds == plan.enter)
        enter();
    if (rounds > plan.leave)
        read_once_more();
    if (rounds < plan.enter || rounds > plan.leave)
        return;
    CHECK(is_held());
    CHECK(!is_over());
    if (rounds == plan.leave) {
        leave();
        if (!is_qsbr())
            use_everything();
    }
}

static void in_destructor(void *key)
{
    rounds++;
    step();
    if (rounds < ROUNDS)
        pthread_setspecific(*(pthread_key_t *)key, key);
}

static void *body(void *unused)
{
    last = gettid();
    if (plan.reads_before)
        read_once_more();
    step();
    pthread_setspecific(keys[plan.key], &keys[plan.key]);
    return unused;
}

/* Runs before the library's constructor makes a key. */
static void make_early_key(void)
{
    pthread_key_create(&keys[EARLY], in_destructor);
}
BEFORE_CONSTRUCTORS(make_early_key);

/* ------------------------------------------------------------------------------------ the plans */

static uint64_t readers_now(void)
{
    struct prudence_domain_stats of_domain;
    struct prudence_stats stats;

    if (plan.domain) {
        prudence_domain_stats(plan.domain, &of_domain);
        return of_domain.readers;
    }
    prudence_stats(&stats);
    return stats.readers;
}

static void run(void *(*run_body)(void *))
{
    in_thread(run_body, NULL);
}

/* Waits for the plan's readers. No wait ends by itself in a manual domain, so there it is for the
 * last thread. */
static int wait_for_readers(void)
{
    if (!plan.domain)
        prudence_synchronize();
    else if (plan.domain->kind != PRUDENCE_DOMAIN_MANUAL)
        return prudence_domain_synchronize(plan.domain);
    else
        while (os_thread_exists(last))
            pause_ms(1);
    return 0;
}

/* Tests every way to enter in one round and leave in the same or a later one. */
static int leaves_in_a_destructor(void *unused)
{
    for (plan.key = EARLY; plan.key < KEYS; plan.key++)
        for (plan.enter = 0; plan.enter <= ROUNDS; plan.enter++)
            for (plan.leave = plan.enter; plan.leave <= ROUNDS; plan.leave++) {
                run(body);
                if (wrong) {
                    fprintf(stderr, "line %u: key %u, rounds %u to %u\n", wrong, plan.key,
                            plan.enter, plan.leave);
                    return 1;
                }
            }
    while (readers_now() > 0) /* a thread ends a little after the join */
        pause_ms(1);
    if (wait_for_readers())
        return 2;
    prudence_synchronize();
    return 42;
}

static const enum prudence_domain_kind kinds[] = {PRUDENCE_DOMAIN_MEMB, PRUDENCE_DOMAIN_QSBR,
                                                  PRUDENCE_DOMAIN_SRCU, PRUDENCE_DOMAIN_MANUAL};
#define KINDS (sizeof kinds / sizeof *kinds)

/* Runs `test` in each kind of domain; `kind` KINDS is the default domain. */
static void in_each_domain(int (*test)(void *), const char *said)
{
    for (unsigned kind = 0; kind <= KINDS; kind++) {
        struct child_result result;
        bool silent;

        plan.domain = kind < KINDS ? prudence_domain_create("ending", kinds[kind], NULL) : NULL;
        silent = !said || is_qsbr(); /* a thread that ends online just goes offline */
        child_run(test, NULL, &result);
        if (!child_exited_with(&result, 42) || (silent && *result.output))
            fail_msg("domain %u: status %#x, '%s'", kind, (unsigned)result.status, result.output);
        if (!silent) {
            assert_int_equal(child_count(&result, said), 1);
            assert_true(child_said(&result, plan.domain ? "'ending'" : "'default'"));
        }
        if (plan.domain)
            assert_int_equal(prudence_domain_destroy(plan.domain), 0);
        plan.domain = NULL;
    }
}

TEST(a_section_lasts_until_a_destructor_ends_it)
{
    in_each_domain(leaves_in_a_destructor, NULL);
}

/* --------------------------------------------------------------------------------- truly inside */

static int ends_inside(void *unused)
{
    plan.leave = ROUNDS + 1;
    run(body);
    if (wrong)
        return 1;
    if (wait_for_readers() || (plan.domain && prudence_domain_destroy(plan.domain)))
        return 2;
    return plan.domain || readers_now() == 0 ? 42 : 3;
}

TEST(a_thread_that_ends_inside_is_reported)
{
    for (unsigned i = 0; i < 2; i++) {
        plan.reads_before = i;
        for (plan.key = EARLY; plan.key < KEYS; plan.key++)
            for (plan.enter = 0; plan.enter <= ROUNDS; plan.enter++)
                in_each_domain(ends_inside, "exits inside a read-side critical section");
    }
    plan.reads_before = false;
}

/* No driver waits for a grace period, so none sees the section. */
static int ends_inside_and_nobody_looks(void *unused)
{
    plan.key = LATE;
    plan.enter = 0;
    plan.leave = ROUNDS + 1;
    run(body);
    pause_ms(20);
    exit(42);
}

TEST(the_end_of_the_process_reports_it)
{
    in_each_domain(ends_inside_and_nobody_looks, "exits inside a read-side critical section");
}

/* Threads of a program that never go offline: no thread waits for them one by one. */
#define MANY 100 /* fewer than a chunk's slots, so that no thread searches for a free one */

static int many_end_online(void *unused)
{
    struct prudence_domain *domain = prudence_domain_create("online", PRUDENCE_DOMAIN_QSBR, NULL);
    unsigned asked = 0;
    prudence_gp_t over;

    plan.domain = domain;
    plan.key = LATE;
    plan.enter = 0;
    plan.leave = ROUNDS + 1;
    for (unsigned i = 0; i < MANY; i++)
        run(body);
    over = prudence_domain_start_poll(domain);
    for (; !prudence_domain_poll_state(domain, over); asked++)
        pause_ms(1);
    return asked < 30 && prudence_domain_destroy(domain) == 0 ? 42 : 1;
}

TEST(many_that_end_online_are_found_at_once)
{
    assert_child(many_end_online, NULL);
}

/* ----------------------------------------------------------------------------- nothing remains */

/* No driver has to check, if the library's own destructor comes after the program's last use. */
TEST(slots_are_given_back)
{
    plan.domain = prudence_domain_create("qsbr", PRUDENCE_DOMAIN_QSBR, NULL);
    plan.enter = 0;
    for (plan.key = EARLY; plan.key < KEYS; plan.key++)
        for (plan.leave = 0; plan.leave + (plan.key == LATE) <= ROUNDS; plan.leave++) {
            run(body);
            assert_int_equal(slots_in_use(plan.domain), 0);
        }
    assert_int_equal(prudence_domain_destroy(plan.domain), 0);
    plan.domain = NULL;
    assert_int_equal(wrong, 0);
}

/* Nor of the tables that threads get for each domain but the default one. */
TEST(nothing_is_left_of_threads_that_leave_late)
{
    uint64_t before = 0;

    plan.domain = prudence_domain_create("late", PRUDENCE_DOMAIN_MEMB, NULL);
    plan.enter = 0;
    for (unsigned i = 0; i < 600; i++) {
        plan.key = i % KEYS;
        plan.leave = i / KEYS % (ROUNDS + 1);
        run(body);
        while (os_thread_exists(last)) /* a thread ends a little after the join */
            pause_ms(1);
        if (i == 300) {
            thread_memory_reap();
            before = metadata();
        }
    }
    thread_memory_reap();
    assert_int_equal(metadata(), before);
    assert_null(plan.domain->chunks->next);
    assert_null(prudence_default.chunks->next);
    while (prudence_domain_destroy(plan.domain))
        pause_ms(1);
    plan.domain = NULL;
    assert_int_equal(wrong, 0);
}

/* -------------------------------------------------------------------------------------- C++ */

int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *module);
extern void *__dso_handle;

static void leave_as_cxx(void *unused)
{
    CHECK(is_held());
    CHECK(!is_over());
    leave();
    use_everything();
}

static void *enter_as_cxx(void *unused)
{
    enter();
    __cxa_thread_atexit_impl(leave_as_cxx, NULL, &__dso_handle);
    return unused;
}

static int leaves_as_cxx(void)
{
    run(enter_as_cxx);
    prudence_synchronize();
    return wrong || readers_now() > 0 ? 1 : 42;
}

TEST(a_section_lasts_until_a_variables_destructor_ends_it)
{
    expect_exit(42, leaves_as_cxx(), "");
    assert_string_equal(last_child.output, "");
}

SUITE(pthread_key_create(&keys[LATE], in_destructor))
