/* SPDX-License-Identifier: MIT */
/*
 * prudence-bench scm: cycles of each call of <prudence/scm.h>, and bytes of each object, by
 * collection strategy, number of threads and number of objects that expire at a tick (Aigner 2012,
 * Figures 6.5 to 6.9).
 *
 * Every thread allocates the objects of a round, refreshes them, and ticks: first by its local
 * clock, then by global time. Then it keeps as many objects alive: at each tick it refreshes all of
 * them ("keep alive", with the tick's share), and all of them again ("redundant"). Allocating and
 * refreshing is timed by the round, ticks one by one, with the time-stamp counter, less the cost of
 * reading it. Medians over all rounds and threads, so that with more threads than CPUs, a round in
 * which a thread was preempted does not count more than another.
 *
 * Then come bursts of objects that end together, each with a separate date, and in regions
 * (scm_bursts.c).
 */
#include <argp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <prudence/scm.h>

#include "arguments.h"
#include "document.h"
#include "scm.h"
#include "statistics.h"

#define MAX_BENCH_THREADS 1000
#define WARM_UP           20 /* rounds that do not count, in addition to the extension */

enum timed { ALLOCATE, REFRESH, TICK, GLOBAL_REFRESH, GLOBAL_TICK, KEEP_ALIVE, REDUNDANT, TIMED };
static const char *const timed_names[TIMED] = {
    "malloc", "refresh", "tick", "global refresh", "global tick", "keep alive", "redundant"};

struct scm_request {
    struct numbers threads, objects;
    uint64_t size, rounds, extension;
    const char *collection; /* NULL selects both */
    bool plain;             /* objects from prudence_malloc, which does not free expired objects */
    const char *json;
};

struct crew_member {
    pthread_t thread;
    const struct scm_request *request;
    pthread_barrier_t *begin;
    uint64_t objects;
    double *samples[TIMED]; /* of each round */
};

/* Returns the difference between two consecutive readings of the counter. */
static double reading_cost(void)
{
    double samples[1001];

    for (unsigned i = 0; i < 1001; i++) {
        uint64_t began = cycles();

        samples[i] = (double)(cycles() - began);
    }
    return numbers_median(samples, 1001);
}

static void die(const char *what)
{
    fprintf(stderr, "prudence-bench scm: %s\n", what);
    exit(EXIT_FAILURE);
}

/* Runs one round by one clock. */
static void go_round(const struct crew_member *member, void **objects, double spent[3], bool global)
{
    unsigned extension = (unsigned)member->request->extension;
    uint64_t at[4];
    int errors = 0;

    at[0] = cycles();
    for (uint64_t i = 0; i < member->objects; i++)
        objects[i] = member->request->plain ? prudence_malloc(member->request->size)
                                            : scm_malloc(member->request->size);
    at[1] = cycles();
    if (global)
        for (uint64_t i = 0; i < member->objects; i++)
            errors |= scm_global_refresh(objects[i], extension);
    else
        for (uint64_t i = 0; i < member->objects; i++)
            errors |= scm_refresh(objects[i], extension);
    at[2] = cycles();
    errors |= global ? scm_global_tick() : scm_tick();
    at[3] = cycles();
    if (errors)
        die("out of memory");
    for (unsigned i = 0; i < 3; i++)
        spent[i] = (double)(at[i + 1] - at[i]);
}

static void refresh_all(const struct crew_member *member, void **objects)
{
    unsigned extension = (unsigned)member->request->extension;
    int errors = 0;

    for (uint64_t i = 0; i < member->objects; i++)
        errors |= scm_refresh(objects[i], extension);
    if (errors)
        die("out of memory");
}

/* Objects that live through all rounds, refreshed twice at each tick. A sample is of ROUNDS
 * rounds, because the work that refreshes leave to calls after a tick may come every few ticks
 * only. */
static void keep_alive(const struct crew_member *member, void **objects, double reading)
{
    enum { ROUNDS = 24 };
    uint64_t warm_up = WARM_UP + member->request->extension, samples = 0;
    double each = (double)member->objects, kept = 0, again = 0;

    for (uint64_t i = 0; i < member->objects; i++)
        objects[i] = prudence_malloc(member->request->size);
    for (uint64_t round = 0; samples < member->request->rounds; round++) {
        uint64_t at[4];

        at[0] = cycles();
        refresh_all(member, objects);
        at[1] = cycles();
        refresh_all(member, objects);
        at[2] = cycles();
        scm_tick();
        at[3] = cycles();
        if (round < warm_up)
            continue;
        kept += ((double)(at[1] - at[0]) + (double)(at[3] - at[2]) - 2 * reading) / each;
        again += ((double)(at[2] - at[1]) - reading) / each;
        if ((round - warm_up) % ROUNDS != ROUNDS - 1)
            continue;
        for (unsigned i = 0; i < ROUNDS && samples < member->request->rounds; i++, samples++) {
            member->samples[KEEP_ALIVE][samples] = kept / ROUNDS;
            member->samples[REDUNDANT][samples] = again / ROUNDS;
        }
        kept = again = 0;
    }
    for (uint64_t i = 0; i <= member->request->extension; i++)
        scm_tick();
    scm_collect();
}

