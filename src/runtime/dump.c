/* SPDX-License-Identifier: MIT */
/*
 * The summary on demand: prudence_dump, and the options dump (a signal) and dump_file (where to).
 *
 * The handler is installed when the option is set, in front of the program's, if it has one, to which it passes the signal
 * on. (That may be another copy of the library.) A handler that the program installs later takes the signal over. The
 * signal may come in any thread and at any place. Options are set by one thread at a time.
 */
#define _GNU_SOURCE /* syscall */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <prudence/stats.h>

#include "os/os.h"
#include "posix.h"
#include "process.h"
#include "runtime/options.h"
#include "runtime/summary.h"

int prudence_dump(int fd)
{
    struct output output = {.fd = fd};
    int saved_errno = errno, error;

    if (os_busy) {
        summary_print_without_locks(&output);
    } else {
        process_start();
        summary_print(&output, false);
    }
    error = output_end(&output);
    errno = saved_errno;
    return error;
}

/* ------------------------------------------------------------------------------------------ where to */

#define PATH_SIZE 128 /* an option of the environment is no longer */

/* NULL: standard error. Never freed, because a handler may read the one before. Atomic. */
static const char *file;

bool dump_set_file(const char *path)
{
    size_t bytes = strlen(path) + 1;
    char *copy = NULL;

    if (bytes > PATH_SIZE)
        return false;
    if (bytes > 1) {
        copy = os_meta_alloc(PATH_SIZE);
        if (!copy)
            return false;
        memcpy(copy, path, bytes);
    }
    store_release(&file, (const char *)copy);
    return true;
}

/* With the process's id instead of the first "%p". */
static int open_file(const char *name)
{
    const char *mark = strstr(name, "%p");
    char path[PATH_SIZE + 12];

    if (mark)
        snprintf(path, sizeof path, "%.*s%d%s", (int)(mark - name), name, (int)getpid(), mark + 2);
    else
        snprintf(path, sizeof path, "%s", name);
    return (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                        0600);
}

static void dump(void)
{
    const char *name = load_acquire(&file);
    int fd = name ? open_file(name) : -1;

    if (name && fd < 0)
        os_report("option 'dump_file': '%s' cannot be opened (error %d); it goes to standard error",
                  name, errno);
    prudence_dump(fd < 0 ? STDERR_FILENO : fd);
    if (fd >= 0)
        syscall(SYS_close, fd);
}

/* ---------------------------------------------------------------------------------------- the signal */

const char *const dump_choices[] = {"0", "SIGUSR1", "SIGUSR2", "SIGHUP", "SIGQUIT", NULL};

static struct {
    int number;
    struct sigaction before; /* the handler that ours stands in front of */
} signals[] = {{.number = 0},
               {.number = SIGUSR1},
               {.number = SIGUSR2},
               {.number = SIGHUP},
               {.number = SIGQUIT}};

static uint64_t chosen; /* of signals; atomic */

static void on_signal(int number, siginfo_t *info, void *context)
{
    int saved_errno = errno;

    for (unsigned i = 1; i < sizeof signals / sizeof signals[0]; i++) {
        if (signals[i].number != number)
            continue;
        if (load_relaxed(&chosen) == i)
            dump();
        posix_signal_pass_on(&signals[i].before, number, info, context);
    }
    errno = saved_errno;
}

static bool is_ours(int number)
{
    struct sigaction present;

    return sigaction(number, NULL, &present) == 0 && present.sa_flags & SA_SIGINFO &&
           present.sa_sigaction == on_signal;
}

/* If another handler stands in front of ours, ours stays, and only passes the signal on. */
static void give_back(uint64_t choice)
{
    if (choice && is_ours(signals[choice].number))
        sigaction(signals[choice].number, &signals[choice].before, NULL);
}

/* On the thread's other stack, if it has one: Go requires that. */
static void take(uint64_t choice)
{
    struct sigaction ours = {.sa_sigaction = on_signal,
                             .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};

    sigemptyset(&ours.sa_mask);
    if (choice && !is_ours(signals[choice].number)) {
        sigaction(signals[choice].number, NULL, &signals[choice].before);
        sigaction(signals[choice].number, &ours, NULL);
    }
}

void dump_set_signal(uint64_t choice)
{
    uint64_t before = load_relaxed(&chosen);

    if (choice != before)
        give_back(before);
    take(choice);
    store_relaxed(&chosen, choice);
}
