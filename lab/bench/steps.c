/* SPDX-License-Identifier: MIT */
/*
 * prudence-bench steps: the cost of an allocation that is a hit, that merges safe latent objects,
 * that refills the object cache, or that grows the slab cache, in nanoseconds and, if the system
 * lets a program count them, in instructions of user space. Section 3.3 of the paper says that in
 * Linux a refill costs 4 hits, and a grow 14.
 *
 * A round makes a cache, and allocates (grows), frees seven of eight objects and allocates them
 * again (refills), and defers and allocates again (merges). The cache's counters before and after
 * an allocation show its step. Hits are too short for a clock, so a few are measured together; each
 * other step is measured alone. Medians over all rounds, less the cost of the reading.
 */
#include "steps.h"

#include <argp.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <jansson.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "arguments.h"
#include "document.h"
#include "measure.h"
#include "statistics.h"

#define MAX_BYTES    32768
#define LEAST_CACHED 16
#define MAX_CACHED   16384
#define MAX_ROUNDS   10000
#define CACHES       8       /* object caches full of objects that a round allocates */
#define RUN          8       /* hits that are measured together */
#define MAX_SAMPLES  1000000 /* of a step; more are not kept */

enum step { HIT, MERGE, REFILL, GROW, STEPS };
static const struct {
    const char *name;
    unsigned paper; /* cost in hits (section 3.3); 0: the paper does not say */
} steps[STEPS] = {{"hit", 1}, {"merge", 0}, {"refill", 4}, {"grow", 14}};

enum unit { NANOSECONDS, INSTRUCTIONS, UNITS };
static const char *const units[UNITS] = {"ns", "instructions"};

struct request {
    struct numbers sizes, cached;
    uint64_t rounds;
    const char *json;
};

/* Costs of one step in one unit. */
struct samples {
    double *cost;
    size_t count;
    uint64_t objects; /* that all of them brought */
};

/* The state that one size of objects and of the object cache is measured with. */
struct bench {
    struct prudence_domain *domain;
    struct prudence_cache *cache;
    uint64_t (*read)(void);
    double reading; /* cost of two readings */
    void **objects; /* `count` of them; NULL where one is to be allocated */
    size_t size, stride, count;
    unsigned cached; /* objects in the object cache */
    struct samples samples[STEPS];
};

static void die(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

/* ------------------------------------------------------------------------------------- readings */

static int counter = -1; /* file descriptor of the counter of instructions */

/* Returns false if the processor or the system counts none for this program. */
static bool open_counter(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_HW_INSTRUCTIONS,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};

    counter = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    return counter >= 0;
}

static uint64_t instructions(void)
{
    uint64_t count;

    if (read(counter, &count, sizeof count) != sizeof count)
        die("the counter of instructions");
    return count;
}

static double reading_cost(uint64_t (*read)(void))
{
    double cost[1001];

    for (unsigned i = 0; i < 1001; i++) {
        uint64_t began = read();

        cost[i] = (double)(read() - began);
    }
    return numbers_median(cost, 1001);
}

/* Returns the nanoseconds of one cycle of cycles(). */
static double cycle_ns(void)
{
    uint64_t began = cycles(), began_ns = now_ns();

    while (now_ns() - began_ns < 20000000)
        ;
    return (double)(now_ns() - began_ns) / (double)(cycles() - began);
}

static uint64_t read_cycles(void)
{
    return cycles();
}

/* --------------------------------------------------------------------------------------- rounds */

static struct prudence_cache_stats counters_of(const struct bench *bench)
{
    struct prudence_cache_stats stats;

    if (prudence_cache_stats(bench->cache, &stats))
        die("prudence_cache_stats");
    return stats;
}

static void add_sample(struct bench *bench, enum step step, double cost, uint64_t objects)
{
    struct samples *samples = &bench->samples[step];

    if (samples->count == MAX_SAMPLES)
        return;
    samples->cost[samples->count++] = cost - bench->reading > 0 ? cost - bench->reading : 0;
    samples->objects += objects;
}

