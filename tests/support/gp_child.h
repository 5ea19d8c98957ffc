/* SPDX-License-Identifier: MIT */
/*
 * Runs the body of a test in a child process, because the test kills the process, hangs, or depends
 * on how the process starts. Captures standard error, and sets an alarm against deadlocks. Include
 * <cmocka.h> first.
 */
#ifndef TESTS_SUPPORT_GP_CHILD_H
#define TESTS_SUPPORT_GP_CHILD_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/gp_tsan.h"
#include "support/patience.h"
#include "support/self.h"
#include "support/suite.h"

#define CHILD_PATIENCE patience(30) /* seconds: valgrind and sanitizers are slow */

struct child_result {
    pid_t child;
    int from;           /* end of a pipe, of which the child has the other */
    int status;         /* from waitpid() */
    char output[65536]; /* standard error and standard output */
};

static inline bool child_exited_with(const struct child_result *result, int code)
{
    return WIFEXITED(result->status) && WEXITSTATUS(result->status) == code;
}

/* Accepts any failing exit as well as SIGABRT, because abort() may exit under a sanitizer. */
static inline bool child_died(const struct child_result *result)
{
    return WIFSIGNALED(result->status) ? WTERMSIG(result->status) == SIGABRT
                                       : WEXITSTATUS(result->status) != 0;
}

static inline bool child_said(const struct child_result *result, const char *text)
{
    return strstr(result->output, text) != NULL;
}

/* Counts the occurrences of `text` in the output. */
static inline unsigned child_count(const struct child_result *result, const char *text)
{
    unsigned count = 0;

    for (const char *at = result->output; (at = strstr(at, text)); at += strlen(text))
        count++;
    return count;
}

