/* SPDX-License-Identifier: MIT */
/* Circumstances of the process and its threads (environment.h). */
#define _GNU_SOURCE
#include "environment.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* -------------------------------------------------------------------------------- by a debugger */

/* Steps the child until SIGSTOP stops it. If the child ends, this process ends with the same
 * status. */
static void step_to_stop(pid_t child)
{
    enum { STEPS = 400000 }; /* ten times what the work below takes if sequences can finish */
    int status = 0;

    for (unsigned step = 0; step < STEPS; step++) {
        if (ptrace(PTRACE_SINGLESTEP, child, 0, 0) || waitpid(child, &status, 0) != child)
            wrong("the debugger lost the process");
        if (!WIFSTOPPED(status))
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : WRONG);
        if (WSTOPSIG(status) == SIGSTOP)
            return;
    }
    kill(child, SIGKILL);
    wrong("single steps lead nowhere");
}

static __attribute__((noreturn)) void end_as(pid_t child)
{
    int status = 0;

    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        wrong("the child did not end by itself");
    _exit(WEXITSTATUS(status));
}

/* Goes on in a child that the parent steps through a part of its work. */
bool step_through(const char *word)
{
    pid_t child = fork();
    int status;

    (void)word;
    if (child < 0)
        return false;
    if (child == 0) {
        work(200); /* warms up */
        if (ptrace(PTRACE_TRACEME, 0, 0, 0))
            return false;
        raise(SIGSTOP);
        work(20);
        raise(SIGSTOP);
        return true;
    }
    if (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        step_to_stop(child);
        ptrace(PTRACE_DETACH, child, 0, 0);
    } else {
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : WRONG);
    }
    end_as(child);
}

/* ----------------------------------------------------------------------------- fork, namespaces */

bool go_on_in_child(const char *word)
{
    pid_t child = fork();

    (void)word;
    if (child > 0) {
        work(1000); /* the parent also goes on */
        end_as(child);
    }
    return child == 0;
}

bool go_on_in_grandchild(const char *word)
{
    if (!go_on_in_child(word))
        return false;
    work(1000);
    return go_on_in_child(word);
}

static const struct {
    const char *name;
    int flag;
} namespaces[] = {{"user", CLONE_NEWUSER}, {"mount", CLONE_NEWNS}, {"mnt", CLONE_NEWNS},
                  {"net", CLONE_NEWNET},   {"ipc", CLONE_NEWIPC},  {"uts", CLONE_NEWUTS},
                  {"files", CLONE_FILES},  {"fs", CLONE_FS}};

static int flag_of(const char *word)
{
    for (unsigned i = 0; i < sizeof namespaces / sizeof *namespaces; i++)
        if (strcmp(namespaces[i].name, word) == 0)
            return namespaces[i].flag;
    return 0;
}

/* EINVAL for a user namespace means that the process has another thread; the program has made
 * none. */
bool unshare_word(const char *word)
{
    free_much();
    if (unshare(flag_of(word)) == 0)
        return true;
    if (errno == EINVAL && flag_of(word) == CLONE_NEWUSER)
        wrong("there is another thread, which the program has not made");
    return false;
}

/* Enters the namespace in which the process already is. */
bool setns_word(const char *word)
{
    char path[64];
    int file;
    bool done;

    snprintf(path, sizeof path, "/proc/self/ns/%s", word);
    file = open(path, O_RDONLY | O_CLOEXEC);
    done = file >= 0 && setns(file, flag_of(word)) == 0;
    if (file >= 0)
        close(file);
    return done;
}

/* --------------------------------------------------------------------------------------- limits */

static bool limit(int resource, rlim_t value)
{
    struct rlimit limit;

    if (getrlimit((__rlimit_resource_t)resource, &limit))
        return false;
    limit.rlim_cur = value;
    return setrlimit((__rlimit_resource_t)resource, &limit) == 0;
}

static rlim_t addresses_now(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (!file || fscanf(file, "%lu", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

bool limit_word(const char *word)
{
    rlim_t now;

    if (strcmp(word, "descriptors") == 0)
        return limit(RLIMIT_NOFILE, 0);
    if (strcmp(word, "processes") == 0)
        return limit(RLIMIT_NPROC, 64) && limit(RLIMIT_CORE, 0);
    if (strcmp(word, "files") == 0)
        return limit(RLIMIT_FSIZE, 0);
    if (strcmp(word, "locked") == 0)
        return limit(RLIMIT_MEMLOCK, 0);
    now = addresses_now();
    errno = ENOENT;
    return now &&
           limit(RLIMIT_AS,
                 now + ((rlim_t)512 << 20)); /* the stacks of eight threads take 64 MB of this */
}

bool close_descriptors(const char *word)
{
    (void)word;
    for (int file = 0; file < 256; file++)
        if (file != STDERR_FILENO)
            close(file);
    return true;
}

/* ----------------------------------------------------------------------------------------- CPUs */

static bool may_use_cpu(unsigned cpu)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

/* Limits the process to one CPU, as when a process is restored on a machine with other CPUs. */
bool one_cpu(const char *word)
{
    (void)word;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (may_use_cpu(cpu))
            return true;
    return false;
}

bool roam(void)
{
    unsigned found = 0;

    for (unsigned cpu = 0; cpu < 64; cpu++) {
        if (!may_use_cpu(cpu))
            continue;
        work(200);
        found++;
    }
    errno = EPERM;
    return found > 0;
}

static void on_alarm(int signal)
{
    (void)signal;
}

/* Sends signals so often that any sequence may be interrupted. */
bool storm_of_signals(const char *word)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 50}, {0, 50}};

    (void)word;
    return sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0;
}

/* ------------------------------------------------------------------------------ the end of main */

/* Ends the main thread. The process then ends with status 0. */
void main_leaves(void)
{
    free_much();
    pthread_exit(NULL);
}

static void *go_on(void *unused)
{
    (void)unused;
    work(3000);
    return NULL;
}

void main_leaves_before_others(void)
{
    pthread_t thread;

    for (unsigned i = 0; i < 3; i++)
        if (pthread_create(&thread, NULL, go_on, NULL) || pthread_detach(thread))
            wrong("no thread");
    pthread_exit(NULL);
}