static void *crew_main(void *argument)
{
    struct crew_member *member = argument;
    void **objects = calloc(member->objects, sizeof *objects);
    uint64_t warm_up = WARM_UP + member->request->extension;
    double each = (double)member->objects, reading = reading_cost();

    if (!objects)
        die("out of memory");
    scm_register_thread();
    pthread_barrier_wait(member->begin);
    for (unsigned global = 0; global < 2; global++) {
        for (uint64_t round = 0; round < warm_up + member->request->rounds; round++) {
            double spent[3];

            go_round(member, objects, spent, global);
            if (round < warm_up)
                continue;
            if (!global)
                member->samples[ALLOCATE][round - warm_up] = (spent[0] - reading) / each;
            member->samples[global ? GLOBAL_REFRESH : REFRESH][round - warm_up] =
                (spent[1] - reading) / each;
            member->samples[global ? GLOBAL_TICK : TICK][round - warm_up] = spent[2] - reading;
        }
        pthread_barrier_wait(member->begin);
    }
    scm_collect();
    keep_alive(member, objects, reading);
    free(objects);
    return NULL;
}

/* Stores medians of all threads' samples in `results`. */
static void run(const struct scm_request *request, unsigned threads, uint64_t objects,
                double results[TIMED])
{
    struct crew_member *crew = calloc(threads, sizeof *crew);
    size_t count = (size_t)threads * request->rounds;
    pthread_barrier_t begin;
    double *samples[TIMED];

    if (!crew)
        die("out of memory");
    pthread_barrier_init(&begin, NULL, threads);
    for (unsigned timed = 0; timed < TIMED; timed++) {
        samples[timed] = calloc(count, sizeof *samples[timed]);
        if (!samples[timed])
            die("out of memory");
    }
    for (unsigned i = 0; i < threads; i++) {
        crew[i] = (struct crew_member){.request = request, .begin = &begin, .objects = objects};
        for (unsigned timed = 0; timed < TIMED; timed++)
            crew[i].samples[timed] = samples[timed] + i * request->rounds;
        if (pthread_create(&crew[i].thread, NULL, crew_main, &crew[i]))
            die("cannot create the threads");
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(crew[i].thread, NULL);
    for (unsigned timed = 0; timed < TIMED; timed++) {
        results[timed] = numbers_median(samples[timed], count);
        free(samples[timed]);
    }
    pthread_barrier_destroy(&begin);
    free(crew);
}

/* Returns the bytes in addition to an object with a date, or without one. */
static double overhead(uint64_t size, bool short_term)
{
    enum { OBJECTS = 100000 };
    struct scm_mem_info before, after;
    void **objects = calloc(OBJECTS, sizeof *objects);

    if (!objects)
        die("out of memory");
    scm_get_mem_info(&before);
    for (unsigned i = 0; i < OBJECTS; i++) {
        objects[i] = scm_malloc(size);
        if (short_term && scm_refresh(objects[i], 0))
            die("out of memory");
    }
    scm_get_mem_info(&after);
    for (unsigned i = 0; i < OBJECTS && !short_term; i++)
        scm_free(objects[i]);
    scm_register_thread(); /* as it does after a refresh */
    scm_tick();
    scm_collect();
    scm_unregister_thread(); /* global time does not wait for this thread */
    free(objects);
    return (double)(after.overhead - before.overhead) / OBJECTS;
}

static void report(json_t *rows, const char *collection, unsigned threads, uint64_t objects,
                   const double results[TIMED])
{
    json_t *row = json_pack("{s:s, s:I, s:I}", "collection", collection, "threads",
                            (json_int_t)threads, "objects", (json_int_t)objects);

    printf("%-10s %7u %8llu", collection, threads, (unsigned long long)objects);
    for (unsigned timed = 0; timed < TIMED; timed++) {
        printf(" %14.1f", results[timed]);
        json_object_set_new(row, timed_names[timed], json_real(results[timed]));
    }
    putchar('\n');
    fflush(stdout);
    json_array_append_new(rows, row);
}

static const char *strategy_name(unsigned strategy)
{
    static const char *const names[] = {"lazy", "eager", NULL};

    return names[strategy];
}

static void run_all(const struct scm_request *request, json_t *rows)
{
    printf("%-10s %7s %8s", "collection", "threads", "objects");
    for (unsigned timed = 0; timed < TIMED; timed++)
        printf(" %14s", timed_names[timed]);
    putchar('\n');
    for (unsigned i = 0; strategy_name(i); i++) {
        if (request->collection && strcmp(request->collection, strategy_name(i)) != 0)
            continue;
        prudence_option_set("scm_collection", strategy_name(i));
        for (unsigned j = 0; j < request->threads.count * request->objects.count; j++) {
            unsigned threads = (unsigned)request->threads.value[j / request->objects.count];
            uint64_t objects = request->objects.value[j % request->objects.count];
            double results[TIMED];

            run(request, threads, objects, results);
            report(rows, strategy_name(i), threads, objects, results);
        }
    }
}

/* Runs bursts in one thread, with the requested strategy, otherwise lazily. */
static void run_bursts(const struct scm_request *request, json_t *document)
{
    double results[BURST_WAYS];
    json_t *bursts = json_object();

    prudence_option_set("scm_collection", request->collection ? request->collection : "lazy");
    if (!scm_bursts(request->rounds, results))
        die("out of memory");
    printf("\nbursts of %d objects, cycles an object:", BURST_OBJECTS);
    for (unsigned way = 0; way < BURST_WAYS; way++) {
        printf(" %s %.1f%s", scm_burst_ways[way], results[way], way + 1 < BURST_WAYS ? "," : "\n");
        json_object_set_new(bursts, scm_burst_ways[way], json_real(results[way]));
    }
    json_object_set_new(document, "bursts", bursts);
}

/* ----------------------------------------------------------------------------- the command line */

static const struct argp_option options[] = {
    {"threads", 't', "N,...", 0, "Threads", 0},
    {"objects", 'o', "N,...", 0, "Objects that a thread refreshes between two ticks", 0},
    {"size", 's', "BYTES", 0, "Size of the objects", 0},
    {"extension", 'e', "N", 0, "Expiration extension of each", 0},
    {"rounds", 'n', "N", 0, "Ticks of each thread and clock", 0},
    {"collection", 'c', "lazy|eager", 0, "The strategy to measure (both)", 0},
    {"plain", 'p', NULL, 0,
     "Allocate by prudence_malloc, as a program that was moved over does: then refreshes free "
     "objects that "
     "have expired, not allocations",
     0},
    {"json", 'j', "FILE", 0, "Write the results to FILE", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct scm_request *request = state->input;

    switch (key) {
    case 't':
        request->threads = argument_numbers(state, key, text, 1, MAX_BENCH_THREADS);
        break;
    case 'o':
        request->objects = argument_numbers(state, key, text, 1, 1 << 24);
        break;
    case 's':
        request->size = argument_number(state, key, text, 1, 1 << 30);
        break;
    case 'e':
        request->extension = argument_number(state, key, text, 0, 4095);
        break;
    case 'n':
        request->rounds = argument_number(state, key, text, 1, 1 << 24);
        break;
    case 'c':
        request->collection = strategy_name(argument_name(state, key, text, strategy_name));
        break;
    case 'p':
        request->plain = true;
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

int scm_bench(int argc, char **argv)
{
    static const struct argp argp = {
        options, parse, NULL, "Cycles of each call of short-term memory (medians), and bytes.",
        NULL,    NULL,  NULL};
    static char name[] = "prudence-bench scm";
    struct scm_request request = {.threads = {.value = {1, 2}, .count = 2},
                                  .objects = {.value = {100, 1000, 10000}, .count = 3},
                                  .size = 64,
                                  .rounds = 1000,
                                  .extension = 2};
    json_t *document;
    double persistent, short_term;

    argv[0] = name;
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    persistent = overhead(request.size, false);
    short_term = overhead(request.size, true);
    document = document_begin(name);
    json_object_update_new(document,
                           json_pack("{s:s, s:f, s:f, s:[]}", "version", prudence_version(),
                                     "overhead_persistent", persistent, "overhead_short_term",
                                     short_term, "rows"));
    run_all(&request, json_object_get(document, "rows"));
    run_bursts(&request, document);
    printf("\nbytes per object of %llu, without the object: persistent %.2f, with one date %.2f\n",
           (unsigned long long)request.size, persistent, short_term);
    if (request.json && document_write(document, request.json))
        return EXIT_FAILURE;
    json_decref(document);
    return EXIT_SUCCESS;
}
