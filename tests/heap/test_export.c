/* SPDX-License-Identifier: MIT */
/*
 * The option export: while on, one sealed description of the figures' addresses is mapped. A signal
 * can switch the option on, and a child has its own description. The reader's tests (tests/watch)
 * check the contents.
 */
#define _GNU_SOURCE
#include "support/slab_test.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/export.h"
#include "runtime/signals.h"
#include "support/gp_child.h"
#include "support/threads.h"

/* Counts the mappings, and sets *text to the last one. */
static unsigned descriptions(const char **text)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512], rights[8];
    unsigned long start;
    unsigned count = 0;

    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        if (!strstr(line, "/memfd:prudence-export "))
            continue;
        count++;
        assert_int_equal(sscanf(line, "%lx-%*x %7s", &start, rights), 2);
        assert_string_equal(rights, "r--p");
        *text = (const char *)start; /* NOLINT(performance-no-int-to-ptr) */
    }
    fclose(maps);
    return count;
}

static unsigned open_files(void)
{
    unsigned count = 0;

    for (int fd = 0; fd < 200; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Returns whether the description is complete and belongs to this process. */
static bool is_whole(const char *text)
{
    char head[32], pid[32];

    snprintf(head, sizeof head, "prudence-export %d\n", EXPORT_LAYOUT);
    snprintf(pid, sizeof pid, "number pid %d\n", (int)getpid());
    return strncmp(text, head, strlen(head)) == 0 && strstr(text, pid) && strstr(text, "\nend\n");
}

TEST(it_is_there_while_it_is_on)
{
    unsigned files = open_files();
    const char *text;

    assert_int_equal(descriptions(&text), 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(prudence_option_set("export", "1"), 0);
        assert_int_equal(prudence_option_set("export", "1"), 0);
        assert_int_equal(descriptions(&text), 1);
        assert_true(is_whole(text));
        assert_int_equal(open_files(), files);
        assert_int_equal(prudence_option_set("export", "0"), 0);
        assert_int_equal(prudence_option_set("export", "0"), 0);
        assert_int_equal(descriptions(&text), 0);
    }
    assert_int_equal(prudence_option_set("export", "SIGKILL"), EINVAL);
    assert_int_equal(prudence_option_set("export", "2"), EINVAL);
}

static unsigned handled;

static void handle(int number)
{
    handled += (unsigned)number;
}

/* Two options may use the same signal, and the program's handler is called as well. */
TEST(a_signal_switches_it_on)
{
    struct sigaction own = {.sa_handler = handle}, present;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC), errors = dup(STDERR_FILENO);
    const char *text;

    dup2(null, STDERR_FILENO);
    sigaction(SIGUSR1, &own, NULL);
    assert_int_equal(prudence_option_set("export", "SIGUSR1"), 0);
    assert_int_equal(prudence_option_set("dump", "SIGUSR1"), 0);
    assert_int_equal(descriptions(&text), 0);
    assert_int_equal(prudence_option_set("dump", "0"), 0);
    raise(SIGUSR1);
    assert_int_equal(descriptions(&text), 1);
    assert_int_equal(prudence_option_set("dump", "SIGUSR1"), 0);
    raise(SIGUSR1);
    assert_int_equal(descriptions(&text), 1);
    assert_true(is_whole(text));
    assert_int_equal(handled, 2 * SIGUSR1);
    assert_int_equal(prudence_option_set("dump", "0"), 0);
    assert_int_equal(prudence_option_set("export", "0"), 0);
    sigaction(SIGUSR1, NULL, &present);
    assert_ptr_equal(present.sa_handler, handle);
    assert_int_equal(descriptions(&text), 0);
    signal(SIGUSR1, SIG_DFL);
    dup2(errors, STDERR_FILENO);
    close(errors);
    close(null);
}

TEST(a_child_has_its_own)
{
    const char *text;
    pid_t child;
    int status;

    child = fork();
    if (child == 0)
        _exit(descriptions(&text) != 0);
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    prudence_option_set("export", "1");
    child = fork();
    if (child == 0) {
        pid_t grandchild;

        if (descriptions(&text) != 1 || !is_whole(text))
            _exit(1);
        prudence_option_set("export", "0");
        if (descriptions(&text) != 0)
            _exit(2);
        grandchild = fork();
        if (grandchild == 0)
            _exit(descriptions(&text) != 0);
        waitpid(grandchild, &status, 0);
        _exit(status ? 3 : 0);
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(descriptions(&text), 1);
    assert_true(is_whole(text));
    prudence_option_set("export", "0");
}

static bool over;

static void *switch_on(void *ignored)
{
    while (!load_relaxed(&over)) {
        export_ask(0, true);
        export_ask(0, false);
    }
    return ignored;
}

TEST(threads_may_meet)
{
    pthread_t threads[3];
    const char *text;

    threads_start(threads, 3, switch_on);
    for (unsigned i = 0; i < 200; i++)
        assert_in_range(descriptions(&text), 0, 1);
    store_relaxed(&over, true);
    threads_join(threads, 3);
    assert_int_equal(descriptions(&text), 0);
}

/* A handler that has found its signal chosen may be delayed until the signal is no longer
 * chosen. */
TEST(a_late_signal_is_too_late)
{
    const uint64_t sigusr1 = 1, sigusr2 = 2;
    const char *text;

    prudence_option_set("export", "SIGUSR1");
    prudence_option_set("export", "0");
    export_at_signal(sigusr1);
    assert_int_equal(descriptions(&text), 0);
    prudence_option_set("export", "SIGUSR2");
    export_at_signal(sigusr1);
    assert_int_equal(descriptions(&text), 0);
    export_at_signal(sigusr2);
    assert_int_equal(descriptions(&text), 1);
    prudence_option_set("export", "SIGUSR1"); /* leaves it on */
    assert_int_equal(descriptions(&text), 1);
    prudence_option_set("export", "0");
    assert_int_equal(descriptions(&text), 0);
}

static unsigned alarms;

static void switch_off(int number)
{
    export_ask(0, false);
    alarms++;
}

/* The option is switched off at any time while a signal switches the export on. Before, the signal
 * comes too late; in between, the interrupted thread goes on until the export is off; afterwards,
 * the export was on. */
TEST(the_option_has_the_last_word)
{
    struct sigaction action = {.sa_handler = switch_off};
    const char *text;

    sigaction(SIGALRM, &action, NULL);
    for (unsigned i = 0; i < 300; i++) {
        struct itimerval soon = {.it_value = {.tv_usec = 1 + i % 100}};

        alarms = 0;
        export_ask(1, false);
        setitimer(ITIMER_REAL, &soon, NULL);
        export_at_signal(1);
        while (!load_relaxed(&alarms))
            compiler_barrier();
        assert_int_equal(descriptions(&text), 0);
    }
    signal(SIGALRM, SIG_DFL);
}

static int without_files(void *limit)
{
    struct rlimit none = {0, 0};

    setrlimit(*(const int *)limit, &none);
    prudence_option_set("export", "1");
    return prudence_option_set("export", "0");
}

TEST(what_cannot_be_done_is_said)
{
    struct child_result result;

    for (unsigned i = 0; i < 2; i++) {
        child_run(without_files, (int[]){i ? RLIMIT_FSIZE : RLIMIT_NOFILE}, &result);
        assert_true(child_exited_with(&result, 0));
        assert_true(child_said(&result, "option 'export': the process cannot be watched"));
    }
}

SUITE()
