/* SPDX-License-Identifier: MIT */
/* prudence-malloc-load: the command line, and the measurements of the pattern. */
#define _GNU_SOURCE
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <jansson.h>

#include "arguments.h"
#include "host.h"
#include "load.h"
#include "measure.h"

static const struct pattern *const patterns[] = {
    &pattern_one_size,
    &pattern_mix,
    &pattern_lifo,
    &pattern_fifo,
    &pattern_random,
    &pattern_larson,
    &pattern_asymmetric,
    &pattern_free_only,
    &pattern_phases,
    &pattern_sizes,
    &pattern_realloc,
    &pattern_large,
    &pattern_threads,
    &pattern_fork,
    &pattern_cache_thrash,
    &pattern_cache_scratch,
    &pattern_like_cfrac,
    &pattern_like_espresso,
    &pattern_like_barnes,
    &pattern_like_sh6,
    &pattern_like_sh8,
    &pattern_like_rptest,
    &pattern_like_alloc_test,
    &pattern_like_malloc_large,
    &pattern_memory_sizes,
    &pattern_memory_survivors,
    &pattern_memory_quiet,
    &pattern_memory_calloc,
    &pattern_memory_huge,
    &pattern_memory_huge_crowd,
    &pattern_memory_real_time,
};

#define PATTERNS (sizeof patterns / sizeof *patterns)

struct request {
    const struct pattern *pattern;
    struct load load;
    double pause;
    bool lock;
};

static const struct argp_option options[] = {
    {"threads", 't', "N", 0, "Threads (the CPUs, within the bounds of the pattern)", 0},
    {"scale", 'c', "X", 0, "How much; 1 takes about half a second", 0},
    {"seed", 's', "N", 0, "Of the random numbers", 0},
    {"pause", 'p', "SECONDS", 0, "At the end, before resident memory is read again", 0},
    {"lock", 'l', NULL, 0, "Lock all memory, as real-time programs do (mlockall)", 0},
    {0},
};

static const struct pattern *pattern_find(const char *name)
{
    for (unsigned i = 0; i < PATTERNS; i++) {
        if (!strcmp(patterns[i]->name, name))
            return patterns[i];
    }
    return NULL;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct request *request = state->input;

    switch (key) {
    case 't':
        request->load.threads = (unsigned)argument_number(state, key, text, 1, MAX_THREADS);
        break;
    case 'c':
        request->load.scale = argument_real(state, key, text, 80000);
        break;
    case 's':
        request->load.seed = argument_number(state, key, text, 0, UINT64_MAX);
        break;
    case 'p':
        request->pause = argument_real(state, key, text, 86400);
        break;
    case 'l':
        request->lock = true;
        break;
    case ARGP_KEY_ARG:
        request->pattern = pattern_find(text);
        if (!request->pattern)
            argp_error(state, "unknown pattern '%s' (see list)", text);
        break;
    case ARGP_KEY_END:
        if (!request->pattern)
            argp_error(state, "which pattern? (see list)");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static unsigned cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

static void settle_threads(struct request *request)
{
    unsigned least = request->pattern->least_threads, most = request->pattern->most_threads;

    if (!request->load.threads)
        request->load.threads = cpus();
    if (request->load.threads < least)
        request->load.threads = least;
    if (request->load.threads > most)
        request->load.threads = most;
}

/* ------------------------------------------------------------------------------- cost */

struct cost {
    uint64_t wall_ns;
    double user, system; /* seconds */
    uint64_t minor_faults, major_faults;
};

static void add_usage(struct cost *cost, int who)
{
    struct rusage usage;

    getrusage(who, &usage);
    cost->user += (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6;
    cost->system += (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6;
    cost->minor_faults += (uint64_t)usage.ru_minflt;
    cost->major_faults += (uint64_t)usage.ru_majflt;
}

/* Returns the cost of this process and the children that it has waited for. */
static struct cost cost_now(void)
{
    struct cost cost = {.wall_ns = now_ns()};

    add_usage(&cost, RUSAGE_SELF);
    add_usage(&cost, RUSAGE_CHILDREN);
    return cost;
}

static json_t *cost_between(const struct cost *from, const struct cost *to)
{
    return json_pack("{s:f, s:f, s:f, s:I, s:I}", "wall_seconds",
                     (double)(to->wall_ns - from->wall_ns) / 1e9, "user_seconds",
                     to->user - from->user, "system_seconds", to->system - from->system,
                     "minor_faults", (json_int_t)(to->minor_faults - from->minor_faults),
                     "major_faults", (json_int_t)(to->major_faults - from->major_faults));
}

/* statm may lag by a batch per CPU. */
uint64_t load_resident(void)
{
    static const char key[] = "Rss:";
    char text[4096] = "";
    int file = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
    const char *line = length > 0 ? strstr(text, key) : NULL;

    if (file >= 0)
        close(file);
    return line ? strtoull(line + sizeof key - 1, NULL, 10) * 1024 : resident_bytes();
}

static json_t *figures;

void load_said(const char *figure, double value)
{
    if (!figures)
        figures = json_object();
    json_object_set_new(figures, figure, json_real(value));
}

static uint64_t pattern_run(const struct pattern *pattern, const struct load *load)
{
    if (pattern->run)
        return pattern->run(load);
    return team_run(load, load->threads, pattern->work, NULL);
}

static json_t *run(const struct request *request)
{
    struct cost before, after;
    uint64_t base, peak, paused = 0, blocks;
    json_t *result;

    if (request->lock && mlockall(MCL_CURRENT | MCL_FUTURE))
        load_fail("memory cannot be locked: %s", strerror(errno));
    before = cost_now();
    base = load_resident();
    blocks = pattern_run(request->pattern, &request->load);
    after = cost_now();
    peak = resident_bytes_peak();
    if (request->pause > 0) {
        sleep_until_ns(now_ns() + (uint64_t)(request->pause * 1e9));
        paused = load_resident();
    }
    result = cost_between(&before, &after);
    json_object_update_new(result, json_pack("{s:s, s:i, s:I, s:I, s:I, s:o}", "pattern",
                                             request->pattern->name, "threads",
                                             request->load.threads, "blocks", (json_int_t)blocks,
                                             "base_rss_bytes", (json_int_t)base, "peak_rss_bytes",
                                             (json_int_t)peak, "allocator", host_allocator()));
    if (figures)
        json_object_set_new(result, "figures", figures);
    if (request->pause > 0)
        json_object_set_new(result, "paused_rss_bytes", json_integer((json_int_t)paused));
    return result;
}

static json_t *list(void)
{
    json_t *all = json_array();

    for (unsigned i = 0; i < PATTERNS; i++)
        json_array_append_new(all, json_pack("{s:s, s:s}", "name", patterns[i]->name, "summary",
                                             patterns[i]->summary));
    return all;
}

static int print(json_t *said)
{
    json_dumpf(said, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    json_decref(said);
    return puts("") < 0 || fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .args_doc = "PATTERN\nlist\nprobe",
        .doc =
            "Run one allocation pattern and print its cost, as JSON.\v"
            "list: the patterns. probe: this machine, and whose malloc this process has.",
    };
    struct request request = {.load = {.scale = 1, .seed = 1}};

    if (argc == 2 && !strcmp(argv[1], "list"))
        return print(list());
    if (argc == 2 && !strcmp(argv[1], "probe"))
        return print(
            json_pack("{s:o, s:o}", "host", host_description(), "allocator", host_allocator()));
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    settle_threads(&request);
    return print(run(&request));
}
