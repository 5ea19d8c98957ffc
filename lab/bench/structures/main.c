/* SPDX-License-Identifier: MIT */
/*
 * prudence-structures: our tables and maps compared with those of liburcu, Concurrency Kit, libcds,
 * TBB and DPDK, and those with locks.
 *
 * Each run is a separate child process, which fills its table before the measurement. The repeats
 * of all rows are interleaved, so that a slow minute of the machine affects all alike, and medians
 * are reported.
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
#include "measure.h"
#include "others.h"
#include "repeats.h"
#include "run.h"
#include "statistics.h"

#define ROWS_MAX    1024
#define REPEATS_MAX 100
#define PATIENCE    300 /* seconds beyond the measured ones after which a run counts as hanging */

struct request {
    struct numbers subjects; /* their indices in the table */
    struct numbers sizes, updates, threads, hits, writers, walks;
    struct numbers keys, draws; /* 0 numbers, 1 strings; 0 uniform, 1 Zipf */
    double seconds;
    uint64_t repeat;
    const char *json;
    bool list;
};

static const struct argp_option options[] = {
    {"subject", 's', "NAME,...", 0, "The structures to measure (see --list)", 0},
    {"family", 'f', "NAME", 0,
     "All subjects that are hash, ids, counters, versions, rename, routes, routes-many, routes6 or "
     "map",
     0},
    {"size", 'n', "N,...", 0, "Objects in the table", 0},
    {"updates", 'u', "PERCENT,...", 0, "Share of updates among the operations", 0},
    {"threads", 't', "N,...", 0, "Threads that do the same", 0},
    {"writers", 'w', "N,...", 0, "Threads more, 0 or 1, that only update, and are counted apart",
     0},
    {"hits", 'h', "PERCENT,...", 0,
     "Percentage of lookups that find an object; for routes, of addresses drawn from the prefixes",
     0},
    {"keys", 'e', "KIND,...", 0, "numbers, or strings like paths of URLs, 16 to 60 bytes", 0},
    {"draw", 'd', "LAW,...", 0, "Keys come uniformly, or by Zipf's law: uniform, zipf", 0},
    {"walk", 'k', "N,...", 0, "Walk N objects in place of a lookup; 0 means lookups (map, std-map)",
     0},
    {"seconds", 'T', "SECONDS", 0, "Length of a run", 0},
    {"repeat", 'R', "N", 0, "Runs of each row, interleaved; medians are shown", 0},
    {"json", 'j', "FILE", 0, "Write all results to FILE", 0},
    {"list", 'i', NULL, 0, "List subjects, and end", 0},
    {0},
};

static const char *key_kind(unsigned index)
{
    static const char *const kinds[] = {"numbers", "strings", NULL};

    return kinds[index];
}

static const char *draw_law(unsigned index)
{
    static const char *const laws[] = {"uniform", "zipf", NULL};

    return laws[index];
}

static struct numbers family_subjects(const char *family)
{
    struct numbers subjects = {.count = 0};

    for (unsigned i = 0; subject_entry(i) && subjects.count < NUMBERS; i++)
        if (!strcmp(subject_entry(i)->family, family))
            subjects.value[subjects.count++] = i;
    return subjects;
}

