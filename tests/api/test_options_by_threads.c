/* SPDX-License-Identifier: MIT */
/*
 * Several threads call prudence_option_set at once. Each setting is atomic with respect to itself,
 * other options, a fork, and a fork in a handler that has interrupted it. A signal handler never
 * chains to itself. When the process ends, setting an option does not bring back anything that has
 * ended.
 *
 * This program has its own sigaction. In a thread that is to stop there it waits until another
 * thread can get no further, so no order depends on chance.
 *
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children, no exit with other
 * threads)
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prudence/prudence.h>

#include "base/atomic.h"
#include "heap/background.h"
#include "support/patience.h"
#include "support/suite.h"
#include "support/threads.h"

static uint32_t inside;  /* the first thread is in the middle of a setting */
static int other_thread; /* kernel id of the other thread, once it runs */
static uint32_t other_done;

/* ---------------------------------------------------------------------------- a place to stop */

static __thread void (*at_sigaction)(void);

int sigaction(int number, const struct sigaction *new_action, struct sigaction *old)
{
    static __typeof(sigaction) *real;
    void (*stop)(void) = at_sigaction;

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "sigaction");
    at_sigaction = NULL;
    if (stop)
        stop();
    return real(number, new_action, old);
}

static bool is_asleep(int thread)
{
    char path[64], line[512], *state;
    FILE *file;
    bool got;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    file = fopen(path, "r");
    if (!file)
        return false;
    got = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    state = got ? strrchr(line, ')') : NULL;
    return state && state[2] == 'S';
}

/* Waits until the other thread sleeps or ends, while this one stays where it is. */
static void wait_for_the_other(void)
{
    unsigned asleep = 0;

    store_release(&inside, 1u);
    while (!load_acquire(&other_thread))
        sched_yield();
    while (!load_acquire(&other_done) && asleep < 20) {
        asleep = is_asleep(load_relaxed(&other_thread)) ? asleep + 1 : 0;
        sched_yield();
    }
}

/* ------------------------------------------------------------------------------ the two threads */

struct setting {
    const char *name, *value;
};

static bool other_had_to_wait;

static void stop_and_look(void)
{
    wait_for_the_other();
    other_had_to_wait = !load_acquire(&other_done);
}

static void begin(void)
{
    store_relaxed(&inside, 0u);
    store_relaxed(&other_thread, 0);
    store_relaxed(&other_done, 0u);
    other_had_to_wait = false;
}

static void *set_and_stop_there(void *setting)
{
    const struct setting *what = setting;

    at_sigaction = stop_and_look;
    assert_int_equal(prudence_option_set(what->name, what->value), 0);
    return NULL;
}

static void come_in_the_middle(void)
{
    while (!load_acquire(&inside))
        sched_yield();
    store_release(&other_thread, gettid());
}

static void *set_in_the_middle(void *setting)
{
    const struct setting *what = setting;

    come_in_the_middle();
    prudence_option_set(what->name, what->value);
    store_release(&other_done, 1u);
    return NULL;
}

/* Starts `second` in the middle of `first`'s setting. Returns whether it had to wait. */
static bool both(const struct setting *first, void *(*second)(void *argument), void *argument)
{
    pthread_t threads[2];

    begin();
    assert_int_equal(
        pthread_create(&threads[0], NULL, set_and_stop_there, (void *)(uintptr_t)first), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, second, argument), 0);
    threads_join(threads, 2);
    assert_int_equal(load_relaxed(&inside), 1);
    return other_had_to_wait;
}

/* ------------------------------------------------------------------------------------ the tests */

static uint32_t program_handler_runs;

static void programs_handler(int number)
{
    add_relaxed(&program_handler_runs, 1);
}

