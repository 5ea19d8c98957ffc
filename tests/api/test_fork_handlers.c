/* SPDX-License-Identifier: MIT */
/*
 * Handlers of pthread_atfork that use the library, registered before and after its own, so they run
 * while its locks are held and while they are not.
 *
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children, no exit with threads)
 */
#define _GNU_SOURCE
#include <assert.h>

#include <prudence/poll.h>
#include <prudence/urcu-compat.h>

#include "gp/user/readers.h"
#include "gp/user/slots.h"
#include "heap/nested.h"
#include "support/before_constructors.h"
#include "support/fork_matrix.h"

/* For each handler, the block that it allocated in this fork, and the number of runs. */
static struct {
    void *object;
    unsigned calls;
} early_prepare, early_parent, early_child, late_prepare, late_parent, late_child;

static bool armed;
static unsigned round_number;
static struct prudence_cache *cache, *made_by_handler;

/* Uses new, old and large sizes; frees, defers, and keeps one in *kept. */
static void use(void **kept)
{
    unsigned size = 16 + round_number * 48 % 40000;

    if (!armed)
        return;
    prudence_free(*kept);
    *kept = prudence_malloc(size);
    assert(!nested_has(*kept)); /* handlers are not nested calls */
    memset(*kept, 1, size);
    for (unsigned i = 0; i < 300; i++) {
        prudence_free(prudence_malloc(i));
        prudence_free_deferred(prudence_malloc(size));
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    }
    prudence_free(prudence_calloc(1, 200000));
}

#define HANDLER(name)                                                                              \
    static void name##_handler(void)                                                               \
    {                                                                                              \
        use(&name.object);                                                                         \
        name.calls += armed;                                                                       \
    }
HANDLER(early_parent)
HANDLER(late_prepare)
HANDLER(late_parent)
HANDLER(late_child)

static struct prudence_head head;
static unsigned ran;
/* Results in the handler: of a barrier without a callback, and with one; of a cache's barrier. */
static int barriers[3];
static struct prudence_cache *destructs;

static void note_call(struct prudence_head *called)
{
    __atomic_fetch_add(&ran, 1, __ATOMIC_SEQ_CST);
}

static void note_destructor(void *object, void *context)
{
    (void)object, (void)context;
    prudence_free(prudence_malloc(100)); /* waits for the end of the fork */
}

/* Results in the handler. A reader may wait for the end of the fork, so the first are refused. */
static int synchronizes[4];
static struct prudence_domain *manual; /* no thread ends its grace periods */

static void wait_for_readers(void)
{
    prudence_gp_t cookie = prudence_domain_get_state(manual);

    synchronizes[0] = prudence_domain_synchronize(prudence_default_domain());
    synchronizes[1] = prudence_domain_synchronize_expedited(prudence_default_domain());
    if (synchronizes[0] == EBUSY) { /* or else it would not end */
        synchronizes[2] = prudence_domain_cond_synchronize(manual, cookie);
        synchronizes[3] = prudence_domain_cond_synchronize_expedited(manual, cookie);
    }
    prudence_synchronize(); /* no thread is inside a section */
    prudence_synchronize_expedited();
    prudence_gp_cond_synchronize(prudence_gp_get_state());
    prudence_gp_cond_synchronize_expedited(prudence_gp_get_state());
    prudence_urcu_synchronize(NULL);
}

/* Queues a callback and a destructor, which a thread that waits for the end of the fork will run.
 * liburcu's barriers report and return. */
static void wait_for_code(void)
{
    barriers[0] = prudence_barrier();
    prudence_call(&head, note_call);
    prudence_cache_free_deferred(destructs, prudence_cache_alloc(destructs));
    barriers[1] = prudence_barrier();
    barriers[2] = prudence_cache_barrier(destructs);
    prudence_urcu_barrier(NULL);
    prudence_urcu_defer_barrier(NULL);
}

static void (*wait_in_fork)(void);  /* what a handler does that is not armed */
static void (*call_in_child)(void); /* the same for that of the child */

/* What the first handler does besides, and whether this process is the child that it made. */
static enum { AS_USUAL, FORKS, CHILD_FORKS, HAS_FORKED, IS_INNER } early_fork;
static bool goes_on; /* the section of a child of a fork in that handler */

/* Drivers take back slots of threads that are gone. This thread's is not one. */
static void read_in_the_handler(void)
{
    struct prudence_domain *domain = gp_default_domain();

    prudence_read_lock();
    slots_reap(domain, false, READERS_ALL);
    goes_on = load_relaxed(&readers_slot_or_panic(domain)->reader.word) != 0;
    prudence_read_unlock();
}

static void fork_early(void)
{
    early_fork = HAS_FORKED;
    if (fork() == 0) {
        early_fork = IS_INNER;
        read_in_the_handler();
    }
}

static struct held_reader of_inner;

/* The library's own handler has not run yet. Readers of the parent are not waited for, and a thread
 * that the child of this fork makes goes on reading. */
static void fork_early_in_the_child(void)
{
    prudence_synchronize();
    early_fork = HAS_FORKED;
    if (fork() == 0) {
        early_fork = IS_INNER;
        held_reader_start(&of_inner);
    }
}