static void *take(const struct bench *bench)
{
    void *object = prudence_cache_alloc(bench->cache);

    if (!object)
        die("prudence_cache_alloc");
    return object;
}

/* Measures one allocation, and counts it if it is none of the hits. */
static void take_one(struct bench *bench, void **object)
{
    struct prudence_cache_stats before = counters_of(bench), after;
    uint64_t began = bench->read();
    double cost;

    *object = take(bench);
    cost = (double)(bench->read() - began);
    after = counters_of(bench);
    if (after.grows > before.grows)
        add_sample(bench, GROW, cost, 1 + after.refilled_objects - before.refilled_objects);
    else if (after.hits == before.hits)
        add_sample(bench, REFILL, cost, 1 + after.refilled_objects - before.refilled_objects);
    else if (after.hits_after_merge > before.hits_after_merge)
        add_sample(bench, MERGE, cost, after.merged_objects - before.merged_objects);
}

/* Measures a few allocations together, and counts them if all are hits. */
static void take_run(struct bench *bench, void **objects)
{
    struct prudence_cache_stats before = counters_of(bench), after;
    uint64_t began = bench->read();
    double cost;

    for (unsigned i = 0; i < RUN; i++)
        objects[i] = take(bench);
    cost = (double)(bench->read() - began);
    after = counters_of(bench);
    if (after.hits == before.hits + RUN && after.hits_after_merge == before.hits_after_merge)
        add_sample(bench, HIT, cost, RUN);
}

/* Allocates the first `count` objects, so that each miss is measured alone: runs are for as many
 * hits as there are sure to be. */
static void take_all(struct bench *bench, size_t count)
{
    for (size_t i = 0; i < count;) {
        if (count - i >= RUN && counters_of(bench).objects_cached >= RUN) {
            take_run(bench, bench->objects + i);
            i += RUN;
        } else {
            take_one(bench, &bench->objects[i++]);
        }
    }
}

/* Frees seven of eight objects in the order of allocation, so that every slab stays with the node.
 * Returns their number; the places of the kept objects are behind those of the freed ones. */
static size_t free_most(struct bench *bench)
{
    size_t freed = bench->count - bench->count / 8;

    for (size_t i = 0; i < bench->count / 8; i++) {
        void *kept = bench->objects[8 * i];

        bench->objects[8 * i] = bench->objects[freed + i];
        bench->objects[freed + i] = kept;
    }
    for (size_t i = 0; i < freed; i++)
        prudence_cache_free(bench->cache, bench->objects[i]);
    return freed;
}

/* Empties the object cache, and fills the latent cache with objects whose grace period is over.
 * Stores the number of these in *deferred. Returns the number of objects that emptied the cache,
 * which follow bench->count others. */
static size_t defer_some(struct bench *bench)
{
    size_t more = 0;

    while (counters_of(bench).objects_cached && more < bench->cached)
        bench->objects[bench->count + more++] = take(bench);
    for (size_t i = 0; i < bench->cached; i++)
        prudence_cache_free_deferred(bench->cache, bench->objects[i]);
    prudence_manual_advance(bench->domain);
    return more;
}

static void go_round(struct bench *bench)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = bench->domain};
    size_t more;

    attr.object_cache_bytes = bench->cached * bench->stride;
    bench->cache = prudence_cache_create("steps", bench->size, &attr);
    if (!bench->cache)
        die("prudence_cache_create");
    take_all(bench, bench->count);
    take_all(bench, free_most(bench));
    more = defer_some(bench);
    for (size_t i = 0; i < bench->cached; i++)
        take_one(bench, &bench->objects[i]); /* safe objects are not in the object cache yet */
    for (size_t i = 0; i < bench->count + more; i++)
        prudence_cache_free(bench->cache, bench->objects[i]);
    while (counters_of(bench).objects_latent) { /* else the destroy would wait for ever */
        prudence_cache_shrink(bench->cache);    /* closes open batches, merges */
        prudence_manual_advance(bench->domain);
    }
    if (prudence_cache_destroy(bench->cache))
        die("prudence_cache_destroy");
}

