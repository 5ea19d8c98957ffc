/* SPDX-License-Identifier: MIT */
/*
 * Forks while another thread stands at a chosen instruction of some path, without a hook in that
 * path: the other thread runs under the processor's trap flag (step.h) and waits in the trap.
 *
 * The other thread takes `before` steps, or fewer if it is about to sleep; with FORK_ASLEEP it runs
 * at full speed until it sleeps. Then this thread forks. While fork() waits for the other thread,
 * for example for a lock that the other thread holds, this thread sleeps, and the other one takes
 * one more step at a time. When fork() holds every lock it takes, the other thread takes `inside`
 * more steps, so tests also see how that thread behaves during a fork. Nothing depends on time:
 * /proc tells whether a thread sleeps.
 *
 * The program calls fork_at_step_start() before any constructor (support/before_constructors.h), so
 * that the pthread_atfork() handler of this file runs last before a fork.
 */
#ifndef TESTS_SUPPORT_FORK_AT_STEP_H
#define TESTS_SUPPORT_FORK_AT_STEP_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <prudence/rcu.h>

#include "support/before_constructors.h"
#include "support/gp_child.h"
#include "support/step.h"

#if STEP_POSSIBLE

#define FORK_ASLEEP_LOOKS 3        /* consecutive looks without a step in between */
#define FORK_ASLEEP       UINT_MAX /* a value of `before` */

static struct {
    void (*enter)(void); /* runs before stepping starts, because it may block signals */
    void (*body)(void);
    int thread_id, forking_id; /* these and the fields below are atomic */
    unsigned inside, steps, allowed;
    bool is_armed, preparing, at_sleep, entered, done;
} fork_step;

#define FORK_STEP_GET(member)        __atomic_load_n(&fork_step.member, __ATOMIC_SEQ_CST)
#define FORK_STEP_SET(member, value) __atomic_store_n(&fork_step.member, value, __ATOMIC_SEQ_CST)

/* Parses "123 (name) S ...". The names of these threads contain no parentheses. */
static bool fork_thread_sleeps(int thread)
{
    char path[64], text[128];
    const char *behind;
    ssize_t length;
    int file;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    behind = strchr(text, ')');
    return behind && behind[1] == ' ' && behind[2] == 'S';
}

static bool fork_step_is_sleep(const greg_t *registers)
{
    return step_is_at_call(registers, SYS_nanosleep) ||
           step_is_at_call(registers, SYS_clock_nanosleep) || step_is_at_call(registers, SYS_futex);
}

/* Runs in the other thread before each instruction. */
static void fork_step_visit(const greg_t *registers)
{
    int saved_errno = errno;
    unsigned taken = __atomic_add_fetch(&fork_step.steps, 1, __ATOMIC_SEQ_CST);

    if (FORK_STEP_GET(at_sleep) && fork_step_is_sleep(registers)) {
        FORK_STEP_SET(at_sleep, false);
        FORK_STEP_SET(allowed, taken - 1);
    }
    while (taken > FORK_STEP_GET(allowed)) {
        if (FORK_STEP_GET(preparing) && fork_thread_sleeps(FORK_STEP_GET(forking_id)))
            __atomic_fetch_add(&fork_step.allowed, 1, __ATOMIC_SEQ_CST);
        usleep(20);
    }
    step_enough = FORK_STEP_GET(allowed) == UINT_MAX;
    errno = saved_errno;
}

static void fork_step_body(void *unused)
{
    (void)unused;
    fork_step.body();
}

static void *fork_step_thread(void *unused)
{
    FORK_STEP_SET(thread_id, gettid());
    if (fork_step.enter)
        fork_step.enter();
    FORK_STEP_SET(entered, true);
    if (FORK_STEP_GET(allowed) == FORK_ASLEEP)
        fork_step.body();
    else
        step_through(fork_step_body, NULL, fork_step_visit);
    FORK_STEP_SET(done, true);
    return unused;
}

static bool fork_step_waits(void)
{
    return FORK_STEP_GET(done) || FORK_STEP_GET(steps) > FORK_STEP_GET(allowed);
}

/* Lets the other thread take `more` steps. Stops early when that thread ends, or sleeps because
 * this thread holds a lock it wants. */
static void fork_step_on(unsigned more)
{
    unsigned asleep = 0, before = 0;

    FORK_STEP_SET(allowed, FORK_STEP_GET(steps) - 1 + more);
    while (!fork_step_waits() && asleep < FORK_ASLEEP_LOOKS) {
        unsigned now = FORK_STEP_GET(steps);

        asleep = now == before && fork_thread_sleeps(FORK_STEP_GET(thread_id)) ? asleep + 1 : 0;
        before = now;
        usleep(50);
    }
}

