/* SPDX-License-Identifier: MIT */
/*
 * prudence-variants: compares grace periods, ours, liburcu's, and the historical ones.
 *
 * Each run is a separate child process; the repeats of all rows are interleaved, so that a slow
 * minute of the machine affects all alike, and medians are reported.
 */
#define _GNU_SOURCE
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <prudence/prudence.h>

#include "arguments.h"
#include "document.h"
#include "loads.h"
#include "repeats.h"
#include "statistics.h"

#define ROWS_MAX    512
#define REPEATS_MAX 100
#define PATIENCE                                                                                   \
    (SAMPLES_SECONDS + 60) /* seconds beyond those measured, until a run counts as hanging */
#define SAMPLES_MAX 1000000

struct request {
    struct numbers variants, loads; /* indices */
    struct numbers workers, readers, batches, rates;
    double seconds;
    uint64_t repeat, samples;
    const char *json;
    bool list;
};

static const struct argp_option options[] = {
    {"variant", 'v', "NAME,...", 0, "The variants to measure (see --list)", 0},
    {"flavour", 0, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 0}, /* name in older revisions */
    {"load", 'l', "NAME,...", 0, "Their loads (see --list)", 0},
    {"workers", 'w', "N,...", 0, "Places that are measured", 0},
    {"readers", 'r', "N,...", 0, "Places that read while the workers run", 0},
    {"batch", 'b', "N,...", 0, "Objects that the load update frees together", 0},
    {"rate", 'C', "N,...", 0, "Calls a second of each worker, of the load paced", 0},
    {"seconds", 'T', "SECONDS", 0, "Length of a run", 0},
    {"samples", 's', "N", 0,
     "Runs of the loads synchronize, call and poll go on until they have N latencies, at most a "
     "minute longer",
     0},
    {"repeat", 'R', "N", 0, "Runs of each row, interleaved; medians are shown", 0},
    {"json", 'j', "FILE", 0, "Write all results to FILE", 0},
    {"list", 'i', NULL, 0, "List variants and loads, and end", 0},
    {0},
};

#define ALL 0 /* of the names of variants */

static const char *variant_name(unsigned index)
{
    const struct variant *variant = index == ALL ? NULL : variants[index - 1];

    return index == ALL ? "all" : variant ? variant->name : NULL;
}