static error_t parse_subjects(int key, char *text, struct argp_state *state)
{
    struct request *request = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        request->subjects = argument_names(state, 's', "prudence,rculfhash,ck_ht", subject_name);
        break;
    case 's':
        request->subjects = argument_names(state, key, text, subject_name);
        break;
    case 'f':
        request->subjects =
            family_subjects(subject_family(argument_name(state, key, text, subject_family)));
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static error_t parse_load(int key, char *text, struct argp_state *state)
{
    struct request *request = state->input;

    switch (key) {
    case 'w':
        request->writers = argument_numbers(state, key, text, 0, 1);
        break;
    case 'k':
        request->walks = argument_numbers(state, key, text, 0, 1000000);
        break;
    case 'n':
        request->sizes = argument_numbers(state, key, text, 64, UINT64_C(1) << 28);
        break;
    case 'u':
        request->updates = argument_numbers(state, key, text, 0, 100);
        break;
    case 't':
        request->threads = argument_numbers(state, key, text, 1, THREADS_MAX);
        break;
    case 'h':
        request->hits = argument_numbers(state, key, text, 0, 100);
        break;
    case 'e':
        request->keys = argument_names(state, key, text, key_kind);
        break;
    case 'd':
        request->draws = argument_names(state, key, text, draw_law);
        break;
    default:
        return parse_subjects(key, text, state);
    }
    return 0;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct request *request = state->input;

    switch (key) {
    case 'T':
        request->seconds = argument_real(state, key, text, 86400);
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
        return parse_load(key, text, state);
    }
    return 0;
}

/* ----------------------------------------------------------------------------------------- rows */

static struct row rows[ROWS_MAX];
static json_t *results[ROWS_MAX][REPEATS_MAX];
static unsigned row_count;

/* Returns whether the subject supports the row's request. */
static bool makes_sense(const struct row *row)
{
    const struct subject_entry *entry = row->entry;

    return (subject_updates(entry) || !(row->updates || row->writers)) &&
           (subject_walks(entry) || !row->walk) && (subject_draws(entry) || !row->zipf) &&
           (!row->strings || (entry->strings && !row->walk));
}

static void add_row(const struct row *row)
{
    if (!makes_sense(row))
        return;
    if (row_count == ROWS_MAX) {
        fprintf(stderr, "prudence-structures: more than %d rows\n", ROWS_MAX);
        exit(EXIT_FAILURE);
    }
    rows[row_count++] = *row;
}

static void make_rows_of(const struct request *request, struct row row)
{
    for (unsigned w = 0; w < request->writers.count; w++)
        for (unsigned k = 0; k < request->walks.count; k++)
            for (unsigned s = 0; s < request->subjects.count; s++) {
                row.writers = (unsigned)request->writers.value[w];
                row.walk = (unsigned)request->walks.value[k];
                row.entry = subject_entry((unsigned)request->subjects.value[s]);
                add_row(&row);
            }
}

static void make_rows_of_load(const struct request *request, struct row row)
{
    for (unsigned t = 0; t < request->threads.count; t++)
        for (unsigned n = 0; n < request->sizes.count; n++)
            for (unsigned u = 0; u < request->updates.count; u++)
                for (unsigned h = 0; h < request->hits.count; h++) {
                    row.size = request->sizes.value[n];
                    row.updates = (unsigned)request->updates.value[u];
                    row.threads = (unsigned)request->threads.value[t];
                    row.hits = (unsigned)request->hits.value[h];
                    make_rows_of(request, row);
                }
}

static void make_rows(const struct request *request)
{
    for (unsigned e = 0; e < request->keys.count; e++)
        for (unsigned d = 0; d < request->draws.count; d++)
            make_rows_of_load(request, (struct row){.strings = request->keys.value[e],
                                                    .zipf = request->draws.value[d],
                                                    .seconds = request->seconds});
}

/* ------------------------------------------------------------------------------------ measuring */

/* Prints a line that is overwritten, on a terminal; elsewhere a line at each tenth. */
static void show_progress(unsigned done, unsigned total, uint64_t begun)
{
    const double passed = (double)(now_ns() - begun) * 1e-9;
    const double left = done ? passed / done * (total - done) : 0;
    const bool terminal = isatty(STDERR_FILENO);

    if (terminal)
        fprintf(stderr, "\r\033[K");
    else if (done * 10 / total == (done ? (done - 1) * 10 / total : 0))
        return;
    if (done < total)
        fprintf(stderr, "%u of %u runs, %.0f s passed, about %.0f s to go%s", done, total, passed,
                left, terminal ? "" : "\n");
}

static bool measure_row(unsigned row, unsigned repeat)
{
    const char *why;

    results[row][repeat] =
        run_in_child(row_run, &rows[row], (unsigned)rows[row].seconds + PATIENCE);
    why = json_string_value(json_object_get(results[row][repeat], "failed"));
    if (why)
        fprintf(stderr, "prudence-structures: %s: %s\n", rows[row].entry->numbers->name, why);
    return !why;
}

static unsigned measure(const struct request *request)
{
    const unsigned total = (unsigned)request->repeat * row_count;
    const uint64_t begun = now_ns();
    unsigned failed = 0;

    for (unsigned i = 0; i < total; i++) {
        show_progress(i, total, begun);
        failed += !measure_row(i % row_count, i / row_count);
    }
    show_progress(total, total, begun);
    return failed;
}

/* -------------------------------------------------------------------------------------- results */

/* Returns a quantile of the repeats' values under `key`, in the object `inner` if that is given. */
static double quantile(unsigned row, const struct request *request, const char *inner,
                       const char *key, double share)
{
    double values[REPEATS_MAX];
    unsigned count = repeats_values(results[row], (unsigned)request->repeat, inner, key, values);

    return numbers_quantile(values, count, share);
}

/* Prints "-" if no repeat has the value. */
static void print_quantile(unsigned row, const struct request *request, const char *inner,
                           const char *key, double share)
{
    const double value = quantile(row, request, inner, key, share);

    if (value > 0)
        printf(" %9.1f", value);
    else
        printf(" %9s", "-");
}

/* Prints why a repeat has no figures. */
static void print_refusal(unsigned row, const struct request *request)
{
    const char *why = NULL;

    for (unsigned i = 0; i < request->repeat && !why; i++)
        why = json_string_value(json_object_get(results[row][i], "not_measured"));
    if (why)
        printf("  not measured: %s", why);
}

static void print_row(unsigned row, const struct request *request)
{
    printf("%-13s %9llu %8u %5u %5u %8u %-7s %-7s", rows[row].entry->numbers->name,
           (unsigned long long)rows[row].size, rows[row].updates, rows[row].hits, rows[row].walk,
           rows[row].threads, key_kind(rows[row].strings), draw_law(rows[row].zipf));
    print_quantile(row, request, NULL, "ns", 0.5);
    print_quantile(row, request, NULL, "ns", 0.25);
    print_quantile(row, request, NULL, "ns", 0.75);
    print_quantile(row, request, NULL, "cpu_ns", 0.5);
    print_quantile(row, request, NULL, "bytes_per_object", 0.5);
    print_quantile(row, request, NULL, "peak_bytes_per_object", 0.5);
    print_quantile(row, request, "lookups", "p99_9_ns", 0.5);
    print_quantile(row, request, "updates", "p99_9_ns", 0.5);
    print_quantile(row, request, NULL, "writer_per_second", 0.5);
    print_refusal(row, request);
    printf("\n");
}

static void print_rows(const struct request *request)
{
    printf("%-13s %9s %8s %5s %5s %8s %-7s %-7s %9s %9s %9s %9s %9s %9s %9s %9s %9s\n", "subject",
           "objects", "updates%", "hits%", "walk", "threads", "keys", "draw", "ns", "quarter",
           "3/4", "cpu ns", "bytes/obj", "peak/obj", "p99.9 lk", "p99.9 up", "writer/s");
    for (unsigned row = 0; row < row_count; row++)
        print_row(row, request);
}

static void print_versions(void)
{
    json_t *versions = subject_versions(), *left_out = subjects_left_out(), *value;
    const char *name, *separator = "";
    size_t i;

    json_object_foreach(versions, name, value)
    {
        printf("%s%s %s", separator, name, json_string_value(value));
        separator = ", ";
    }
    printf("\n");
    json_array_foreach(left_out, i, value)
        printf("left out: %s: %s\n", json_string_value(json_object_get(value, "subject")),
               json_string_value(json_object_get(value, "why")));
    fflush(stdout); /* otherwise a child would print its copy again */
    json_decref(versions);
    json_decref(left_out);
}

static json_t *row_to_json(unsigned row, const struct request *request)
{
    static const char *const medians[] = {"ns",
                                          "cpu_ns",
                                          "all_cpu_ns",
                                          "bytes_per_object",
                                          "peak_bytes_per_object",
                                          "peak_rss_bytes"};
    const struct row *of = &rows[row];
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:i, s:i, s:i, s:i, s:i, s:f, s:[]}", "subject",
                  of->entry->numbers->name, "family", of->entry->family, "kind",
                  subject_kind_name(of->entry->kind), "keys", key_kind(of->strings), "draw",
                  draw_law(of->zipf), "size", (json_int_t)of->size, "updates", of->updates, "hits",
                  of->hits, "walk", of->walk, "threads", of->threads, "writers", of->writers,
                  "seconds", of->seconds, "repeats");

    for (unsigned i = 0; i < sizeof medians / sizeof medians[0]; i++)
        json_object_set_new(json, medians[i],
                            json_real(quantile(row, request, NULL, medians[i], 0.5)));
    for (unsigned i = 0; i < request->repeat; i++)
        json_array_append(json_object_get(json, "repeats"), results[row][i]);
    return json;
}

