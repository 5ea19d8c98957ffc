/* SPDX-License-Identifier: MIT */
/*
 * Prints where the library runs (kernel, page size, C library), whether it uses sequences or locks,
 * and how long a process takes to start with the library's test of sequences and without (rseq=0).
 *
 *     guest_state
 *
 * Exit status 0: everything is known; 1: otherwise. Times are printed but not judged, because the
 * machine may be busy.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "support/self.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#define LIBC "glibc " /* and its version */
#else
#define LIBC                   "a C library that is not glibc"
#define gnu_get_libc_version() ""
#endif

#define STARTS 21

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Returns the milliseconds from start to end of a process that allocates once, or a negative number
 * if the process failed. The process has `files`. */
static double start_once(char *const *environment, const posix_spawn_file_actions_t *files)
{
    char *const arguments[] = {(char *)"guest_state", (char *)"start", NULL};
    struct self_command command;
    double begin = now_ms();
    int status;
    pid_t child;

    if (!self_command(&command, arguments) ||
        posix_spawn(&child, command.file, files, NULL, command.arguments, environment) != 0 ||
        waitpid(child, &status, 0) != child || status != 0)
        return -1;
    return now_ms() - begin;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Returns the median time of STARTS starts, or a negative number if one failed. The processes'
 * messages are thrown away. */
static double start_ms(char *const *environment)
{
    posix_spawn_file_actions_t files;
    double times[STARTS];

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    for (unsigned i = 0; i < STARTS; i++)
        times[i] = start_once(environment, &files);
    posix_spawn_file_actions_destroy(&files);
    for (unsigned i = 0; i < STARTS; i++)
        if (times[i] < 0)
            return -1;
    qsort(times, STARTS, sizeof times[0], compare);
    return times[STARTS / 2];
}

int main(int count, char **arguments)
{
    char *const tested[] = {NULL}, *const untested[] = {(char *)"PRUDENCE_OPTIONS=rseq=0", NULL};
    struct utsname system;
    char percpu[256];
    double with, without;

    prudence_free(prudence_malloc(64));
    if (count > 1 && strcmp(arguments[1], "start") == 0)
        return GUEST_RIGHT;
    if (uname(&system) != 0)
        return GUEST_WRONG;
    printf("state: %s %s, pages of %ld bytes, " LIBC "%s, %ld CPUs, percpu %s\n", system.release,
           system.machine, sysconf(_SC_PAGESIZE), gnu_get_libc_version(),
           sysconf(_SC_NPROCESSORS_ONLN), guest_percpu(percpu, sizeof percpu));
    with = start_ms(tested);
    without = start_ms(untested);
    printf("state: a process starts and ends in %.2f ms, with rseq=0 in %.2f ms\n", with, without);
    if (with < 0 || without < 0 || !percpu[0])
        return GUEST_WRONG;
    return GUEST_RIGHT;
}
