/* SPDX-License-Identifier: MIT */
/*
 * prudence-bench caches: the cost of a pair, and the memory in use, with many caches that are
 * used in random order, as in a program with one cache for each connection or table.
 *
 * Each row is a process of its own. It makes the caches, allocates the live objects of each, then
 * replaces live objects of random caches: a pair is an allocation and a deferred free (`deferred`)
 * or a free (`freed`) of the cache's oldest object. Rounds of the two alternate, after one of each
 * that does not count. The columns are CPU time a pair, medians over the rounds; resident bytes of
 * the process; and those that a cache took when it was made, and now with its objects.
 */
#include "caches.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "arguments.h"
#include "document.h"
#include "measure.h"
#include "random.h"
#include "statistics.h"

#define MAX_BYTES  32768
#define MAX_CACHES 1000000
#define MAX_LIVE   1024
#define MAX_ROUNDS 1000

struct request {
    struct numbers caches, sizes;
    uint64_t live, pairs, rounds;
    const char *json;
};

struct figures {
    double deferred_ns, freed_ns;
    double resident, made, used; /* bytes; the last two a cache */
};

/* The measurements of one process. */
struct bench {
    uint64_t count, live, random;
    struct prudence_cache **caches;
    void **objects; /* `live` of each cache */
    size_t size;
};