/* -------------------------------------------------------------------------------------- results */

static void start(struct bench *bench, size_t size, unsigned cached)
{
    struct prudence_cache_stats stats;

    *bench = (struct bench){.size = size, .cached = cached, .count = (size_t)CACHES * cached};
    bench->domain = prudence_domain_create("steps", PRUDENCE_DOMAIN_MANUAL, NULL);
    bench->cache = prudence_cache_create("steps", size, NULL);
    bench->objects = calloc(bench->count + cached, sizeof *bench->objects);
    if (!bench->domain || !bench->cache || !bench->objects)
        die("prudence-bench steps");
    stats = counters_of(bench);
    bench->stride = stats.object_stride;
    prudence_cache_destroy(bench->cache);
    for (unsigned step = 0; step < STEPS; step++) {
        bench->samples[step].cost = calloc(MAX_SAMPLES, sizeof *bench->samples[step].cost);
        if (!bench->samples[step].cost)
            die("prudence-bench steps");
    }
}

static void stop(struct bench *bench)
{
    for (unsigned step = 0; step < STEPS; step++)
        free(bench->samples[step].cost);
    free(bench->objects);
    prudence_domain_destroy(bench->domain);
}

static void set_quantile(json_t *row, enum unit unit, const char *suffix, double value)
{
    char key[32];

    snprintf(key, sizeof key, "%s%s", units[unit], suffix);
    json_object_set_new(row, key, json_real(value));
}

/* Adds the quartiles of a step's samples to the row; a reading counts for `one`. */
static void add_cost(json_t *row, enum unit unit, struct samples *samples, double one)
{
    if (!samples->count)
        return;
    set_quantile(row, unit, "", one * numbers_median(samples->cost, samples->count));
    set_quantile(row, unit, "_low", one * numbers_quantile(samples->cost, samples->count, 0.25));
    set_quantile(row, unit, "_high", one * numbers_quantile(samples->cost, samples->count, 0.75));
}

/* Measures all rounds in one unit, and adds the costs to the steps' rows. */
static void measure(struct bench *bench, uint64_t rounds, enum unit unit, double one,
                    json_t *rows[STEPS])
{
    bench->read = unit == INSTRUCTIONS ? instructions : read_cycles;
    bench->reading = reading_cost(bench->read);
    for (unsigned step = 0; step < STEPS; step++)
        bench->samples[step].count = bench->samples[step].objects = 0;
    for (uint64_t round = 0; round < rounds; round++)
        go_round(bench);
    for (unsigned step = 0; step < STEPS; step++) {
        struct samples *samples = &bench->samples[step];

        add_cost(rows[step], unit, samples, step == HIT ? one / RUN : one);
        if (unit != NANOSECONDS)
            continue;
        json_object_set_new(rows[step], "count", json_integer((json_int_t)samples->count));
        if (step != HIT && samples->count)
            json_object_set_new(rows[step], "objects",
                                json_real((double)samples->objects / (double)samples->count));
    }
}

static void print_heading(void)
{
    printf("%6s %6s %-6s %8s %8s %9s %9s %9s %7s %12s %7s %9s\n", "size", "cache", "step", "count",
           "objects", "ns", "low", "high", "/ hit", "instructions", "/ hit", "the paper");
}

/* Prints a figure, or a dash for one that the row does not have. */
static void print_figure(const json_t *row, const char *key, int width, int digits, double by)
{
    const json_t *value = json_object_get(row, key);

    if (value && by > 0)
        printf(" %*.*f", width, digits, json_number_value(value) / by);
    else
        printf(" %*s", width, "-");
}