TEST(a_handler_does_not_stand_in_front_of_itself)
{
    static const struct setting dump = {"dump", "SIGUSR1"}, profile = {"profile_signal", "SIGUSR1"};

    signal(SIGUSR1, programs_handler);
    assert_int_equal(prudence_option_set("dump_file", "/dev/null"), 0);
    both(&dump, set_in_the_middle, (void *)(uintptr_t)&profile);
    raise(SIGUSR1); /* otherwise the stack would soon overflow */
    assert_int_equal(load_relaxed(&program_handler_runs), 1);
    assert_int_equal(prudence_option_set("dump", "0"), 0);
    assert_int_equal(prudence_option_set("profile_signal", "0"), 0);
    raise(SIGUSR1);
    assert_int_equal(load_relaxed(&program_handler_runs), 2);
}

/* Calls each kind of setter, with the value that is already set. Text values are published by
 * one store. */
TEST(a_setting_is_a_whole)
{
    static const struct setting others[] = {
        {"dump", "0"},     {"export", "0"},     {"profile_signal", "0"},
        {"stats", "0"},    {"decay", "10s"},    {"latent_limit", "1G"},
        {"preflush", "1"}, {"background", "0"}, {"reader_mode", "auto"},
        {"check", "0"},
    };

    for (unsigned i = 0; i < sizeof others / sizeof *others; i++) {
        static const struct setting dump = {"dump", "SIGUSR2"};

        if (!both(&dump, set_in_the_middle, (void *)(uintptr_t)&others[i]))
            fail_msg("'%s' was set while another thread was setting 'dump'", others[i].name);
        assert_int_equal(prudence_option_set("dump", "0"), 0);
    }
}

static void *fork_in_the_middle(void *unused)
{
    pid_t child;
    int status = -1;

    come_in_the_middle();
    child = fork();
    if (child == 0) {
        alarm(patience(30));
        _exit(prudence_option_set("dump", "SIGHUP") || prudence_option_set("dump", "0"));
    }
    store_release(&other_done, 1u);
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    return unused;
}

TEST(a_child_can_set_options)
{
    static const struct setting dump = {"dump", "SIGHUP"};

    assert_true(both(&dump, fork_in_the_middle, NULL));
    assert_int_equal(prudence_option_set("dump", "0"), 0);
}

static void fork_here(void)
{
    pid_t child = fork();
    int status = -1;

    if (child == 0)
        _exit(0);
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

/* Forks as a signal handler would that interrupts the setting. */
TEST(a_fork_that_interrupts_a_setting_waits_for_nothing)
{
    at_sigaction = fork_here;
    alarm(patience(30));
    assert_int_equal(prudence_option_set("dump", "SIGHUP"), 0);
    assert_int_equal(prudence_option_set("dump", "0"), 0);
    alarm(0);
}

static void handler_of_another(int number, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    programs_handler(number);
}

/* The library chains to one handler, gives it back, and chains to another one of a different
 * kind. */
TEST(whatever_handler_stands_there_gets_the_signal)
{
    struct sigaction informed = {.sa_sigaction = handler_of_another, .sa_flags = SA_SIGINFO};
    uint32_t runs = load_relaxed(&program_handler_runs);

    for (unsigned turn = 0; turn < 6; turn++) {
        if (turn % 3 == 0)
            signal(SIGUSR2, programs_handler);
        else if (turn % 3 == 1)
            sigaction(SIGUSR2, &informed, NULL);
        else
            signal(SIGUSR2, SIG_IGN);
        assert_int_equal(prudence_option_set("dump", "SIGUSR2"), 0);
        raise(SIGUSR2);
        assert_int_equal(load_relaxed(&program_handler_runs) - runs, turn + 1 - (turn + 1) / 3);
        assert_int_equal(prudence_option_set("dump", "0"), 0);
    }
}

/* ------------------------------------------------------------------------ when the process ends */

static uint64_t looks_at_the_end(void)
{
    background_set(true);
    background_start();
    background_end();
    prudence_option_set("decay", "1s"); /* initializes everything that options may need */
    return background_look();
}

TEST(nothing_begins_again_at_the_end)
{
    void *block;

    block = prudence_malloc(64 << 20);
    memset(block, 1, 64 << 20);
    prudence_free(block);
    assert_int_equal(looks_at_the_end(), 0);
}

SUITE()