static void die(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

/* Allocates an object and writes to it, as a program would. */
static void *take(const struct bench *bench, uint64_t cache)
{
    char *object = prudence_cache_alloc(bench->caches[cache]);

    if (!object)
        die("prudence_cache_alloc");
    object[0] = (char)cache;
    return object;
}

static void make_caches(struct bench *bench)
{
    for (uint64_t i = 0; i < bench->count; i++) {
        char name[32];

        snprintf(name, sizeof name, "cache-%llu", (unsigned long long)i);
        bench->caches[i] = prudence_cache_create(name, bench->size, NULL);
        if (!bench->caches[i])
            die("prudence_cache_create");
    }
}

static void fill(const struct bench *bench)
{
    for (uint64_t i = 0; i < bench->count * bench->live; i++)
        bench->objects[i] = take(bench, i / bench->live);
}

/* Returns the nanoseconds of a pair. */
static double replace(struct bench *bench, uint64_t pairs, bool deferred)
{
    uint64_t began = process_cpu_ns();

    for (uint64_t i = 0; i < pairs; i++) {
        uint64_t at = below(next_random(&bench->random), bench->count * bench->live);
        struct prudence_cache *cache = bench->caches[at / bench->live];
        void *old = bench->objects[at];

        bench->objects[at] = take(bench, at / bench->live);
        if (deferred)
            prudence_cache_free_deferred(cache, old);
        else
            prudence_cache_free(cache, old);
    }
    return (double)(process_cpu_ns() - began) / (double)pairs;
}

static struct figures measure(const struct request *request, uint64_t count, size_t size)
{
    struct bench bench = {.count = count, .live = request->live, .random = 88172645463325252U};
    double deferred[MAX_ROUNDS], freed[MAX_ROUNDS];
    double before, made;

    bench.size = size;
    bench.caches = calloc(count, sizeof(struct prudence_cache *));
    bench.objects = calloc(count * request->live, sizeof(void *));
    if (!bench.caches || !bench.objects)
        die("prudence-bench caches");
    before = (double)resident_bytes();
    make_caches(&bench);
    made = (double)resident_bytes();
    fill(&bench);
    replace(&bench, request->pairs, true);
    replace(&bench, request->pairs, false);
    for (uint64_t i = 0; i < request->rounds; i++) {
        deferred[i] = replace(&bench, request->pairs, true);
        freed[i] = replace(&bench, request->pairs, false);
    }
    return (struct figures){
        .deferred_ns = numbers_median(deferred, request->rounds),
        .freed_ns = numbers_median(freed, request->rounds),
        .resident = (double)resident_bytes(),
        .made = (made - before) / (double)count,
        .used = ((double)resident_bytes() - before) / (double)count,
    };
}

/* Measures in a child, so that no row meets the memory of the one before. Returns false if the
 * child failed. */
static bool measure_apart(const struct request *request, uint64_t count, size_t size,
                          struct figures *figures)
{
    int ends[2], status = 0;
    bool told;
    pid_t child;

    if (pipe(ends))
        die("pipe");
    child = fork();
    if (child < 0)
        die("fork");
    if (!child) {
        *figures = measure(request, count, size);
        _exit(write(ends[1], figures, sizeof *figures) == sizeof *figures ? EXIT_SUCCESS
                                                                          : EXIT_FAILURE);
    }
    close(ends[1]);
    told = read(ends[0], figures, sizeof *figures) == sizeof *figures;
    close(ends[0]);
    return waitpid(child, &status, 0) == child && told && status == 0;
}

static json_t *row_of(uint64_t count, size_t size, const struct figures *figures)
{
    printf("%8llu %6zu %12.1f %9.1f %14.1f %12.0f %12.0f\n", (unsigned long long)count, size,
           figures->deferred_ns, figures->freed_ns, figures->resident / 1048576, figures->made,
           figures->used);
    fflush(stdout);
    return json_pack("{s:I, s:I, s:f, s:f, s:f, s:f, s:f}", "caches", (json_int_t)count, "size",
                     (json_int_t)size, "deferred_ns", figures->deferred_ns, "freed_ns",
                     figures->freed_ns, "resident", figures->resident, "bytes_made", figures->made,
                     "bytes_used", figures->used);
}

/* ----------------------------------------------------------------------------- the command line */

static const struct argp_option options[] = {
    {"caches", 'c', "COUNT,...", 0, "Numbers of caches (1,100,1000,10000)", 0},
    {"size", 's', "BYTES,...", 0, "Sizes of the objects (64)", 0},
    {"live", 'l', "COUNT", 0, "Live objects of each cache (1)", 0},
    {"pairs", 'p', "COUNT", 0, "Pairs of a round (200000)", 0},
    {"rounds", 'n', "COUNT", 0, "Rounds of each row (5)", 0},
    {"json", 'j', "FILE", 0, "Write the results to FILE", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct request *request = state->input;

    switch (key) {
    case 'c':
        request->caches = argument_numbers(state, key, text, 1, MAX_CACHES);
        break;
    case 's':
        request->sizes = argument_numbers(state, key, text, 1, MAX_BYTES);
        break;
    case 'l':
        request->live = argument_number(state, key, text, 1, MAX_LIVE);
        break;
    case 'p':
        request->pairs = argument_number(state, key, text, 1, UINT32_MAX);
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

int caches_bench(int argc, char **argv)
{
    static const struct argp argp = {
        options, parse, NULL, "Cost of a pair, and memory, with many caches in random order.",
        NULL,    NULL,  NULL};
    static char name[] = "prudence-bench caches";
    struct request request = {.caches = {{1, 100, 1000, 10000}, 4},
                              .sizes = {{64}, 1},
                              .live = 1,
                              .pairs = 200000,
                              .rounds = 5};
    json_t *document, *rows = json_array();

    argv[0] = name;
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    document = document_begin(name);
    printf("%8s %6s %12s %9s %14s %12s %12s\n", "caches", "size", "deferred ns", "freed ns",
           "resident MiB", "B made", "B used");
    for (unsigned i = 0; i < request.sizes.count; i++)
        for (unsigned j = 0; j < request.caches.count; j++) {
            size_t size = request.sizes.value[i];
            uint64_t count = request.caches.value[j];
            struct figures figures;

            if (!measure_apart(&request, count, size, &figures))
                return EXIT_FAILURE;
            json_array_append_new(rows, row_of(count, size, &figures));
        }
    json_object_set_new(document, "version", json_string(prudence_version()));
    json_object_set_new(document, "rows", rows);
    if (request.json && document_write(document, request.json))
        return EXIT_FAILURE;
    json_decref(document);
    return EXIT_SUCCESS;
}
