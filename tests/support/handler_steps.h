/* SPDX-License-Identifier: MIT */
/*
 * Has a signal handler run between any two instructions of functions that a header calls
 * async-signal-safe. Each test of such functions is a body, which makes balanced calls and checks
 * their results. For each instruction of each body in turn, a new thread runs the body, and the
 * handler comes before that instruction. The handler makes the calls of all bodies itself, on
 * another CPU if the body asks for the CPU. So what a thread does for the first time, as
 * registering, making memory or growing a table, is done by the handler. Afterwards the program of
 * the test checks whether anything is lost.
 *
 * The library blocks signals where a handler must not come. Here, that is remembered and not done,
 * because a blocked SIGTRAP would kill; the handler does not come there.
 *
 * `tests/repo/test_signal_safe.py` compares the bodies with the headers.
 */
#ifndef TESTS_SUPPORT_HANDLER_STEPS_H
#define TESTS_SUPPORT_HANDLER_STEPS_H

#include <errno.h>
#include <sched.h>
#include <stdio.h>

#include "support/step.h"
#include "support/suite.h"
#include "support/threads.h"

#if STEP_POSSIBLE

struct handler_body {
    const char *name;
    void (*run)(unsigned depth); /* 0: interrupted; 1: in the handler */
    bool moves;                  /* it asks on which CPU it runs */
};
/* clang-format off */
#define BODY(name) {#name, name, false}
#define MOVES(name) {#name, name, true}
/* clang-format on */

/* Once a round, after the thread that was interrupted has ended. */
extern void handler_steps_check(void);
extern const struct handler_body handler_bodies[];
extern const unsigned handler_body_count;

static const struct handler_body *handler_now;   /* the body that is interrupted */
static bool handler_knows;                       /* the thread has made the body's calls before */
static unsigned handler_at, handler_steps_taken; /* not counted where signals are blocked */
static unsigned handler_wrong;                   /* a line */
static __thread bool handler_blocked;

#define HANDLER_CHECK(truth) ((truth) ? (void)0 : (void)(handler_wrong = __LINE__))

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old);

/* Replaces libc's. */
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    sigset_t without_trap;
    bool blocks = set && how != SIG_UNBLOCK && sigismember(set, SIGUSR1);
    long result;

    if (set) {
        without_trap = *set;
        sigdelset(&without_trap, SIGTRAP);
    }
    result = syscall(SYS_rt_sigprocmask, how, set ? &without_trap : NULL, old, 8);
    if (set && (how != SIG_BLOCK || blocks))
        handler_blocked = blocks;
    return result ? errno : 0;
}

static int handler_cpus[2], handler_cpu_count;

static void handler_find_cpus(void)
{
    cpu_set_t allowed;

    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE && handler_cpu_count < 2; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            handler_cpus[handler_cpu_count++] = cpu;
}

static void handler_move_to(int which)
{
    cpu_set_t one;

    if (handler_cpu_count < 2 || !handler_now->moves)
        return;
    CPU_ZERO(&one);
    CPU_SET(handler_cpus[which], &one);
    sched_setaffinity(0, sizeof one, &one);
}

static void handler_comes(void)
{
    handler_move_to(1);
    for (unsigned i = 0; i < handler_body_count; i++)
        handler_bodies[i].run(1);
}

static void handler_visit(const greg_t *registers)
{
    (void)registers;
    if (handler_blocked || handler_steps_taken++ != handler_at)
        return;
    handler_comes();
    step_enough = true;
}

static void handler_run_body(void *unused)
{
    (void)unused;
    handler_now->run(0);
}

static void *handler_thread(void *unused)
{
    handler_move_to(0);
    if (handler_knows)
        handler_now->run(0);
    handler_steps_taken = 0;
    step_through(handler_run_body, NULL, handler_visit);
    return unused;
}

/* Says where a fault of the library came. */
static void handler_fault(int number)
{
    char line[200];
    int length = snprintf(line, sizeof line, "signal %d: %s, handler before instruction %u, %s\n",
                          number, handler_now->name, handler_at, handler_knows ? "known" : "new");

    signal(number, SIG_DFL);
    if (write(2, line, (size_t)length) == length)
        raise(number);
}

/* A trap costs from one microsecond to fifty. So the handler comes before every instruction of a
 * short body, and of a long one before as many as HANDLER_TRAPS allow. */
#define HANDLER_TRAPS  16000
#define HANDLER_PLACES 5 /* at least */

static unsigned handler_each(unsigned instructions)
{
    unsigned each = 1 + (unsigned)((uint64_t)instructions * instructions / 2 / HANDLER_TRAPS);
    unsigned few = instructions / HANDLER_PLACES;

    return few && few < each ? few : each;
}

/* Counts in a second thread, because the first one has the library do things once for all. */
static unsigned handler_count_instructions(void)
{
    handler_at = UINT32_MAX;
    in_thread(handler_thread, NULL);
    in_thread(handler_thread, NULL);
    return handler_steps_taken;
}

static void handler_at_each_step(const struct handler_body *body, bool knows)
{
    unsigned places = 0, total;

    handler_now = body;
    handler_knows = knows;
    total = handler_count_instructions();
    for (handler_at = 0; handler_at < total; handler_at += handler_each(total), places++) {
        handler_wrong = 0;
        in_thread(handler_thread, NULL);
        handler_steps_check();
        if (handler_wrong)
            fail_msg("line %u: %s, handler before instruction %u, thread %s", handler_wrong,
                     body->name, handler_at, knows ? "known" : "new");
    }
    print_message("%-16s %s: %u places of %u instructions\n", body->name, knows ? "known" : "new  ",
                  places, total);
    assert_true(total > 3);
}

/* `of_new_threads`: the bodies also make a thread's first calls. */
static void handler_steps_all(bool of_new_threads)
{
    handler_find_cpus();
    signal(SIGSEGV, handler_fault);
    signal(SIGABRT, handler_fault);
    for (unsigned i = 0; i < handler_body_count; i++) {
        if (of_new_threads)
            handler_at_each_step(&handler_bodies[i], false);
        handler_at_each_step(&handler_bodies[i], true);
    }
}

#endif

#endif /* TESTS_SUPPORT_HANDLER_STEPS_H */
