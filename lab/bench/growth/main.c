/* SPDX-License-Identifier: MIT */
/*
 * prudence-growth AXIS VALUE: the cost of a pair, a grace period and prudence_stats, and the
 * resident memory, with VALUE readers, caches, live objects or writers; or the cost of another
 * operation (works.h). Each process measures one point, and prints one line of JSON.
 * lab/run/growth runs all points and draws the curves.
 *
 * A pair costs CPU time of the writers, because with more threads than CPUs wall time would show no
 * more than that. Grace periods and prudence_stats are timed one by one, after the writers have
 * ended and while the readers continue; medians.
 */
#include <argp.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "arguments.h"
#include "crowd.h"
#include "histogram.h"
#include "host.h"
#include "measure.h"
#include "random.h"
#include "works.h"

#define SLICE        256
#define WARM_NS      20000000
#define TIMED        101       /* calls timed one by one, */
#define TIMED_NS     300000000 /* or as many as fit into that time; at least three */
#define MOST_WRITERS 1024
#define MOST_CACHES  100000
#define MOST_READERS 100000
#define ROOM         2 /* available memory must be this many times the size of the live objects */

/* The works follow the last axis. */
enum axis { IDLE_READERS, BUSY_READERS, CACHES, LIVE, WRITERS, AXES };
static const uint64_t axis_most[AXES] = {MOST_READERS, MOST_READERS, MOST_CACHES, UINT64_C(1) << 36,
                                         MOST_WRITERS};

struct request {
    unsigned axis;
    uint64_t value; /* 0 if not given */
    uint64_t size;
    double seconds;
    unsigned given; /* number of arguments so far */
};

struct writer {
    pthread_t thread;
    uint64_t random;
    uint64_t pairs, cpu_ns, wall_ns;
} __attribute__((aligned(128)));

static struct prudence_cache **caches;
static unsigned cache_count;
static const struct work *work; /* NULL: pairs */
static bool over, measured;     /* atomic */

static void die(const char *what)
{
    fprintf(stderr, "prudence-growth: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

/* ---------------------------------------------------------------------------------- writers */

static struct prudence_cache *any_cache(struct writer *writer)
{
    return caches[below(next_random(&writer->random), cache_count)];
}

static void slice(struct writer *writer)
{
    if (work) {
        writer->pairs += work->turn(&writer->random);
        return;
    }
    for (unsigned i = 0; i < SLICE; i++) {
        struct prudence_cache *cache = any_cache(writer);
        void *object = prudence_cache_alloc(cache);

        if (!object)
            die("prudence_cache_alloc");
        *(volatile char *)object = 1;
        prudence_cache_free_deferred(cache, object);
    }
    writer->pairs += SLICE;
}

static void *write_on(void *argument)
{
    clockid_t clock = work && work->has_helper ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_THREAD_CPUTIME_ID;
    struct writer *writer = argument;
    uint64_t cpu, wall;

    while (!__atomic_load_n(&measured, __ATOMIC_RELAXED))
        slice(writer);
    writer->pairs = 0;
    cpu = clock_ns(clock);
    wall = now_ns();
    do
        slice(writer);
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED));
    writer->cpu_ns = clock_ns(clock) - cpu;
    writer->wall_ns = now_ns() - wall;
    return NULL;
}

static void write_for(double seconds, unsigned count, json_t *result)
{
    struct writer *writers = aligned_alloc(128, count * sizeof *writers);
    double pairs = 0, cpu = 0, wall = 0;

    if (!writers)
        die("writers");
    for (unsigned i = 0; i < count; i++) {
        writers[i] = (struct writer){.random = i + 1};
        if (pthread_create(&writers[i].thread, NULL, write_on, &writers[i]))
            die("cannot start a writer");
    }
    sleep_until_ns(now_ns() + WARM_NS);
    __atomic_store_n(&measured, true, __ATOMIC_RELAXED);
    sleep_until_ns(now_ns() + (uint64_t)(seconds * 1e9));
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < count; i++) {
        pthread_join(writers[i].thread, NULL);
        pairs += (double)writers[i].pairs;
        cpu += (double)writers[i].cpu_ns;
        wall += (double)writers[i].wall_ns;
    }
    json_object_set_new(result, "pair_cpu_ns", json_real(cpu / pairs));
    json_object_set_new(result, "pair_wall_ns", json_real(wall / pairs));
    free(writers);
}

/* ------------------------------------------------------------------------- timed one by one */

static void ask_stats(void)
{
    struct prudence_stats stats;

    if (prudence_stats(&stats))
        die("prudence_stats");
}

static void time_calls(json_t *result, const char *name, void (*call)(void))
{
    struct histogram *histogram = histogram_create();

    uint64_t first = now_ns();

    for (unsigned i = 0; i < TIMED && (i < 3 || now_ns() - first < TIMED_NS); i++) {
        uint64_t began = now_ns();

        call();
        histogram_record(histogram, now_ns() - began);
    }
    json_object_set_new(result, name, json_real((double)histogram_quantile(histogram, 0.5)));
}