static const char *load_name(unsigned index)
{
    return loads[index].name;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct request *request = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        request->loads = argument_names(state, 'l', "read,switch,synchronize,call", load_name);
        break;
    case 'v':
        request->variants = argument_names(state, key, text, variant_name);
        break;
    case 'l':
        request->loads = argument_names(state, key, text, load_name);
        break;
    case 'w':
        request->workers = argument_numbers(state, key, text, 1, PLACES_MAX / 2);
        break;
    case 'r':
        request->readers = argument_numbers(state, key, text, 0, PLACES_MAX / 2);
        break;
    case 'b':
        request->batches = argument_numbers(state, key, text, 1, 1 << 22);
        break;
    case 'C':
        request->rates = argument_numbers(state, key, text, 1, 100000000);
        break;
    case 'T':
        request->seconds = argument_real(state, key, text, 86400);
        break;
    case 's':
        request->samples = argument_number(state, key, text, 0, SAMPLES_MAX);
        break;
    case 'R':
        request->repeat = argument_number(state, key, text, 1, REPEATS_MAX);
        break;
    case 'j':
        request->json = text;
        break;
    case 'i':
        request->list = true;
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected '%s'", text);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static bool is_among(const struct numbers *indices, unsigned index)
{
    for (unsigned i = 0; i < indices->count; i++) {
        if (indices->value[i] == index)
            return true;
    }
    return false;
}

static void list(void)
{
    for (unsigned i = 0; variants[i]; i++)
        printf("%-16s%s%s\n", variants[i]->name, variants[i]->historical ? "historical: " : "",
               variants[i]->origin);
    putchar('\n');
    for (const struct load *load = loads; load->name; load++)
        printf("%-16s%s\n", load->name, load->what);
}

/* ------------------------------------------------------------------------------------- the rows */

static struct row rows[ROWS_MAX];
static json_t *results[ROWS_MAX][REPEATS_MAX];
static unsigned row_count;

static bool is_possible(const struct row *row)
{
    if (row->variant == &variant_none && row->readers)
        return false;
    if (row->variant->places_max && row->workers + row->readers > row->variant->places_max)
        return false;
    return !row->load->possible || row->load->possible(row->variant);
}

static void add_row(const struct row *row)
{
    if (!is_possible(row))
        return;
    if (row_count == ROWS_MAX) {
        fprintf(stderr, "prudence-variants: more than %d rows\n", ROWS_MAX);
        exit(EXIT_FAILURE);
    }
    rows[row_count++] = *row;
}

static void add_rows(const struct request *request, const struct load *load,
                     const struct variant *variant)
{
    static const struct numbers once = {.value = {0}, .count = 1};
    const struct numbers *batches = load->batches ? &request->batches : &once;
    const struct numbers *rates = load->rates ? &request->rates : &once;

    for (unsigned w = 0; w < request->workers.count; w++)
        for (unsigned r = 0; r < request->readers.count; r++)
            for (unsigned b = 0; b < batches->count; b++)
                for (unsigned c = 0; c < rates->count; c++)
                    add_row(&(struct row){load, variant, (unsigned)request->readers.value[r],
                                          (unsigned)request->workers.value[w],
                                          (unsigned)batches->value[b], (unsigned)rates->value[c],
                                          (unsigned)request->samples, request->seconds});
}

static void make_rows(const struct request *request)
{
    for (unsigned load = 0; loads[load].name; load++) {
        if (!is_among(&request->loads, load))
            continue;
        for (unsigned i = 0; variants[i]; i++)
            if (is_among(&request->variants, i + 1) || is_among(&request->variants, ALL))
                add_rows(request, &loads[load], variants[i]);
    }
}

static json_t *run(const void *of)
{
    const struct row *row = of;

    return row->load->run(row);
}

/* Returns the median of the repeats' values under `key`, in `inner` if that is given; 0 if there
 * are none. */
static double median(unsigned row, unsigned repeat, const char *inner, const char *key)
{
    double values[REPEATS_MAX];

    return numbers_median(values, repeats_values(results[row], repeat, inner, key, values));
}

static unsigned measure(unsigned repeat)
{
    unsigned failed = 0;

    for (unsigned i = 0; i < repeat; i++)
        for (unsigned row = 0; row < row_count; row++) {
            results[row][i] = run_in_child(run, &rows[row], (unsigned)rows[row].seconds + PATIENCE);
            if (!json_object_get(results[row][i], "failed"))
                continue;
            failed++;
            fprintf(stderr, "prudence-variants: %s %s: %s\n", rows[row].load->name,
                    rows[row].variant->name,
                    json_string_value(json_object_get(results[row][i], "failed")));
        }
    return failed;
}

static void print_row(unsigned index, unsigned repeat)
{
    const struct row *row = &rows[index];

    printf("%-12s %-14s %7u %7u %7u %12.1f %12.1f %12.1f %9.1f", row->load->name,
           row->variant->name, row->workers, row->readers,
           row->load->rates ? row->rate : row->batch, median(index, repeat, NULL, "ns"),
           median(index, repeat, NULL, "worker_cpu_ns"), median(index, repeat, NULL, "cpu_ns"),
           median(index, repeat, NULL, "peak_rss_bytes") / 1e6);
    if (median(index, repeat, "latency_ns", "p50") > 0)
        printf("  us: p50 %.1f p99 %.1f", median(index, repeat, "latency_ns", "p50") / 1e3,
               median(index, repeat, "latency_ns", "p99") / 1e3);
    if (row->load->rates)
        printf("  cost %.0f ns", median(index, repeat, NULL, "cost_ns"));
    putchar('\n');
}

/* Adds the figures that only some loads have. */
static void add_medians(json_t *json, unsigned index, unsigned repeat)
{
    static const char *const keys[] = {"cost_ns", "calls_per_second", "waiting_max",
                                       "sleeps_per_second"};

    for (unsigned i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (json_object_get(results[index][0], keys[i]))
            json_object_set_new(json, keys[i], json_real(median(index, repeat, NULL, keys[i])));
}

static json_t *row_to_json(unsigned index, unsigned repeat)
{
    const struct row *row = &rows[index];
    json_t *json = json_pack(
        "{s:s, s:s, s:b, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:[]}", "load",
        row->load->name, "variant", row->variant->name, "historical", row->variant->historical,
        "workers", row->workers, "readers", row->readers, "batch", row->batch, "rate", row->rate,
        "seconds", row->seconds, "ns", median(index, repeat, NULL, "ns"), "worker_cpu_ns",
        median(index, repeat, NULL, "worker_cpu_ns"), "cpu_ns",
        median(index, repeat, NULL, "cpu_ns"), "peak_rss_bytes",
        median(index, repeat, NULL, "peak_rss_bytes"), "p50_ns",
        median(index, repeat, "latency_ns", "p50"), "p99_ns",
        median(index, repeat, "latency_ns", "p99"), "repeats");

    add_medians(json, index, repeat);
    for (unsigned i = 0; i < repeat; i++)
        json_array_append(json_object_get(json, "repeats"), results[index][i]);
    return json;
}

static int write_json(const char *path, unsigned repeat)
{
    json_t *document = document_begin("prudence-variants");
    int failed;

    json_object_update_new(document, json_pack("{s:s, s:s, s:[]}", "prudence", prudence_version(),
                                               "liburcu", LIBURCU_VERSION, "rows"));
    for (unsigned row = 0; row < row_count; row++)
        json_array_append_new(json_object_get(document, "rows"), row_to_json(row, repeat));
    failed = document_write(document, path);
    json_decref(document);
    return failed;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .doc = "Compare grace periods: Prudence's, liburcu's, and the historical ones.",
    };
    struct request request = {
        .variants = {.value = {ALL}, .count = 1},
        .workers = {.value = {1}, .count = 1},
        .readers = {.value = {0, 1}, .count = 2},
        .batches = {.value = {1, 64, 4096, 262144}, .count = 4},
        .rates = {.value = {1000, 10000, 100000, 1000000}, .count = 4},
        .seconds = 0.3,
        .repeat = 1,
    };
    unsigned failed;

    argp_parse(&argp, argc, argv, 0, NULL, &request);
    if (request.list) {
        list();
        return EXIT_SUCCESS;
    }
    make_rows(&request);
    printf("%-12s %-14s %7s %7s %7s %12s %12s %12s %9s\n", "load", "variant", "workers", "readers",
           "b./rate", "ns", "worker's cpu", "all cpu ns", "peak MB");
    failed = measure((unsigned)request.repeat);
    for (unsigned row = 0; row < row_count; row++)
        print_row(row, (unsigned)request.repeat);
    if (request.json && write_json(request.json, (unsigned)request.repeat))
        return EXIT_FAILURE;
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
