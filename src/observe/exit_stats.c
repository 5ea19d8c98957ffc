/* SPDX-License-Identifier: MIT */
/*
 * The option stats=1 prints statistics on standard error when the process exits.
 *
 * Many programs have closed standard error by then, and another file may have taken its number. So
 * setting the option duplicates standard error to a high number that is closed on exec. At exit,
 * the statistics go to whichever of the two descriptors is still the same file. If neither is,
 * nothing is written.
 */
#define _GNU_SOURCE /* program_invocation_short_name */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <prudence/stats.h>

#include "observe/options.h"
#include "observe/output.h"
#include "observe/stats_print.h"
#include "os/os.h"
#include "posix.h"
#include "process/stats.h"

static bool exit_stats_enabled;
static int duplicate = -1;
static struct stat identity;

static int duplicate_stderr(void)
{
    static const int lowest[] = {1000, 200, 20};
    int fd = -1;

    for (unsigned i = 0; fd < 0 && i < sizeof lowest / sizeof lowest[0]; i++)
        fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, lowest[i]);
    return fd;
}

void exit_stats_set(uint64_t wanted)
{
    int saved_errno = errno;

    exit_stats_enabled = wanted && fstat(STDERR_FILENO, &identity) == 0;
    if (exit_stats_enabled && duplicate < 0)
        duplicate = duplicate_stderr();
    errno = saved_errno;
}

static bool is_our_stderr(int fd)
{
    struct stat now;

    return fd >= 0 && fstat(fd, &now) == 0 && now.st_dev == identity.st_dev &&
           now.st_ino == identity.st_ino;
}

static void print_all(int fd)
{
    bool few = load_relaxed(&os_calls) == OS_CALLS_FEW; /* a stream makes further system calls */
    FILE *file = few ? NULL : fdopen(fd, "w");
    struct output output = {.file = file, .fd = fd};

    if (!few && !file)
        return;
    output_print(&output, "prudence: statistics of process %d (", os_process_id());
    output_name(&output, program_invocation_short_name);
    output_text(&output, ")\n");
    stats_print(&output, false);
    output_end(&output);
    if (file)
        fflush(file); /* not closed: the descriptor may be standard error itself */
}

/* Prints only figures that need no lock if a signal handler that interrupted the library ends the
 * process. */
static void print(int fd)
{
    if (os_busy)
        prudence_dump(fd);
    else
        print_all(fd);
}

/* Returns the descriptor to print to, or -1. With sandbox=1 fstat is not allowed; then a descriptor
 * is good that is no database (report_place.c). */
static int where_to_print(void)
{
    bool asks = load_relaxed(&os_calls) != OS_CALLS_FEW;
    int fd = duplicate >= 0 && (!asks || is_our_stderr(duplicate)) ? duplicate : STDERR_FILENO;

    return (asks ? is_our_stderr(fd) : posix_file_refuses_mapping(fd)) ? fd : -1;
}

/* Runs after the destructors of the code that uses the library, because priority 101 comes last. */
COLD __attribute__((destructor(101))) static void exit_stats_at_exit(void)
{
    struct posix_quiet quiet;
    int cancelable, fd;

    if (!exit_stats_enabled || (fd = where_to_print()) < 0)
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE,
                           &cancelable); /* for the thread that called exit */
    posix_quiet_begin(&quiet);
    print(fd);
    posix_quiet_end(&quiet);
    pthread_setcancelstate(cancelable, NULL);
}
