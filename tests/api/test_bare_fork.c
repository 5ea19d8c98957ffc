/* SPDX-License-Identifier: MIT */
/*
 * Children made by _Fork and clone, which skip the fork handlers, are noticed, and reported once if
 * the parent had threads. They may read, allocate and free. Children that share their parent's
 * memory (vfork, posix_spawn, clone with CLONE_VM) change nothing.
 *
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children, no exit beside threads)
 */
#define _GNU_SOURCE

#include <pthread.h>
#include <sched.h>
#include <spawn.h>

#include <prudence/call.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "os/os.h"
#include "posix.h"
#include "support/bare_fork.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/suite.h"
#include "support/stats.h"

#define NOTICED "without the handlers of fork"

extern char **environ;

/* Runs `body` in a child made by `make`. Stores its exit status and messages in *result. */
static void bare_child(pid_t (*make)(void), int (*body)(void), struct child_result *result)
{
    int ends[2];
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = make();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        alarm(CHILD_PATIENCE);
        _exit(body());
    }
    close(ends[1]);
    child_collect(child, ends[0], result);
}

static void assert_bare_child(pid_t (*make)(void), int (*body)(void), unsigned reports)
{
    struct child_result result;

    bare_child(make, body, &result);
    if (!child_exited_with(&result, 42) || child_count(&result, NOTICED) != reports ||
        child_said(&result, "exits inside"))
        print_error("status %#x: %s\n", (unsigned)result.status, result.output);
    assert_child_result(&result);
    assert_int_equal(child_count(&result, NOTICED), reports);
    assert_false(child_said(&result, "exits inside"));
}

static uint64_t clock_ms(void)
{
    return os_clock_ns() / 1000000;
}

/* Holds up grace periods with its own section for longer than the time after which drivers look
 * for threads that have ended. */
static int read_for_long(void)
{
    uint64_t end = clock_ms() + 30;
    int *object;

    prudence_read_lock();
    object = prudence_malloc(64);
    *object = 42;
    prudence_free_deferred(object);
    while (clock_ms() < end) {
        int *other = prudence_malloc(64);

        if (other == object)
            return 1;
        *other = 7;
        prudence_free_deferred(other);
        prudence_gp_poll_state(prudence_gp_start_poll());
    }
    if (!prudence_read_lock_held() || *object != 42)
        return 2;
    prudence_read_unlock();
    prudence_synchronize();
    return 42;
}

/* Where there never was another thread, nothing can be lost, and nothing is reported. */
TEST_FIRST(a_section_of_the_child_is_its_own)
{
    const unsigned reports = os_is_single_threaded() ? 0 : 1;

    prudence_read_lock(); /* registers the thread */
    prudence_read_unlock();
    assert_bare_child(_Fork, read_for_long, reports);
    assert_bare_child(bare_fork, read_for_long, reports);
}

static void run(struct prudence_head *head)
{
}

static int use_everything(void)
{
    static struct prudence_head head;

    for (unsigned i = 1; i < 3000; i++) {
        prudence_free(prudence_malloc(i * 7));
        prudence_free_deferred(prudence_malloc(i));
    }
    prudence_call(&head, run);
    prudence_synchronize();
    if (prudence_barrier())
        return 1;
    prudence_trim();
    return 42;
}

/* Their reader words would hold up every grace period. */
TEST(readers_of_other_threads_are_not_in_the_child)
{
    struct held_reader reader = {.domain = NULL};

    held_reader_start(&reader);
    assert_bare_child(_Fork, use_everything, 1);
    held_reader_end(&reader);
}

static int allocate_only(void)
{
    for (unsigned i = 1; i < 100; i++)
        prudence_free(prudence_malloc(i));
    return 42;
}

TEST(what_is_safe_is_not_reported)
{
    assert_bare_child(_Fork, allocate_only, 0);
}

static int fork_again(void)
{
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(use_everything());
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 42 ? use_everything() : 1;
}

TEST(it_may_fork)
{
    assert_bare_child(_Fork, fork_again, 1);
}

/* ------------------------------------------------------------------ a lock whose holder is gone */

static struct os_lock lock = OS_LOCK_INIT(OS_RANK_PAGES);
static volatile int holds, may_release;

static void *hold(void *unused)
{
    os_lock_take(&lock);
    holds = 1;
    while (!may_release)
        os_sleep_ns(100000);
    os_lock_release(&lock);
    return unused;
}

static int take_lock(void)
{
    os_lock_take(&lock);
    return 1;
}

TEST(a_lock_whose_holder_is_not_there)
{
    struct child_result result;
    pthread_t thread;

    pthread_create(&thread, NULL, hold, NULL);
    while (!holds)
        os_sleep_ns(100000);
    bare_child(_Fork, take_lock, &result);
    may_release = 1;
    pthread_join(thread, NULL);
    assert_true(child_died(&result));
    assert_true(child_said(&result, "a lock of the library is held by thread"));
}

/* ------------------------------------------------------------------------------ shared memory */

static int in_shared_memory(void *unused)
{
    os_copy_check();
    _exit(os_copy_made ? 1 : 42);
}

static pid_t by_vfork(void)
{
    pid_t child = vfork();

    if (child == 0)
        _exit(in_shared_memory(NULL));
    return child;
}

static pid_t by_clone_vm(void)
{
    static char stack[65536] __attribute__((aligned(64)));

    return clone(in_shared_memory, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
}

static pid_t by_spawn(void)
{
    char *arguments[] = {"sh", "-c", "exit 42", NULL};
    pid_t child = -1;

    posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ);
    return child;
}

TEST(children_that_share_memory_change_nothing)
{
    pid_t (*const makes[])(void) = {by_vfork, by_clone_vm, by_spawn};
    struct prudence_stats before = stats_now(), after;

    for (unsigned i = 0; i < sizeof makes / sizeof makes[0]; i++) {
        prudence_gp_t cookie;
        int status;

        prudence_read_lock();
        cookie = prudence_gp_start_poll();
        assert_true(waitpid(makes[i](), &status, 0) > 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
        assert_true(prudence_read_lock_held());
        assert_false(prudence_gp_poll_state(cookie));
        prudence_read_unlock();
        prudence_synchronize();
        assert_true(prudence_gp_poll_state(cookie));
    }
    prudence_stats(&after);
    assert_int_equal(after.readers, before.readers);
    assert_false(os_copy_made);
}

static int not_reported(void *unused)
{
    os_copy_check();
    return os_copy_made ? 1 : 42;
}

TEST(a_child_of_fork_is_known)
{
    assert_child(not_reported, NULL);
}

SUITE()