static void early_child_handler(void)
{
    if (call_in_child)
        call_in_child();
    use(&early_child.object);
    early_child.calls += armed;
    if (early_fork == CHILD_FORKS)
        fork_early_in_the_child();
}

/* Runs with our locks held. Makes a cache, which other threads use at once. */
static void early_prepare_handler(void)
{
    if (wait_in_fork)
        wait_in_fork();
    if (early_fork == FORKS)
        fork_early();
    if (!armed)
        return;
    use(&early_prepare.object);
    early_prepare.calls++;
    round_number++;
    if (round_number == 1) {
        struct prudence_cache *new = prudence_cache_create("in a handler", 200, NULL);

        prudence_cache_free(new, prudence_cache_alloc(new));
        __atomic_store_n(&made_by_handler, new, __ATOMIC_RELEASE);
        usleep(20000);
    }
    if (round_number == 2) {
        wait_for_code();
        wait_for_readers();
    }
    if (prudence_cache_destroy(cache) != EBUSY)
        abort();
}

static void register_early(void)
{
    pthread_atfork(early_prepare_handler, early_parent_handler, early_child_handler);
}

/* Runs before any constructor. */
BEFORE_CONSTRUCTORS(register_early);

static void keep_busy(void)
{
    static unsigned long turn; /* atomic */
    unsigned long i = __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED);
    struct prudence_cache *new = __atomic_load_n(&made_by_handler, __ATOMIC_ACQUIRE);

    prudence_free_deferred(prudence_malloc(i % 5000));
    prudence_free(prudence_malloc(i * 7 % 50000));
    prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    if (new)
        prudence_cache_free_deferred(new, prudence_cache_alloc(new));
}

static void arm(void)
{
    struct prudence_cache_attr attr = {
        .size = sizeof attr, .flags = PRUDENCE_CACHE_DESTRUCT_SOON, .destructor = note_destructor};

    destructs = prudence_cache_create("destructs", 128, &attr);
    /* from now on there is a queue, and a thread that runs the callbacks */
    prudence_call(&head, note_call);
    prudence_barrier();
    manual = prudence_domain_create("manual", PRUDENCE_DOMAIN_MANUAL, NULL);
    ran = round_number = 0;
    cache = prudence_cache_create("forked", 128, NULL);
    early_prepare.calls = early_parent.calls = late_prepare.calls = late_parent.calls = 0;
    armed = true;
}

static int handlers_ran(void)
{
    armed = false;
    return early_child.calls != 1 || late_child.calls != 1 || prudence_barrier() ||
           ran != (round_number >= 2);
}

static void disarm(void)
{
    armed = false;
    assert_int_equal(early_prepare.calls, FORK_TIMES);
    assert_int_equal(early_parent.calls, FORK_TIMES);
    assert_int_equal(late_prepare.calls, FORK_TIMES);
    assert_int_equal(late_parent.calls, FORK_TIMES);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(barriers[i], EBUSY);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(synchronizes[i], EBUSY);
    assert_int_equal(prudence_domain_destroy(manual), 0);
    assert_int_equal(prudence_barrier(), 0);
    assert_int_equal(__atomic_load_n(&ran, __ATOMIC_SEQ_CST), 1);
    prudence_synchronize();
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_int_equal(prudence_cache_destroy(made_by_handler), 0);
    assert_int_equal(prudence_cache_destroy(destructs), 0);
    made_by_handler = NULL;
}

TEST(handlers_may_allocate)
{
    static const struct fork_row row = {
        "handlers use the library", arm, NULL, keep_busy, handlers_ran, disarm, 0};

    fork_matrix(&row, 1);
}

/* The reader stays until the fork is over, as one that allocates may have to. */
static int fork_during_a_section(void (*wait)(void))
{
    struct held_reader reader = {.domain = NULL};

    alarm(patience(5));
    held_reader_start(&reader);
    wait_in_fork = wait;
    if (fork() == 0)
        _exit(0);
    held_reader_end(&reader);
    return 0;
}

static void synchronize_as_liburcu(void)
{
    prudence_urcu_synchronize(NULL);
}

TEST(a_wait_that_cannot_be_refused_ends_the_process)
{
    expect_death(fork_during_a_section(prudence_synchronize),
                 "prudence_synchronize for domain 'default'");
    assert_int_equal(said("in a handler of pthread_atfork"), 1);
    expect_death(fork_during_a_section(synchronize_as_liburcu),
                 "synchronize_rcu for domain 'default'");
    assert_int_equal(said("in a handler of pthread_atfork"), 1);
}

static bool has_run(void)
{
    for (unsigned i = 0; i < 5000 && !__atomic_load_n(&ran, __ATOMIC_SEQ_CST); i++)
        usleep(1000);
    return __atomic_load_n(&ran, __ATOMIC_SEQ_CST) == 1;
}

static void call_the_head(void)
{
    prudence_call(&head, note_call);
}

static void call_in_a_new_domain(void)
{
    prudence_domain_call(prudence_domain_create("new", PRUDENCE_DOMAIN_MEMB, NULL), &head,
                         note_call);
}

