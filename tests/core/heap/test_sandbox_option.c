/* SPDX-License-Identifier: MIT */
/*
 * The option sandbox in a program linked with libprudence: from the environment, and at run time
 * before and after the first cache. Checks the permanent changes, and that deferrals, readers and
 * forks still work. tests/preload/test_sandbox.py checks that the library makes no other system
 * call.
 */

#include <errno.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "os/os.h"
#include "support/gp_child.h"
#include "support/suite.h"
#include "support/threads.h"
#include "support/stats.h"

#define THREADS 3
#define ROUNDS  20000

static uint64_t *shared; /* atomic */

static void *read_and_defer(void *unused)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t *object = prudence_malloc(64), *before;

        *object = 1;
        before = __atomic_exchange_n(&shared, object, __ATOMIC_ACQ_REL);
        if (before)
            prudence_free_deferred(before);
        prudence_read_lock();
        if (__atomic_load_n(load_acquire(&shared), __ATOMIC_RELAXED) != 1)
            abort();
        prudence_read_unlock();
    }
    prudence_synchronize();
    return unused;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];

    for (unsigned i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, read_and_defer, NULL))
            abort();
    threads_join(threads, THREADS);
}

static bool child_works(void)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        read_and_defer(NULL);
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static bool is_in_sandbox(const char *percpu)
{
    struct prudence_stats stats = stats_now();

    return load_relaxed(&os_calls) == OS_CALLS_FEW && strcmp(stats.membarrier, "missing") == 0 &&
           strcmp(stats.readers_mode, "fenced") == 0 &&
           (!percpu || strcmp(stats.percpu, percpu) == 0);
}

static bool works(const char *percpu)
{
    if (!is_in_sandbox(percpu))
        return false;
    run_threads();
    return child_works() && is_in_sandbox(percpu);
}

static bool stays(void)
{
    return prudence_option_set("sandbox", "0") == EBUSY &&
           prudence_option_set("sandbox", "auto") == EBUSY &&
           prudence_option_set("sandbox", "1") == 0 &&
           prudence_option_set("sandbox", "2") == EINVAL;
}

static int before_caches(void *unused)
{
    if (prudence_option_set("sandbox", "1"))
        return 1;
    return works("lock") && stays() ? 42 : 2;
}

/* Other threads read and defer at the same time, with fast paths in use. */
static int after_caches(void *unused)
{
    pthread_t thread;

    run_threads();
    pthread_create(&thread, NULL, read_and_defer, NULL);
    if (prudence_option_set("sandbox", "1"))
        return 1;
    pthread_join(thread, NULL);
    return works(NULL) && stays() ? 42 : 2;
}

/* A program linked with the library makes all calls by default. */
static int by_default(void *unused)
{
    prudence_free(prudence_malloc(10));
    if (os_calls_are_few() || prudence_option_set("sandbox", "auto") ||
        prudence_option_set("sandbox", "0") || os_calls_are_few())
        return 1;
    return 42;
}

TEST(at_run_time)
{
    struct child_result result;

    assert_child(before_caches, NULL);
    assert_child(after_caches, NULL);
    assert_child(by_default, NULL);
    child_run(before_caches, NULL, &result);
    assert_true(
        child_said(&result, "'sandbox': the value set before cannot be taken back (value '0')"));
    assert_true(child_said(&result, "bad value '2'"));
}

TEST(from_the_environment)
{
    expect_again(42, "work", "sandbox=1", "");
    expect_again(42, "work", "sandbox=1,rseq=1,membarrier=1,reader_mode=free", "");
    expect_again(0, "none", "sandbox=yes",
                 "option 'sandbox': bad value 'yes' (expected: auto, 0 or 1)");
}

static int run_role(const char *role)
{
    if (strcmp(role, "none") == 0)
        return os_calls_are_few();
    return works("lock") && stays() ? 42 : 1;
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        prudence_free(prudence_malloc(10));
        return run_role(argv[1]);
    }
    return suite_run(NULL, NULL);
}
