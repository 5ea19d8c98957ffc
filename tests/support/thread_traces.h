/* SPDX-License-Identifier: MIT */
/*
 * Reports where the threads of a process are that hangs or met a fault: the system's view from
 * outside, and the stacks, printed by handlers in the process. These print although that is not
 * async-signal-safe, because the process is about to end anyway.
 */
#ifndef TESTS_SUPPORT_THREAD_TRACES_H
#define TESTS_SUPPORT_THREAD_TRACES_H

#include <dirent.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define TRACES_UNUSED __attribute__((unused))

/* Prints one line of a file of /proc, cut at 200 bytes. */
static void traces_say_file(const char *folder, const char *thread, const char *name)
{
    char path[300], text[200];
    int file;
    ssize_t length;

    snprintf(path, sizeof path, "%s/%s/%s", folder, thread, name);
    file = open(path, O_RDONLY | O_CLOEXEC);
    length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    fprintf(stderr, " %s='%s'", name, text);
}

/* Prints the state of each thread of another process. The second number of `schedstat` (ns)
 * distinguishes a thread that waits for a processor from one that waits for something else. */
TRACES_UNUSED static void traces_say_threads(pid_t process)
{
    char folder[64];
    const struct dirent *entry;
    DIR *threads;

    snprintf(folder, sizeof folder, "/proc/%d/task", (int)process);
    threads = opendir(folder);
    while (threads && (entry = readdir(threads))) {
        if (entry->d_name[0] == '.')
            continue;
        fprintf(stderr, "  thread %s:", entry->d_name);
        traces_say_file(folder, entry->d_name, "comm");
        traces_say_file(folder, entry->d_name, "stat");
        traces_say_file(folder, entry->d_name, "wchan");
        traces_say_file(folder, entry->d_name, "syscall");
        traces_say_file(folder, entry->d_name, "schedstat");
        fprintf(stderr, "\n");
    }
    if (threads)
        closedir(threads);
}

#define TRACES_SIGNAL (SIGRTMIN + 5)

static void traces_say_where(int number)
{
    void *frames[40];
    char line[64];
    int length =
        snprintf(line, sizeof line, "  thread %d of %d is at\n", (int)gettid(), (int)getpid());

    (void)number;
    if (write(STDERR_FILENO, line, (size_t)length) == length)
        backtrace_symbols_fd(frames, backtrace(frames, 40), STDERR_FILENO);
}

/* Handles a fatal signal: every thread prints its stack, one after the other, then the signal takes
 * its default action. */
static void traces_say_all(int number, siginfo_t *info, void *unused)
{
    struct timespec huge = {.tv_nsec = 20000000};
    const struct dirent *entry;
    DIR *threads;

    (void)unused;
    signal(number, SIG_DFL);
    fprintf(stderr, "signal %d at %p\n", number, info->si_code > 0 ? info->si_addr : NULL);
    traces_say_where(number);
    threads = opendir("/proc/self/task");
    while (threads && (entry = readdir(threads))) {
        int thread = atoi(entry->d_name);

        if (thread > 0 && thread != gettid() &&
            syscall(SYS_tgkill, getpid(), thread, TRACES_SIGNAL) == 0)
            nanosleep(&huge, NULL);
    }
    raise(number);
}

/* Installs the handlers, which children inherit. Sanitizers have their own. The first backtrace()
 * allocates, so do one now. */
TRACES_UNUSED static void traces_at_abort(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    const int fatal[] = {SIGABRT, SIGALRM, SIGSEGV, SIGBUS, SIGILL};
    struct sigaction say_all = {.sa_sigaction = traces_say_all,
                                .sa_flags = SA_SIGINFO | SA_NODEFER};
    void *frame;

    backtrace(&frame, 1);
    signal(TRACES_SIGNAL, traces_say_where);
    for (unsigned i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
        sigaction(fatal[i], &say_all, NULL);
#else
    (void)traces_say_all;
#endif
}

#endif /* TESTS_SUPPORT_THREAD_TRACES_H */
