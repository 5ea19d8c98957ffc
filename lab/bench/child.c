/* SPDX-License-Identifier: MIT */
/*
 * Code of a child: makes one run, and prints the result as JSON on standard output. Prudence takes
 * its options, and ld.so the allocator, from the environment made by the parent.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "host.h"
#include "loops.h"

#define PATIENCE 120 /* seconds beyond the measured ones after which a run counts as hanging */

static struct run current; /* static, because callbacks know only their object */

void timed_object_freed(void *object)
{
    const struct timed_object *timed = object;

    if (timed->retired_at)
        histogram_record(current.latencies, now_ns() - timed->retired_at);
}

static const char *version_of(const struct family *family)
{
    return family->version ? family->version : family->library_version();
}

static json_t *versions(const struct family *family)
{
    return json_pack("{s:s, s:s, s:o}", "library", family->library, "library_version",
                     version_of(family), "allocator", host_allocator());
}

static int prepare(struct run *run, const char *config_text)
{
    json_t *json = json_loads(config_text, 0, NULL);

    if (!json || config_from_json(&run->config, json))
        return -1;
    json_decref(json);
    run->scenario = scenario_find(run->config.scenario);
    run->subject = subject_find(run->config.subject);
    return run->scenario && run->subject ? 0 : -1;
}

static int check_allocator(const struct allocator *allocator)
{
    const char *file = host_allocator_file();

    if (strstr(file, allocator->file))
        return 0;
    fprintf(stderr, "prudence-bench: malloc comes from %s, not from %s\n", file, allocator->file);
    return -1;
}

int child_run(int argc, char **argv)
{
    struct run *run = &current;
    json_t *result = json_object();

    if (argc != 2 || prepare(run, argv[1]) || check_allocator(run->subject->allocator))
        return EXIT_FAILURE;
    alarm((unsigned)run->config.seconds + PATIENCE);
    if (run->subject->family->start)
        run->subject->family->start(run);
    run->pool = run->subject->family->operations->pool_create(run->config.size);
    if (run->scenario->prepare)
        run->scenario->prepare(run);
    json_object_set_new(result, "versions", versions(run->subject->family));
    crew_work(run, result);
    json_dumpf(result, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    fflush(stdout);
    _exit(EXIT_SUCCESS); /* skips all cleanup, which the system does */
}

int child_probe(int argc, char **argv)
{
    json_t *allocator = host_allocator();

    (void)argc, (void)argv;
    json_dumpf(allocator, stdout, JSON_COMPACT);
    json_decref(allocator);
    return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