static void print_row(const json_t *row, const json_t *hit, enum step step)
{
    const double ns = json_number_value(json_object_get(hit, "ns"));
    const double counted = json_number_value(json_object_get(hit, "instructions"));

    printf("%6lld %6lld %-6s %8lld", json_integer_value(json_object_get(row, "size")),
           json_integer_value(json_object_get(row, "cache")), steps[step].name,
           json_integer_value(json_object_get(row, "count")));
    print_figure(row, "objects", 8, 1, 1);
    print_figure(row, "ns", 9, 1, 1);
    print_figure(row, "ns_low", 9, 1, 1);
    print_figure(row, "ns_high", 9, 1, 1);
    print_figure(row, "ns", 7, 1, ns);
    print_figure(row, "instructions", 12, 0, 1);
    print_figure(row, "instructions", 7, 1, counted);
    if (steps[step].paper)
        printf(" %9u\n", steps[step].paper);
    else
        printf(" %9s\n", "-");
}

static void measure_steps(const struct request *request, size_t size, unsigned cached, bool counts,
                          double one_ns, json_t *all)
{
    json_t *rows[STEPS];
    struct bench bench;

    for (unsigned step = 0; step < STEPS; step++)
        rows[step] = json_pack("{s:s, s:I, s:I}", "step", steps[step].name, "size",
                               (json_int_t)size, "cache", (json_int_t)cached);
    start(&bench, size, cached);
    measure(&bench, request->rounds, NANOSECONDS, one_ns, rows);
    if (counts)
        measure(&bench, request->rounds, INSTRUCTIONS, 1, rows);
    stop(&bench);
    for (unsigned step = 0; step < STEPS; step++) {
        print_row(rows[step], rows[HIT], step);
        if (steps[step].paper)
            json_object_set_new(rows[step], "paper", json_integer(steps[step].paper));
        json_array_append_new(all, rows[step]);
    }
    fflush(stdout);
}

/* ----------------------------------------------------------------------------- the command line */

static const struct argp_option options[] = {
    {"size", 's', "BYTES,...", 0, "Sizes of the objects (64,256,1024,4096)", 0},
    {"cache", 'c', "OBJECTS,...", 0, "Objects in the object cache (64)", 0},
    {"rounds", 'n', "COUNT", 0, "Rounds of each row (100)", 0},
    {"json", 'j', "FILE", 0, "Write the results to FILE", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct request *request = state->input;

    switch (key) {
    case 's':
        request->sizes = argument_numbers(state, key, text, 1, MAX_BYTES);
        break;
    case 'c':
        request->cached = argument_numbers(state, key, text, LEAST_CACHED, MAX_CACHED);
        break;
    case 'n':
        request->rounds = argument_number(state, key, text, 1, MAX_ROUNDS);
        break;
    case 'j':
        request->json = text;
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected '%s'", text);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int steps_bench(int argc, char **argv)
{
    static const struct argp argp = {
        options,
        parse,
        NULL,
        "Cost of an allocation that hits, merges, refills or grows, compared with the paper's.",
        NULL,
        NULL,
        NULL};
    static char name[] = "prudence-bench steps";
    struct request request = {
        .sizes = {{64, 256, 1024, 4096}, 4}, .cached = {{64}, 1}, .rounds = 100};
    json_t *document, *rows = json_array();
    bool counts = open_counter();
    double one_ns;

    argv[0] = name;
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    pin_to_present_cpu();
    prudence_option_set("background", "0"); /* no thread of the library gives memory back */
    document = document_begin(name);
    one_ns = cycle_ns();
    if (!counts)
        fprintf(stderr, "%s: the system counts no instructions for this program\n", name);
    print_heading();
    for (unsigned i = 0; i < request.sizes.count; i++)
        for (unsigned j = 0; j < request.cached.count; j++)
            measure_steps(&request, request.sizes.value[i], (unsigned)request.cached.value[j],
                          counts, one_ns, rows);
    json_object_set_new(document, "version", json_string(prudence_version()));
    json_object_set_new(document, "rows", rows);
    if (request.json && document_write(document, request.json))
        return EXIT_FAILURE;
    json_decref(document);
    return EXIT_SUCCESS;
}