static int write_json(const struct request *request, double others)
{
    json_t *document = document_begin("prudence-structures"), *list = json_array();
    int failed;

    for (unsigned row = 0; row < row_count; row++)
        json_array_append_new(list, row_to_json(row, request));
    json_object_set_new(document, "prudence", json_string(prudence_version()));
    json_object_set_new(document, "versions", subject_versions());
    json_object_set_new(document, "skipped", subjects_left_out());
    json_object_set_new(document, "others_cpus", json_real(others));
    json_object_set_new(document, "rows", list);
    failed = document_write(document, request->json);
    json_decref(document);
    return failed;
}

static void list_subjects(void)
{
    for (unsigned i = 0; subject_entry(i); i++)
        printf("%-14s%-8s%-6s%s\n", subject_name(i), subject_entry(i)->family,
               subject_kind_name(subject_entry(i)->kind), subject_entry(i)->numbers->origin);
    printf("\n");
    print_versions();
}

static int measure_and_say(const struct request *request)
{
    struct others others;
    double busy;
    unsigned failed;

    print_versions();
    others_begin(&others);
    failed = measure(request);
    busy = others_report(&others, "prudence-structures");
    print_rows(request);
    if (request->json && write_json(request, busy))
        return EXIT_FAILURE;
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .doc =
            "Compare tables and maps that are read while they change: Prudence's, those of other "
            "libraries, and some with locks.",
    };
    struct request request = {
        .sizes = {.value = {1000, 100000}, .count = 2},
        .updates = {.value = {0, 10, 100}, .count = 3},
        .threads = {.value = {1}, .count = 1},
        .hits = {.value = {100}, .count = 1},
        .writers = {.value = {0}, .count = 1},
        .walks = {.value = {0}, .count = 1},
        .keys = {.value = {0}, .count = 1},
        .draws = {.value = {0}, .count = 1},
        .seconds = 0.3,
        .repeat = 1,
    };

    argp_parse(&argp, argc, argv, 0, NULL, &request);
    if (request.list) {
        list_subjects();
        return EXIT_SUCCESS;
    }
    make_rows(&request);
    return measure_and_say(&request);
}
