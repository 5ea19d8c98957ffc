/* SPDX-License-Identifier: MIT */
/*
 * See environment.h.
 *
 *   environment_SUBJECT                         lists the cells: "circumstance moment", one a line
 *   environment_SUBJECT CIRCUMSTANCE MOMENT     runs one; status 0: right, 1: wrong, 77: the
 *                                               circumstance is unavailable here
 *   environment_SUBJECT all MOMENT [CIRCUMSTANCE...]
 *                                               runs all cells of that moment and expects the named
 *                                               circumstances to fail
 */
#define _GNU_SOURCE
#include "environment.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define INSIDE "ENVIRONMENT_INSIDE" /* set for the program after before_exec */

enum { HELPERS = 3, STEPS = 3000, PATIENCE = 100, LITTLE = 20 };

static const char *const moments[MOMENTS] = {"first", "used", "threads"};
static const struct circumstance *now;
static const char *now_word;
static pthread_barrier_t ready, entered;

static bool has_moment(const struct circumstance *circumstance, enum moment moment)
{
    if (circumstance->before_exec)
        return moment == FIRST;
    return !(circumstance->alone && moment == THREADS) &&
           !(circumstance->after_first && moment == FIRST);
}

static __attribute__((noreturn)) void skip(void)
{
    fprintf(stderr, "environment: %s cannot be had: %s\n", now->name, strerror(errno));
    _exit(SKIPPED);
}

static void enter(void)
{
    if (now->enter && !now->before_exec && !now->enter(now_word))
        skip();
}

static void enter_in_thread(void)
{
    if (now->in_thread && !now->in_thread())
        skip();
}

/* ------------------------------------------------------------------------------------- one cell */

static void *helper(void *unused)
{
    (void)unused;
    work(STEPS);
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&entered);
    enter_in_thread();
    work(STEPS);
    return NULL;
}

static void run_with_threads(void)
{
    pthread_t threads[HELPERS];

    pthread_barrier_init(&ready, NULL, HELPERS + 1);
    pthread_barrier_init(&entered, NULL, HELPERS + 1);
    for (unsigned i = 0; i < HELPERS; i++)
        if (pthread_create(&threads[i], NULL, helper, NULL))
            wrong("no thread");
    pthread_barrier_wait(&ready);
    enter();
    if (!now->threads_gone)
        pthread_barrier_wait(&entered);
    enter_in_thread();
    work(STEPS);
    for (unsigned i = 0; i < HELPERS && !now->threads_gone; i++)
        pthread_join(threads[i], NULL);
}

static void run(enum moment moment)
{
    if (moment == THREADS) {
        run_with_threads();
    } else {
        if (moment == USED)
            work(STEPS);
        enter();
        enter_in_thread();
        work(STEPS);
    }
    if (!now->no_more_threads)
        work_in_threads(HELPERS, STEPS);
    subject_settle();
    work(STEPS);
}

static int run_cell(char **arguments, enum moment moment)
{
    if (now->before_exec && !getenv(INSIDE)) {
        if (!now->enter(now_word) || setenv(INSIDE, "1", 1))
            skip();
        execv("/proc/self/exe", arguments);
        execv(arguments[0], arguments); /* without /proc */
        skip();
    }
    run(moment);
    if (now->leave)
        now->leave();
    return RIGHT;
}

/* ---------------------------------------------------------------------------------- all of them */

/* Calls `of` for each cell with the names of circumstance and moment. */
static void for_each(void (*of)(const char *name, const char *moment, void *data), void *data)
{
    for (unsigned i = 0; i < circumstance_count; i++) {
        char words[512], *rest = words;

        snprintf(words, sizeof words, "%s", circumstances[i].words ? circumstances[i].words : "-");
        for (char *word; (word = strsep(&rest, " "));) {
            char name[128];

            snprintf(name, sizeof name, "%s%s", circumstances[i].name,
                     circumstances[i].words ? word : "");
            for (enum moment moment = FIRST; moment < MOMENTS; moment++)
                if (has_moment(&circumstances[i], moment))
                    of(name, moments[moment], data);
        }
    }
}

static void print_cell(const char *name, const char *moment, void *unused)
{
    (void)unused;
    printf("%s %s\n", name, moment);
}

struct totals {
    char **arguments; /* main's: the third is the moment, then circumstances that are to fail */
    unsigned ran, skipped, failed;
};

static bool is_pending(const struct totals *totals, const char *name)
{
    for (char **argument = totals->arguments + 3; *argument; argument++)
        if (strcmp(*argument, name) == 0)
            return true;
    return false;
}

static void run_in_child(const char *name, const char *moment, void *data)
{
    struct totals *totals = data;
    char *arguments[] = {totals->arguments[0], (char *)(size_t)name, (char *)(size_t)moment, NULL};
    pid_t child;
    int status = -1;

    if (strcmp(moment, totals->arguments[2]) != 0)
        return;
    child = fork();
    if (child == 0) {
        alarm(is_pending(totals, name) ? LITTLE : PATIENCE); /* survives exec */
        execv(arguments[0], arguments);
        _exit(127);
    }
    waitpid(child, &status, 0);
    totals->ran++;
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
        totals->skipped++;
    } else if (status) {
        totals->failed += !is_pending(totals, name);
        printf("%s %s: status %#x%s\n", name, moment, (unsigned)status,
               is_pending(totals, name) ? ", as expected" : "");
    }
    fflush(stdout);
}

static int run_all(char **arguments)
{
    struct totals totals = {.arguments = arguments};
    static char path[4096]; /* argv[0] may be a name found by PATH, and cells may have no /proc */

    if (readlink("/proc/self/exe", path, sizeof path - 1) <= 0)
        wrong("where this program is, is not known");
    arguments[0] = path;
    for_each(run_in_child, &totals);
    printf("environment: %u cells, %u skipped, %u failed\n", totals.ran, totals.skipped,
           totals.failed);
    return totals.failed || !totals.ran ? WRONG : RIGHT;
}

/* Sets `now` and `now_word`. */
static bool find(const char *name)
{
    for (unsigned i = 0; i < circumstance_count; i++) {
        size_t length = strlen(circumstances[i].name);

        now = &circumstances[i];
        now_word = name + length;
        if (strncmp(name, now->name, length) == 0 && (now->words != NULL) == (*now_word != '\0'))
            return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    if (argc == 1) {
        for_each(print_cell, NULL);
        return 0;
    }
    if (strcmp(argv[1], "all") == 0 && argc > 2)
        return run_all(argv);
    for (enum moment moment = FIRST; argc == 3 && moment < MOMENTS; moment++)
        if (strcmp(argv[2], moments[moment]) == 0 && find(argv[1]) && has_moment(now, moment))
            return run_cell(argv, moment);
    fprintf(stderr, "environment: no such cell: %s %s\n", argv[1], argc > 2 ? argv[2] : "");
    return 2;
}
