/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stolen.h"

struct child {
    pid_t pid;
    FILE *output;
    int status; /* as of waitpid */
};

/* Makes the child the kernel's choice if memory runs out faster than a sample notices. */
static void volunteer_for_oom(void)
{
    int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (file < 0)
        return;
    if (write(file, "1000", 4) < 0)
        perror("prudence-bench: oom_score_adj");
    close(file);
}

static void set_environment(const char *name, const char *value)
{
    if (value && *value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* Returns the file of this program, or of the named one in the same folder. */
static const char *program_file(const char *name)
{
    static char file[PATH_MAX];
    ssize_t length;

    if (!name)
        return "/proc/self/exe";
    length = readlink("/proc/self/exe", file, sizeof file - 1);
    if (length < 0) {
        perror("prudence-bench: /proc/self/exe");
        _exit(127);
    }
    file[length] = 0;
    *(strrchr(file, '/') + 1) = 0;
    strncat(file, name, sizeof file - 1 - strlen(file));
    return file;
}

/* Runs in the child: becomes `program command argument`. Does not return. */
static void become(const char *program, const char *command, const char *argument,
                   const struct allocator *allocator, const char *options, int output)
{
    const char *file = program_file(program);

    set_environment("LD_PRELOAD", allocator->preload);
    set_environment("PRUDENCE_OPTIONS", options);
    dup2(output, STDOUT_FILENO);
    volunteer_for_oom();
    execl(file, "prudence-bench", command, argument, NULL);
    fprintf(stderr, "prudence-bench: %s: %s\n", file, strerror(errno));
    _exit(127);
}

static void child_start(struct child *child, const char *program, const char *command,
                        const char *argument, const struct allocator *allocator,
                        const char *options, bool quiet)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) || (child->pid = fork()) < 0) {
        perror("prudence-bench: cannot start a child");
        exit(EXIT_FAILURE);
    }
    if (child->pid == 0) {
        if (quiet && !freopen("/dev/null", "w", stderr))
            _exit(127);
        become(program, command, argument, allocator, options, ends[1]);
    }
    close(ends[1]);
    child->output = fdopen(ends[0], "r");
}

/* Returns the child's result, or NULL. */
static json_t *child_finish(struct child *child)
{
    json_t *said = json_loadf(child->output, 0, NULL);

    fclose(child->output);
    waitpid(child->pid, &child->status, 0);
    return said;
}

bool runner_has(const struct allocator *allocator)
{
    static const struct allocator *asked[8];
    static bool had[8];
    struct child child;
    json_t *said;
    unsigned i;

    for (i = 0; asked[i]; i++) {
        if (asked[i] == allocator)
            return had[i];
    }
    asked[i] = allocator;
    child_start(&child, NULL, "probe", NULL, allocator, NULL, true);
    said = child_finish(&child);
    had[i] = said && strstr(json_string_value(json_object_get(said, "file")), allocator->file);
    json_decref(said);
    return had[i];
}

/* Returns the reason for a missing result. A kill by the kernel means that memory ran out. */
static json_t *failure(const struct row *row, int status)
{
    char why[64];

    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return json_pack("{s:b, s:b}", "out_of_memory", 1, "killed", 1);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(why, sizeof why, "hangs");
    else if (WIFSIGNALED(status))
        snprintf(why, sizeof why, "ended by signal %d", WTERMSIG(status));
    else
        snprintf(why, sizeof why, "exit status %d", WEXITSTATUS(status));
    fprintf(stderr, "prudence-bench: %s %s: %s\n", row->config.scenario, row->subject->name, why);
    return json_pack("{s:s}", "failed", why);
}

static bool run_once(struct row *row)
{
    json_t *config = config_to_json(&row->config);
    char *argument = json_dumps(config, JSON_COMPACT);
    struct child child;
    json_t *said;

    child_start(&child, row->subject->family->program, "run", argument, row->subject->allocator,
                row->config.options, false);
    said = child_finish(&child);
    if (row->config.progress && isatty(STDERR_FILENO))
        fputc('\n', stderr);
    if (!said || child.status) {
        json_decref(said);
        said = failure(row, child.status);
    }
    json_array_append_new(row->repeats, said);
    json_decref(config);
    free(argument);
    return !json_object_get(said, "failed");
}

/* Adds to the last repeat of each row how much was stolen since the round began. */
static void note_stolen(struct row *rows, unsigned count, unsigned round,
                        const struct stolen *begun)
{
    struct stolen now;
    double share;

    if (!begun->all || !stolen_now(&now))
        return;
    share = stolen_between(begun, &now);
    if (share > MOST_STOLEN)
        fprintf(stderr,
                "prudence-bench: round %u does not count: the host took %.1f %% of the CPUs' "
                "time\n",
                round + 1, share * 100);
    for (unsigned i = 0; i < count; i++) {
        json_t *last = json_array_get(rows[i].repeats, json_array_size(rows[i].repeats) - 1);

        json_object_set_new(last, "steal", json_real(share));
        json_object_set_new(last, "stolen", json_boolean(share > MOST_STOLEN));
    }
}

unsigned runner_run(struct row *rows, unsigned count, unsigned repeat)
{
    unsigned failed = 0;

    for (unsigned i = 0; i < repeat; i++) {
        struct stolen begun;

        stolen_now(&begun);
        for (unsigned j = 0; j < count; j++)
            failed += !run_once(&rows[(i + j) % count]); /* rows take turns to begin a round */
        note_stolen(rows, count, i, &begun);
    }
    return failed;
}
