/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* program_invocation_short_name */
#include "repeats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/thread_traces.h"

/* Runs in the child. A child that takes too long prints where its threads are. */
static void say(json_t *(*run)(const void *row), const void *row, unsigned seconds, int to)
{
    json_t *said;
    FILE *file;

    traces_at_abort();
    alarm(seconds);
    said = run(row);
    file = fdopen(to, "w");
    if (said)
        json_dumpf(said, file, JSON_COMPACT);
    fflush(file);
    _exit(said ? EXIT_SUCCESS : EXIT_FAILURE); /* skips all cleanup */
}

json_t *run_in_child(json_t *(*run)(const void *row), const void *row, unsigned seconds)
{
    int ends[2], status;
    json_t *said;
    FILE *file;
    pid_t child;

    if (pipe(ends) || (child = fork()) < 0) {
        fprintf(stderr, "%s: cannot start a child: %s\n", program_invocation_short_name,
                strerror(errno));
        exit(EXIT_FAILURE);
    }
    if (child == 0)
        say(run, row, seconds, ends[1]);
    close(ends[1]);
    file = fdopen(ends[0], "r");
    said = json_loadf(file, 0, NULL);
    fclose(file);
    waitpid(child, &status, 0);
    if (said && !status)
        return said;
    json_decref(said);
    return json_pack("{s:s}", "failed",
                     WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "no result");
}

unsigned repeats_values(json_t *const *repeats, unsigned count, const char *inner, const char *key,
                        double *values)
{
    unsigned found = 0;

    for (unsigned i = 0; i < count; i++) {
        json_t *object = inner ? json_object_get(repeats[i], inner) : repeats[i];
        json_t *number = json_object_get(object, key);

        if (json_is_number(number))
            values[found++] = json_number_value(number);
    }
    return found;
}