/* Queues in the first handler, without a worker before. The child has the callback as well, but
 * makes no thread for what its parent queued. */
static int call_in_prepare(void *in_a_new_domain)
{
    pid_t child;

    ran = 0;
    wait_in_fork = in_a_new_domain ? call_in_a_new_domain : call_the_head;
    child = fork();
    wait_in_fork = NULL;
    if (child == 0)
        _exit(ran || threads_now() != 1);
    return status_of(child) || !has_run() ? 1 : 42;
}

TEST(what_a_handler_queues_before_the_fork_runs_in_the_parent)
{
    assert_child(call_in_prepare, NULL);
    assert_child(call_in_prepare, &ran);
}

/* The same in the child's first handler, which runs before the library knows that its worker is
 * gone. */
static int call_in_the_child(void *has_worker)
{
    pid_t child;

    if (has_worker) {
        call_the_head();
        prudence_barrier();
    }
    ran = 0;
    call_in_child = call_the_head;
    child = fork();
    if (child == 0)
        _exit(!has_run());
    return status_of(child) ? 1 : 42;
}

TEST(what_a_handler_of_the_child_queues_runs_there)
{
    assert_child(call_in_the_child, NULL);
    assert_child(call_in_the_child, &ran);
}

static void say_forked(void)
{
    prudence_urcu_after_fork_child(NULL);
}

static void note_call_rcu(struct rcu_head *called)
{
    note_call((struct prudence_head *)called);
}

/* The parent's reader, which the child does not have, keeps the callback from running before. */
static int look_in_the_child(void *unused)
{
    static struct rcu_head of_worker;
    struct held_reader reader = {.domain = NULL};
    pid_t child;

    ran = 0;
    held_reader_start(&reader);
    prudence_urcu_set_thread(NULL, prudence_urcu_create(NULL, 0, -1));
    prudence_urcu_call(NULL, &of_worker, note_call_rcu);
    call_in_child = say_forked;
    child = fork();
    if (child == 0)
        _exit(!has_run());
    return status_of(child) ? 1 : 42;
}

TEST(a_handler_of_the_child_may_start_the_workers_of_liburcu)
{
    assert_child(look_in_the_child, NULL);
}

/* A handler that forks. Its child continues the outer fork, as usual. */
static unsigned nested;

static void forking_prepare(void)
{
    if (nested != 1)
        return;
    nested = 2;
    if (fork() == 0) {
        prudence_free(prudence_malloc(100));
        _exit(0);
    }
}

static int fork_in_a_handler(void *unused)
{
    pid_t child;
    int status;

    pthread_atfork(forking_prepare, NULL, NULL);
    nested = 1;
    child = fork();
    prudence_free_deferred(prudence_malloc(100));
    if (child == 0)
        _exit(0);
    while (wait(&status) > 0)
        if (status)
            return 1;
    prudence_synchronize();
    return 42;
}

TEST(handlers_may_fork)
{
    assert_child(fork_in_a_handler, NULL);
}

/* Returns whether this thread holds up a grace period that another thread of this process drives,
 * and nothing else does. */
static bool sections_count(void)
{
    prudence_gp_t cookie;
    bool is_over;

    prudence_read_lock();
    cookie = prudence_gp_start_poll();
    slots_reap(gp_default_domain(), false, READERS_ALL);
    is_over = in_thread(poll_often, &cookie);
    prudence_read_unlock();
    prudence_synchronize();
    return !is_over;
}

/* Four processes: this one; the handler's child, which ends the outer fork as a parent; and a child
 * of each. */
static int fork_in_the_first_handler(void *unused)
{
    struct held_reader other = {.name = "other"};
    int status, result = 42;
    pid_t child;

    held_reader_start(&other);
    prudence_read_lock();
    prudence_read_unlock();
    early_fork = FORKS;
    child = fork();
    if (early_fork == IS_INNER && (!goes_on || !sections_count()))
        result = 1;
    while (child && wait(&status) > 0)
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 42)
            result = 1;
    if (child && early_fork == HAS_FORKED)
        held_reader_end(&other);
    return result;
}

TEST(a_child_of_a_fork_in_a_handler_has_its_own_readers)
{
    assert_child(fork_in_the_first_handler, NULL);
}

static int fork_in_the_first_child_handler(void *unused)
{
    struct held_reader other = {.name = "other"};
    int status, result = 42;
    prudence_gp_t cookie;
    pid_t child;

    held_reader_start(&other);
    early_fork = CHILD_FORKS;
    child = fork();
    if (early_fork == IS_INNER) {
        cookie = prudence_gp_start_poll();
        result = in_thread(poll_often, &cookie) ? 1 : 42;
        held_reader_end(&of_inner);
    }
    while (wait(&status) > 0)
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 42)
            result = 2;
    if (child)
        held_reader_end(&other);
    return result;
}

TEST(a_child_whose_first_handler_waits_or_forks_is_mended_once)
{
    expect_exit(42, fork_in_the_first_child_handler(NULL), "");
    assert_false(said("made by _Fork"));
}

SUITE(pthread_atfork(late_prepare_handler, late_parent_handler, late_child_handler))
