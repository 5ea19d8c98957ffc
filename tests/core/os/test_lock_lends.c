/* SPDX-License-Identifier: MIT */
/*
 * A thread that waits long for a lock of the library lends its priority to the holder, so a
 * real-time thread does not wait until an ordinary holder gets a CPU. Covers a child of fork, where
 * threads have other ids, a system that refuses to lend, and many threads that lend and borrow.
 * Waiters are watched in /proc: a waiter that sleeps SLEEPS times without lending never will.
 *
 * ctest: not-with thread (ThreadSanitizer installs what a seccomp filter then refuses)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <prudence/prudence.h>

#include "os/os.h"
#include "support/suite.h"
#include "support/threads.h"

#define SLEEPS  20
#define MISSING 77

static struct os_lock lock = OS_LOCK_INIT(OS_RANK_SCM);

/* ------------------------------------------------------------------------------------- watching */

/* Reads a file of the thread in /proc into `text`, which is empty if there is none. */
static void read_of(int thread, const char *name, char *text, size_t size)
{
    char path[64];
    FILE *file;
    size_t length = 0;

    snprintf(path, sizeof path, "/proc/self/task/%d/%s", thread, name);
    file = fopen(path, "r");
    if (file) {
        length = fread(text, 1, size - 1, file);
        fclose(file);
    }
    text[length] = '\0';
}

static unsigned long sleeps_of(int thread)
{
    char text[4096];
    const char *at;

    read_of(thread, "status", text, sizeof text);
    at = strstr(text, "\nvoluntary_ctxt_switches:");
    return at ? strtoul(strchr(at, ':') + 1, NULL, 10) : 0;
}

/* Returns whether the thread waits for a word that lends. */
static bool lends(int thread)
{
    char text[256];
    long call, word, operation;

    read_of(thread, "syscall", text, sizeof text);
    return sscanf(text, "%ld %lx %lx", &call, (unsigned long *)&word,
                  (unsigned long *)&operation) == 3 &&
           call == SYS_futex && operation == (FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG);
}

/* Returns the priority that the kernel gives the calling thread; below 0 is real-time. */
static int priority_now(void)
{
    char text[1024];
    int priority = 0;

    read_of((int)gettid(), "stat", text, sizeof text);
    assert_int_equal(sscanf(strrchr(text, ')'),
                            ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
                            "%*u %*u %*d %*d %d",
                            &priority),
                     1);
    return priority;
}

/* ------------------------------------------------------------------------------------- a waiter */

struct waiter {
    pthread_t thread;
    int id; /* atomic; 0 until the thread is about to wait */
    bool real_time, may_not;
    int priority_after; /* the holder's, right after the release */
    uint32_t held_by;   /* the lock's word, when the waiter had the lock */
};

static void *wait_for_lock(void *argument)
{
    struct waiter *waiter = argument;
    struct sched_param urgent = {.sched_priority = 1};

    if (waiter->real_time)
        waiter->may_not = pthread_setschedparam(pthread_self(), SCHED_FIFO, &urgent) != 0;
    store_release(&waiter->id, (int)gettid());
    os_lock_take(&lock);
    waiter->held_by = load_relaxed(&lock.word) & ~OS_LOCK_AWAITED;
    os_lock_release(&lock);
    return NULL;
}

static void waiter_start(struct waiter *waiter)
{
    waiter->thread = thread_start(wait_for_lock, waiter);
    while (!load_acquire(&waiter->id))
        sched_yield();
}

/* Returns whether the waiter got the lock. */
static bool waiter_end(struct waiter *waiter)
{
    os_lock_release(&lock);
    waiter->priority_after = priority_now();
    return !pthread_join(waiter->thread, NULL) && waiter->held_by == (uint32_t)waiter->id &&
           !load_relaxed(&lock.word);
}

static bool lends_when_late(void)
{
    struct waiter waiter = {0};
    bool named, lent = false;

    os_lock_take(&lock);
    named = lock.word == (uint32_t)gettid();
    waiter_start(&waiter);
    while (!lent && sleeps_of(waiter.id) < SLEEPS)
        lent = lends(waiter.id);
    return waiter_end(&waiter) && named && lent;
}

TEST(a_waiter_lends_when_the_release_is_late)
{
    assert_true(lends_when_late());
}

/* ------------------------------------------------------------------------------------- priority */

/* Returns true also if this process may not have real-time threads. */
static bool raises_the_holder(void)
{
    struct waiter waiter = {.real_time = true};
    int before = priority_now(), during = before;

    os_lock_take(&lock);
    waiter_start(&waiter);
    while (!waiter.may_not && during >= 0 && sleeps_of(waiter.id) < SLEEPS)
        during = priority_now();
    return waiter_end(&waiter) && waiter.priority_after == before && (waiter.may_not || during < 0);
}

TEST(a_real_time_waiter_raises_the_holder)
{
    assert_true(raises_the_holder());
}

/* Runs this in a child, and returns how that ended. */
static int in_child(bool (*run)(void))
{
    pid_t child;

    prudence_free(prudence_malloc(1)); /* starts the process */
    os_lock_take(&lock);               /* notes this thread's id */
    os_lock_release(&lock);
    child = fork();
    if (!child)
        _exit(run() ? 0 : 1);
    return WEXITSTATUS(status_of(child));
}

static bool lends_and_raises(void)
{
    return lends_when_late() && raises_the_holder();
}

TEST(threads_of_a_child_of_fork_lend)
{
    assert_int_equal(in_child(lends_and_raises), 0);
}

/* -------------------------------------------------------------------------------------- refusal */

static void refuse_to_lend(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
        _exit(MISSING);
}

/* The waiter sleeps as if it could lend, and does not spin. */
static bool waits_without_lending(void)
{
    struct waiter waiter = {0};

    refuse_to_lend();
    os_lock_take(&lock);
    waiter_start(&waiter);
    while (sleeps_of(waiter.id) < 5)
        sched_yield();
    return waiter_end(&waiter);
}

TEST(a_system_that_refuses_to_lend)
{
    int status = in_child(waits_without_lending);

    if (status == MISSING)
        skip();
    assert_int_equal(status, 0);
}

/* ----------------------------------------------------------------------------------------- many */

#define MANY   6
#define ROUNDS 100

static unsigned inside, entries; /* under the lock */

static void *take_often(void *number)
{
    for (uintptr_t round = (uintptr_t)number; round < ROUNDS + (uintptr_t)number; round++) {
        os_lock_take(&lock);
        inside++;
        assert_int_equal(inside, 1);
        if (round % 8 == 0)
            os_sleep_ns(300000); /* so late that the others lend */
        entries++;
        inside--;
        os_lock_release(&lock);
    }
    return NULL;
}

TEST(many_threads_lend_and_borrow)
{
    pthread_t threads[MANY];

    threads_start(threads, MANY, take_often);
    threads_join(threads, MANY);
    assert_int_equal(entries, MANY * ROUNDS);
    assert_int_equal(lock.word, 0);
}

SUITE()
