/* SPDX-License-Identifier: MIT */
/*
 * Longer time slices: a thread requests a longer slice while it holds a lock or owns a CPU's
 * caches, gives up the CPU after a granted slice, and leaves requests of readers alone. The test
 * acts as the kernel: it grants slices and counts yields. (The words are in each thread's struct
 * rseq, in the last four bytes, which older kernels and libraries do not use.)
 */
#define _GNU_SOURCE
#define PRUDENCE_READER_SLICES

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "os/os.h"
#include "posix.h"
#include "support/suite.h"

static struct os_lock lock = OS_LOCK_INIT(OS_RANK_META), outer = OS_LOCK_INIT(OS_RANK_HEAP);
static int enabled, yielded;
static bool refuse;

static bool enable(void)
{
    enabled++;
    errno = refuse ? EPERM : errno;
    return !refuse;
}

static void yield(void)
{
    yielded++;
}

static volatile unsigned char *request(void)
{
    return prudence_slice_();
}

static volatile unsigned char *granted(void)
{
    return prudence_slice_() + 1;
}

static void grant(void)
{
    assert_int_equal(*request(), 1);
    *request() = 0;
    *granted() = 1;
}

static int set_up(void **state)
{
    prudence_free(prudence_malloc(1)); /* starts the process */
    refuse = false;
    posix_slices_inject(enable, yield);
    *request() = *granted() = 0;
    enabled = yielded = 0;
    return 0;
}

static int tear_down(void **state)
{
    posix_slices_inject(NULL, NULL);
    *request() = *granted() = 0;
    return 0;
}

TEST(requested_while_a_lock_is_held, set_up, tear_down)
{
    os_lock_take(&outer);
    assert_int_equal(*request(), 1);
    os_lock_take(&lock);
    os_lock_release(&lock);
    assert_int_equal(*request(), 1);
    os_lock_release(&outer);
    assert_int_equal(*request(), 0);
    assert_int_equal(yielded, 0);
    assert_int_equal(enabled, 1); /* once per thread */
}

TEST(a_granted_slice_is_given_up_when_the_last_lock_is_released, set_up, tear_down)
{
    os_lock_take(&outer);
    os_lock_take(&lock);
    grant();
    os_lock_release(&lock);
    assert_int_equal(yielded, 0);
    os_lock_release(&outer);
    assert_int_equal(yielded, 1);
    *granted() = 0; /* as the kernel does then */
    os_lock_take(&lock);
    assert_int_equal(*request(), 1);
    os_lock_release(&lock);
    assert_int_equal(yielded, 1);
}

/* The kernel took the CPU at the end of the slice, so both words are 0. */
TEST(a_slice_that_ran_out_is_not_given_up, set_up, tear_down)
{
    os_lock_take(&lock);
    grant();
    *granted() = 0;
    os_lock_release(&lock);
    assert_int_equal(yielded, 0);
}

TEST(owners_of_a_cpu_request_one, set_up, tear_down)
{
    os_busy_enter();
    assert_int_equal(*request(), 1);
    os_busy_leave();
    assert_int_equal(*request(), 0);
}

TEST(a_readers_request_stays, set_up, tear_down)
{
    prudence_read_lock();
    prudence_read_unlock(); /* the first entry registers */
    prudence_read_lock();
    assert_int_equal(*request(), 1);
    os_lock_take(&lock);
    grant();
    os_lock_release(&lock);
    assert_int_equal(yielded, 0); /* not inside the section */
    prudence_read_lock();
    prudence_read_unlock();
    assert_int_equal(yielded, 0);
    prudence_read_unlock();
    assert_int_equal(yielded, 1);
    *granted() = 0;
    prudence_read_lock();
    os_lock_take(&lock);
    os_lock_release(&lock);
    assert_int_equal(*request(), 1);
    prudence_read_unlock();
    assert_int_equal(*request(), 0);
    assert_int_equal(yielded, 1);
}

/* A lock inside a section requests a new slice after the section's own was used up. */
TEST(a_lock_in_a_section_requests_anew, set_up, tear_down)
{
    prudence_read_lock();
    grant();
    *granted() = 0;
    os_lock_take(&lock);
    assert_int_equal(*request(), 1);
    grant();
    os_lock_release(&lock);
    assert_int_equal(yielded, 1);
    *granted() = 0;
    prudence_read_unlock();
    assert_int_equal(yielded, 1);
}

static void take_and_release(int signal)
{
    os_lock_take(&lock);
    os_lock_release(&lock);
}

TEST(a_signal_handler_changes_nothing, set_up, tear_down)
{
    signal(SIGUSR1, take_and_release);
    os_lock_take(&outer);
    raise(SIGUSR1);
    assert_int_equal(*request(), 1);
    grant();
    raise(SIGUSR1);
    assert_int_equal(yielded, 0);
    os_lock_release(&outer);
    assert_int_equal(yielded, 1);
    signal(SIGUSR1, SIG_DFL);
}

static void *in_thread(void *unused)
{
    errno = 0;
    os_lock_take(&lock);
    assert_int_equal(*request(), refuse ? 0 : 1);
    os_lock_release(&lock);
    os_lock_take(&lock);
    os_lock_release(&lock);
    assert_int_equal(errno, 0);
    return unused;
}

static void run_thread(void)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, in_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

TEST(each_thread_enables_its_own, set_up, tear_down)
{
    run_thread();
    run_thread();
    assert_int_equal(enabled, 2);
}

TEST(where_it_is_refused_nobody_asks_again, set_up, tear_down)
{
    refuse = true;
    run_thread();
    assert_int_equal(enabled, 1);
    assert_false(os_slices);
    run_thread();
    assert_int_equal(enabled, 1);
    os_lock_take(&lock);
    assert_int_equal(*request(), 0);
    os_lock_release(&lock);
}

TEST(a_forked_child_goes_on, set_up, tear_down)
{
    int status;
    pid_t child;

    os_lock_take(&lock);
    os_lock_release(&lock);
    child = fork();
    if (child == 0) {
        bool right;

        os_lock_take(&lock);
        right = *request() == 1 && enabled == 1;
        os_lock_release(&lock);
        _exit(right && *request() == 0 && yielded == 0 ? 42 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

TEST(can_be_switched_off, set_up, tear_down)
{
    posix_slices_start(false);
    os_lock_take(&lock);
    assert_int_equal(*request(), 0);
    os_lock_release(&lock);
    assert_int_equal(enabled, 0);
}

/* In a guest with this feature (tools/test/slices), the kernel itself answers. */
TEST(the_kernel_knows_what_we_ask, set_up, tear_down)
{
    posix_slices_inject(NULL, NULL);
    posix_slices_start(true);
    if (!os_slices)
        skip();
    os_lock_take(&lock);
    assert_int_equal(*request(), 1);
    os_lock_release(&lock);
    assert_int_equal(*request(), 0);
    posix_slices_start(false);
}

SUITE(prudence_free(prudence_malloc(1)))
