/* SPDX-License-Identifier: MIT */
/*
 * prudence-malloc-watch RESULT LIBRARY COMMAND [ARGUMENT...]: runs a command with LIBRARY
 * preloaded, and writes to RESULT, as JSON, its cost and whether the library was really mapped.
 *
 * This is a separate program because it must be small: the kernel counts the parent's resident
 * memory at the fork into the peak of a process.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "measure.h"

static void fail(const char *what, const char *name, int error)
{
    fprintf(stderr, "prudence-malloc-watch: %s %s: %s\n", what, name, strerror(error));
    exit(EXIT_FAILURE);
}

/* Runs in the child: waits until it is traced, then becomes the command. Reports a failure
 * through `trouble`. */
static _Noreturn void become(char **command, const char *library, int traced, int trouble)
{
    char byte;
    int error;

    if (read(traced, &byte, 1) != 1)
        _exit(126);
    setenv("LD_PRELOAD", library, 1);
    execvp(*command, command);
    error = errno;
    _exit(write(trouble, &error, sizeof error) == sizeof error ? 127 : 126);
}

/* Starts the command. Tracing only serves to stop it at the end, while its memory still exists. */
static pid_t start(char **command, const char *library)
{
    int traced[2], trouble[2], error = 0;
    pid_t pid;

    if (pipe2(traced, O_CLOEXEC) || pipe2(trouble, O_CLOEXEC) || (pid = fork()) < 0)
        fail("cannot start", *command, errno);
    close(pid ? traced[0] : traced[1]); /* so that the child notices if it will not be traced */
    if (pid == 0)
        become(command, library, traced[0], trouble[1]);
    close(trouble[1]);
    if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)(PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL)))
        fail("cannot trace", *command, errno);
    if (write(traced[1], "", 1) != 1)
        fail("cannot start", *command, errno);
    if (read(trouble[0], &error, sizeof error) > 0)
        fail("cannot run", *command, error);
    close(trouble[0]);
    close(traced[1]);
    return pid;
}

/* Returns whether that process has this file mapped. */
static bool is_mapped(pid_t pid, const char *file)
{
    char path[64], line[4096];
    bool found = false;
    FILE *maps;

    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    maps = fopen(path, "re");
    while (maps && !found && fgets(line, sizeof line, maps)) {
        const char *name = strchr(line, '/');

        found = name && !strncmp(name, file, strlen(file)) && name[strlen(file)] == '\n';
    }
    if (maps)
        fclose(maps);
    return found;
}

/* Waits for the end of the command. Returns whether the library was mapped then. */
static bool follow(pid_t pid, const char *library, int *status, struct rusage *usage)
{
    bool mapped = false;

    for (;;) {
        int event, signal;

        if (wait4(pid, status, 0, usage) != pid)
            fail("cannot wait for", "the command", errno);
        if (!WIFSTOPPED(*status))
            return mapped;
        event = *status >> 16;
        if (event == PTRACE_EVENT_EXIT)
            mapped = is_mapped(pid, library);
        signal = event ? 0 : WSTOPSIG(*status); /* a signal bound for the command */
        ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)signal);
    }
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

int main(int argc, char **argv)
{
    struct rusage usage;
    char *library;
    json_t *result;
    uint64_t began;
    bool mapped;
    int status;
    pid_t pid;

    if (argc < 4) {
        fputs("Usage: prudence-malloc-watch RESULT LIBRARY COMMAND [ARGUMENT...]\n", stderr);
        return EXIT_FAILURE;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the command ends with the benchmark */
    library = realpath(argv[2], NULL);
    if (!library)
        fail("cannot find", argv[2], errno);
    began = now_ns();
    pid = start(argv + 3, argv[2]); /* a link, if LD_PRELOAD cannot name the library itself */
    mapped = follow(pid, library, &status, &usage);
    result = json_pack("{s:b, s:i, s:i, s:f, s:f, s:f, s:I, s:I, s:I}", "mapped", mapped,
                       "exit_status", WIFEXITED(status) ? WEXITSTATUS(status) : 0, "signal",
                       WIFSIGNALED(status) ? WTERMSIG(status) : 0, "wall_seconds",
                       (double)(now_ns() - began) / 1e9, "user_seconds", seconds(usage.ru_utime),
                       "system_seconds", seconds(usage.ru_stime), "peak_rss_bytes",
                       (json_int_t)usage.ru_maxrss * 1024, "minor_faults",
                       (json_int_t)usage.ru_minflt, "major_faults", (json_int_t)usage.ru_majflt);
    if (json_dump_file(result, argv[1], JSON_COMPACT | JSON_REAL_PRECISION(9)))
        fail("cannot write", argv[1], errno);
    json_decref(result);
    free(library);
    return EXIT_SUCCESS;
}