/* Waits until the other thread sleeps or ends. This thread holds a resource the other one needs, so
 * the other one keeps going back to sleep. */
static void fork_step_until_asleep(void)
{
    unsigned asleep = 0;

    while (!FORK_STEP_GET(done) && asleep < FORK_ASLEEP_LOOKS) {
        bool sleeps = FORK_STEP_GET(entered) && fork_thread_sleeps(FORK_STEP_GET(thread_id));

        asleep = sleeps ? asleep + 1 : 0;
    }
}

/* Runs as the last prepare handler, when fork() holds all locks. */
static void fork_step_prepared(void)
{
    if (!fork_step.is_armed)
        return;
    fork_step.is_armed = false;
    FORK_STEP_SET(preparing, false);
    if (fork_step.inside)
        fork_step_on(fork_step.inside);
}

static void fork_at_step_start(void)
{
    pthread_atfork(fork_step_prepared, NULL, NULL);
}

/*
 * Forks as described at the head of this file. `in_child` returns 42 on success. After the fork the
 * other thread runs on, and `release`, if not NULL, lets that thread end. Returns the number of
 * steps taken before the other thread was let go.
 */
static unsigned fork_at_step(void (*enter)(void), void (*body)(void), unsigned before,
                             unsigned inside, int (*in_child)(void *argument), void *argument,
                             void (*release)(void), struct child_result *result)
{
    pthread_t thread;
    unsigned steps;

    memset(&fork_step, 0, sizeof fork_step);
    fork_step.enter = enter;
    fork_step.body = body;
    fork_step.inside = inside;
    fork_step.forking_id = gettid();
    fork_step.allowed = before;
    fork_step.at_sleep = true;
    if (pthread_create(&thread, NULL, fork_step_thread, NULL))
        abort();
    if (before == FORK_ASLEEP)
        fork_step_until_asleep();
    while (before != FORK_ASLEEP && !fork_step_waits())
        usleep(50);
    FORK_STEP_SET(at_sleep, false);
    fork_step.is_armed = true;
    FORK_STEP_SET(preparing, true);
    child_run(in_child, argument, result);
    steps = FORK_STEP_GET(steps);
    FORK_STEP_SET(allowed, UINT_MAX);
    if (release)
        release();
    pthread_join(thread, NULL);
    return steps;
}

/* ----------------------------------------------------------------------------- rows of a matrix */

/* What another thread does step by step, and what the child checks. */
struct fork_path {
    const char *name;
    void (*set_up)(void);
    void (*enter)(void);    /* run by the other thread at full speed; NULL: it becomes a reader */
    void (*body)(void);     /* run by the other thread step by step */
    void (*let_end)(void);  /* run by this thread, in parent and child, to end the body's wait */
    void (*in_child)(void); /* asserts that all is well */
    void (*tear_down)(void);
    unsigned places; /* for tests that fork at some places of the path */
};

/* What each child does in the end, and its own child before. */
static void (*fork_path_uses)(const struct fork_path *path);

static void fork_path_enter(void)
{
    prudence_read_lock();
    prudence_read_unlock();
}

static int fork_path_child(void *argument)
{
    const struct fork_path *path = argument;
    pid_t grandchild;
    int status;

    setenv("CMOCKA_TEST_ABORT", "1", 1); /* an assertion ends this process */
    if (path->let_end)
        path->let_end();
    if (path->in_child)
        path->in_child();
    grandchild = fork();
    if (grandchild == 0) {
        fork_path_uses(path);
        _exit(0);
    }
    assert_int_equal(waitpid(grandchild, &status, 0), grandchild);
    assert_int_equal(status, 0);
    fork_path_uses(path);
    return 42;
}

/* Returns how many steps the other thread had taken. */
static unsigned fork_path(const struct fork_path *path, unsigned before, unsigned inside)
{
    struct child_result result;
    unsigned steps;

    if (path->set_up)
        path->set_up();
    steps = fork_at_step(path->enter ? path->enter : fork_path_enter, path->body, before, inside,
                         fork_path_child, (void *)(uintptr_t)path, path->let_end, &result);
    if (!child_exited_with(&result, 42))
        fail_msg("%s, step %u (%u of them inside the fork): status %#x: %s", path->name, steps,
                 inside, (unsigned)result.status, result.output);
    if (path->tear_down)
        path->tear_down();
    return steps;
}

#endif

#endif /* TESTS_SUPPORT_FORK_AT_STEP_H */