/* Makes a child by `make`. Returns true in the child. */
static inline bool child_begins(pid_t (*make)(void), struct child_result *result)
{
    int ends[2];

    if (pipe(ends))
        abort();
    result->child = make();
    if (result->child == 0) {
        dup2(ends[1], STDERR_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        signal(SIGABRT, SIG_DFL);
        signal(SIGSEGV, SIG_DFL);
        alarm(CHILD_PATIENCE);
    }
    close(ends[1]);
    result->from = ends[0];
    return result->child == 0;
}

static inline void child_collect(struct child_result *result)
{
    size_t length = 0;
    ssize_t got;

    while ((got = read(result->from, result->output + length, sizeof result->output - 1 - length)) >
           0)
        length += (size_t)got;
    result->output[length] = '\0';
    close(result->from);
    waitpid(result->child, &result->status, 0);
}

/* Runs `body(argument)` in a child made by `make`, which exits with the returned value. */
static inline void child_run_by(pid_t (*make)(void), int (*body)(void *argument), void *argument,
                                struct child_result *result)
{
    if (child_begins(make, result))
        _exit(body(argument));
    child_collect(result);
}

/* The same in a forked child. */
static inline void child_run(int (*body)(void *argument), void *argument,
                             struct child_result *result)
{
    fflush(NULL);
    child_run_by(fork, body, argument, result);
}

/* Fails the test, and prints what the child said, unless it exited with 42. */
static inline void assert_child_result(const struct child_result *result)
{
    if (!child_exited_with(result, 42))
        print_error("status %#x: %s\n", (unsigned)result->status, result->output);
    assert_true(child_exited_with(result, 42));
}

/* Runs a child, and fails the test unless `body` returns 42. */
static inline void assert_child(int (*body)(void *argument), void *argument)
{
    struct child_result result;

    child_run(body, argument, &result);
    assert_child_result(&result);
}

/* ------------------------------------------------------------------- an expression in a child */

/* The last child of one of these. */
static struct child_result last_child;

/* Evaluates the expression, which commits a misuse, in a child. The child must abort, or else die
 * of an access that faults, after it has written each of the texts. */
#define expect_death(expression, ...)                                                              \
    EXPECT_CHILD((void)(expression), "abort", child_aborted(), __VA_ARGS__)
#define expect_fault(expression, ...)                                                              \
    EXPECT_CHILD((void)(expression), "fault", child_faulted(), __VA_ARGS__)

/* Evaluates the expression in a child, which must live on, and write each text. */
#define expect_survival(expression, ...)                                                           \
    EXPECT_CHILD((void)(expression), "a normal exit", child_exited_with(&last_child, 0),           \
                 __VA_ARGS__)

/* Evaluates the expression in a child, which must exit with that value, and write each text. */
#define expect_exit(value, expression, ...)                                                        \
    EXPECT_CHILD(_exit(expression), "exit with " #value, child_exited_with(&last_child, value),    \
                 __VA_ARGS__)

#define EXPECT_CHILD(act, end, is_right, ...)                                                      \
    do {                                                                                           \
        fflush(NULL);                                                                              \
        if (child_begins(fork, &last_child)) {                                                     \
            act;                                                                                   \
            _exit(0);                                                                              \
        }                                                                                          \
        child_collect(&last_child);                                                                \
        last_child_says(is_right, end, (const char *const[]){__VA_ARGS__, NULL});                  \
    } while (0)

static inline bool child_aborted(void)
{
    return WIFSIGNALED(last_child.status) && WTERMSIG(last_child.status) == SIGABRT;
}

static inline bool child_faulted(void)
{
    return WIFSIGNALED(last_child.status) && WTERMSIG(last_child.status) == SIGSEGV;
}

static inline void last_child_says(bool is_right, const char *end, const char *const *texts)
{
    if (!is_right)
        fail_msg("expected %s, got status %#x: %s", end, (unsigned)last_child.status,
                 last_child.output);
    for (; *texts; texts++)
        if (!child_said(&last_child, *texts))
            fail_msg("expected '%s' in: %s", *texts, last_child.output);
}

/* Counts the occurrences of `text` in what the last child wrote. */
static inline unsigned said(const char *text)
{
    return child_count(&last_child, text);
}

/* For functions whose result must be used. */
static inline void discard(const void *result)
{
    (void)result;
}

/* ------------------------------------------------------------------------------ other programs */

static inline void child_execvp(char *const *arguments)
{
    execvp(arguments[0], arguments);
}

struct child_program {
    void (*exec)(char *const *arguments);
    char *const *arguments;
    const char *options;
};

static inline int child_become(void *argument)
{
    const struct child_program *program = argument;

    if (program->options)
        setenv("PRUDENCE_OPTIONS", program->options, 1);
    else
        unsetenv("PRUDENCE_OPTIONS");
    program->exec(program->arguments); /* the alarm survives execve */
    return 126;
}

static inline void child_exec_by(void (*exec)(char *const *), char *const *arguments,
                                 const char *options, struct child_result *result)
{
    struct child_program program = {exec, arguments, options};

    child_run(child_become, &program, result);
}

/* Runs a program in a child, with `options` as PRUDENCE_OPTIONS; NULL unsets the variable. */
static inline void child_exec(char *const *arguments, const char *options,
                              struct child_result *result)
{
    child_exec_by(child_execvp, arguments, options, result);
}

/* Runs this very program again, with `role` as its first argument. */
static inline void child_again(const char *role, const char *options, struct child_result *result)
{
    char name[128];
    char *arguments[] = {"self", name, NULL};

    snprintf(name, sizeof name, "%s", role);
    child_exec_by(self_exec, arguments, options, result);
}

/* The same for a run that must exit with that value, and write each of the texts. */
#define expect_again(value, role, options, ...)                                                    \
    do {                                                                                           \
        child_again(role, options, &last_child);                                                   \
        last_child_says(child_exited_with(&last_child, value), "exit with " #value,                \
                        (const char *const[]){__VA_ARGS__, NULL});                                 \
    } while (0)

/* The same for a test that requires the exit status 42. */
static inline void assert_child_again(const char *role, const char *options)
{
    expect_again(42, role, options, "");
}

#endif /* TESTS_SUPPORT_GP_CHILD_H */