/* ------------------------------------------------------------------------------- the points */

static uint64_t available_bytes(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    unsigned long long kilobytes = 0;
    char line[128];

    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "MemAvailable: %llu", &kilobytes) == 1)
            break;
    }
    if (file)
        fclose(file);
    return (uint64_t)kilobytes << 10;
}

/* Allocates live objects that no thread uses. Returns false if there is no room for them. */
static bool fill(const struct request *request, uint64_t count)
{
    if (count > available_bytes() / ROOM / request->size) {
        printf("skipped: %llu bytes of objects, and %llu are available\n",
               (unsigned long long)(count * request->size), (unsigned long long)available_bytes());
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        void *object = prudence_cache_alloc(caches[0]);

        if (!object)
            die("prudence_cache_alloc");
        *(volatile char *)object = 1;
    }
    return true;
}

static void make_caches(unsigned count, size_t size)
{
    char name[32];

    caches = calloc(count, sizeof *caches);
    if (!caches)
        die("caches");
    for (cache_count = 0; cache_count < count; cache_count++) {
        snprintf(name, sizeof name, "growth-%u", cache_count);
        caches[cache_count] = prudence_cache_create(name, size, NULL);
        if (!caches[cache_count])
            die("prudence_cache_create");
    }
}

static bool start_work(const struct request *request)
{
    work = &works[request->axis - AXES];
    if (work->bytes <= available_bytes() / ROOM / request->value && work->start(request->value))
        return true;
    printf("skipped: there is no room for %llu %s\n", (unsigned long long)request->value,
           work->name);
    return false;
}

static int measure(const struct request *request)
{
    unsigned axis = request->axis;
    unsigned value = (unsigned)request->value;
    bool busy = axis == BUSY_READERS;
    struct crowd *crowd = NULL;
    json_t *result = json_object();

    make_caches(axis == CACHES ? value : 1, request->size);
    if (axis >= AXES && !start_work(request))
        return EXIT_SUCCESS;
    if (axis == LIVE && !fill(request, request->value))
        return EXIT_SUCCESS;
    if ((axis == IDLE_READERS || busy) && !(crowd = crowd_start(value, busy))) {
        printf("skipped: %u threads cannot be started here\n", value);
        return EXIT_SUCCESS;
    }
    write_for(request->seconds, axis == WRITERS || (work && work->is_crowd) ? value : 1, result);
    json_object_set_new(result, "rss_bytes", json_integer((json_int_t)resident_bytes()));
    time_calls(result, "grace_period_ns", prudence_synchronize);
    time_calls(result, "stats_ns", ask_stats);
    if (crowd)
        crowd_stop(crowd);
    json_object_set_new(result, "host", host_description());
    json_object_set_new(result, "prudence", json_string(prudence_version()));
    json_dumpf(result, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(result);
    return EXIT_SUCCESS;
}

/* ------------------------------------------------------------------------- the command line */

static const struct argp_option options[] = {
    {"size", 's', "BYTES", 0, "Size of the objects (64)", 0},
    {"seconds", 'T', "SECONDS", 0, "How long the writers are measured (0.1)", 0},
    {0},
};

static const char *axis_name(unsigned axis)
{
    static const char *const names[AXES] = {"idle-readers", "busy-readers", "caches", "live",
                                            "writers"};

    return axis < AXES ? names[axis] : axis < AXES + work_count ? works[axis - AXES].name : NULL;
}

static void take_argument(struct request *request, const char *text, struct argp_state *state)
{
    switch (request->given++) {
    case 0:
        request->axis = argument_name(state, ARGP_KEY_ARG, text, axis_name);
        break;
    case 1:
        request->value = argument_number(state, ARGP_KEY_ARG, text, 1,
                                         request->axis < AXES ? axis_most[request->axis]
                                                              : works[request->axis - AXES].most);
        break;
    default:
        argp_error(state, "unexpected '%s'", text);
    }
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct request *request = state->input;

    switch (key) {
    case 's':
        request->size = argument_number(state, key, text, 8, 32768);
        break;
    case 'T':
        request->seconds = argument_real(state, key, text, 86400);
        break;
    case ARGP_KEY_ARG:
        take_argument(request, text, state);
        break;
    case ARGP_KEY_END:
        if (request->given < 2)
            argp_error(state, "AXIS and VALUE are missing");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct argp argp = {
        options,
        parse,
        "AXIS VALUE",
        "Measure a point of the growth of costs with readers, caches, live objects, writers, "
        "block sizes, domains, slots, callbacks, entries of tables or threads.",
        NULL,
        NULL,
        NULL};
    struct request request = {.size = 64, .seconds = 0.1};

    argp_parse(&argp, argc, argv, 0, NULL, &request);
    return measure(&request);
}
