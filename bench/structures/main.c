/* SPDX-License-Identifier: MIT */
/*
 * prudence-structures: our tables beside liburcu's, Concurrency Kit's and DPDK's, our map beside std::map and libcds' skip list.
 *
 * Each run is a child process of its own, which fills its table before it is measured. The repeats of all rows are
 * interleaved, so that a slow minute of the machine strikes all alike, and medians are reported.
 */
#define _GNU_SOURCE
#include <argp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <prudence/prudence.h>

#include "arguments.h"
#include "document.h"
#include "measure.h"
#include "repeats.h"
#include "statistics.h"
#include "subject.h"

#define ROWS_MAX    1024
#define REPEATS_MAX 100
#define THREADS_MAX 64
#define WARM_NS     50000000
#define PATIENCE    300 /* seconds beyond those measured, until a run counts as hanging */

static const struct subject *const subjects[] = {
    &subject_prudence,     &subject_rculfhash,    &subject_ck_ht,    &subject_ids_word,
    &subject_ids_ordered,  &subject_ids_indirect, &subject_lockfree, &subject_rename,
    &subject_rename_twice, &subject_rename_moved, &subject_routes,   &subject_binary_trie,
    &subject_routes6,      &subject_map,          &subject_std_map,
#ifdef DPDK_VERSION
    &subject_rte_lpm,      &subject_rte_fib,      &subject_rte_lpm6, &subject_rte_fib6,
#endif
#ifdef LIBCDS_VERSION
    &subject_skip_list,
#endif
};
#define SUBJECTS (sizeof subjects / sizeof subjects[0])

/* Subjects that do the same: what --family stands for. */
static const char *const families[][2] = {
    {"hash", "prudence,rculfhash,ck_ht"},
    {"ids", "ids-word,ids-ordered,ids-indirect"},
#ifdef DPDK_VERSION
    {"routes", "routes,binary-trie,rte_lpm,rte_fib"},
    {"routes6", "routes6,rte_lpm6,rte_fib6"},
#else
    {"routes", "routes,binary-trie"},
    {"routes6", "routes6"},
#endif
#ifdef LIBCDS_VERSION
    {"map", "map,skip-list,std-map"},
#else
    {"map", "map,std-map"},
#endif
};
#define FAMILIES (sizeof families / sizeof families[0])

struct request {
    struct numbers subjects; /* their places in the table */
    struct numbers sizes, updates, threads, hits, writers, walks;
    double seconds;
    uint64_t repeat;
    const char *json;
    bool list;
};

static const struct argp_option options[] = {
    {"subject", 's', "NAME,...", 0, "What is measured (see --list)", 0},
    {"family", 'f', "NAME", 0, "The subjects that are hash, ids, routes, routes6 or map", 0},
    {"size", 'n', "N,...", 0, "Objects in the table", 0},
    {"updates", 'u', "PERCENT,...", 0, "Of the operations, so many are updates", 0},
    {"threads", 't', "N,...", 0, "Threads that do the same", 0},
    {"writers", 'w', "N,...", 0, "Threads more, 0 or 1, that only update, and are counted apart",
     0},
    {"hits", 'h', "PERCENT,...", 0,
     "Of the lookups, so many find an object; of routes: are of addresses drawn from the prefixes",
     0},
    {"walk", 'k', "N,...", 0,
     "0: lookups. Otherwise, walks of so many objects in their place (map, std-map)", 0},
    {"seconds", 'T', "SECONDS", 0, "Length of a run", 0},
    {"repeat", 'R', "N", 0, "Runs of each row, interleaved; medians are shown", 0},
    {"json", 'j', "FILE", 0, "Write all results to FILE", 0},
    {"list", 'i', NULL, 0, "List subjects, and end", 0},
    {0},
};

static const char *subject_name(unsigned index)
{
    return index < SUBJECTS ? subjects[index]->name : NULL;
}

static const char *family_name(unsigned index)
{
    return index < FAMILIES ? families[index][0] : NULL;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
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
        request->subjects = argument_names(
            state, key, families[argument_name(state, key, text, family_name)][1], subject_name);
        break;
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
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* ----------------------------------------------------------------------------------------- rows */

static struct row {
    const struct subject *subject;
    uint64_t size;
    unsigned updates, threads, hits, writers, walk;
    double seconds;
} rows[ROWS_MAX];
static json_t *results[ROWS_MAX][REPEATS_MAX];
static unsigned row_count;

static void add_row(const struct row *row)
{
    if (!strncmp(row->subject->name, "ids-", 4) && (row->updates || row->writers))
        return;
    if (row->walk && strcmp(row->subject->name, "map") && strcmp(row->subject->name, "std-map"))
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
        for (unsigned i = 0; i < request->subjects.count * request->walks.count; i++) {
            row.writers = (unsigned)request->writers.value[w];
            row.walk = (unsigned)request->walks.value[i / request->subjects.count];
            row.subject = subjects[request->subjects.value[i % request->subjects.count]];
            add_row(&row);
        }
}

static void make_rows(const struct request *request)
{
    for (unsigned t = 0; t < request->threads.count; t++)
        for (unsigned n = 0; n < request->sizes.count; n++)
            for (unsigned u = 0; u < request->updates.count; u++)
                for (unsigned h = 0; h < request->hits.count; h++)
                    make_rows_of(request,
                                 (struct row){.size = request->sizes.value[n],
                                              .updates = (unsigned)request->updates.value[u],
                                              .threads = (unsigned)request->threads.value[t],
                                              .hits = (unsigned)request->hits.value[h],
                                              .seconds = request->seconds});
}

/* --------------------------------------------------------------------------------------- a run */

uint64_t subject_size;
static bool stop, warm_stop;

struct thread {
    pthread_t thread;
    const struct row *row;
    struct work work;
    pthread_barrier_t *barrier;
    uint64_t ns, cpu_ns;
} __attribute__((aligned(128)));

static void *run_thread(void *argument)
{
    struct thread *thread = argument;
    const struct subject *subject = thread->row->subject;
    cpu_set_t set;
    uint64_t begun, cpu_begun;

    CPU_ZERO(&set);
    CPU_SET(thread->work.thread % (unsigned)sysconf(_SC_NPROCESSORS_ONLN), &set);
    sched_setaffinity(0, sizeof set, &set);
    subject->thread_start();
    thread->work.stop = &warm_stop;
    pthread_barrier_wait(thread->barrier);
    subject->run(&thread->work);
    thread->work.operations = thread->work.found = 0;
    thread->work.stop = &stop;
    cpu_begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    begun = now_ns();
    subject->run(&thread->work);
    thread->ns = now_ns() - begun;
    thread->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_begun;
    pthread_barrier_wait(thread->barrier);
    subject->thread_end();
    return NULL;
}

/* In a child. */
static json_t *run(const void *of)
{
    const struct row *row = of;
    static struct thread threads[THREADS_MAX + 1];
    static pthread_barrier_t barrier; /* threads may leave it when this has returned */
    const unsigned count = row->threads + row->writers;
    uint64_t operations = 0, found = 0, before, after_fill, ns = 0, cpu_ns = 0;

    subject_size = row->size;
    row->subject->start();
    row->subject->thread_start();
    before = resident_bytes();
    row->subject->fill(row->size);
    row->subject->settle();
    after_fill = resident_bytes();
    row->subject->thread_end();
    pthread_barrier_init(&barrier, NULL, count + 1);
    for (unsigned i = 0; i < count; i++) {
        threads[i].row = row;
        threads[i].barrier = &barrier;
        threads[i].work = (struct work){.size = row->size,
                                        .updates = i < row->threads ? row->updates : 100,
                                        .hits = row->hits,
                                        .walk = row->walk,
                                        .thread = i,
                                        .threads = count,
                                        .random = hash_of(i + 1)};
        pthread_create(&threads[i].thread, NULL, run_thread, &threads[i]);
    }
    pthread_barrier_wait(&barrier);
    sleep_until_ns(now_ns() + WARM_NS);
    __atomic_store_n(&warm_stop, true, __ATOMIC_RELAXED);
    sleep_until_ns(now_ns() + (uint64_t)(row->seconds * 1e9));
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < row->threads; i++) {
        operations += threads[i].work.operations;
        found += threads[i].work.found;
        ns += threads[i].ns;
        cpu_ns += threads[i].cpu_ns;
    }
    if (!operations)
        return NULL;
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "ns", (double)ns / (double)operations,
                     "cpu_ns", (double)cpu_ns / (double)operations, "found",
                     (double)found / (double)operations, "bytes_per_object",
                     (double)(after_fill - before) / (double)row->size, "peak_rss_bytes",
                     (double)resident_bytes_peak(), "writer_per_second",
                     row->writers ? (double)threads[row->threads].work.operations * 1e9 /
                                        (double)threads[row->threads].ns
                                  : 0.0);
}

static unsigned measure(const struct request *request)
{
    unsigned failed = 0;

    for (unsigned i = 0; i < request->repeat; i++)
        for (unsigned row = 0; row < row_count; row++) {
            results[row][i] = run_in_child(run, &rows[row], (unsigned)request->seconds + PATIENCE);
            if (!json_object_get(results[row][i], "failed"))
                continue;
            failed++;
            fprintf(stderr, "prudence-structures: %s: %s\n", rows[row].subject->name,
                    json_string_value(json_object_get(results[row][i], "failed")));
        }
    return failed;
}

/* -------------------------------------------------------------------------------------- results */

/* Of what the repeats say under `key`. */
static double quantile(unsigned row, const struct request *request, const char *key, double share)
{
    double values[REPEATS_MAX];
    unsigned count = repeats_values(results[row], (unsigned)request->repeat, NULL, key, values);

    return numbers_quantile(values, count, share);
}

static void print_row(unsigned row, const struct request *request)
{
    printf("%-13s %9llu %8u %5u %5u %8u %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f %9.0f\n",
           rows[row].subject->name, (unsigned long long)rows[row].size, rows[row].updates,
           rows[row].hits, rows[row].walk, rows[row].threads, quantile(row, request, "ns", 0.5),
           quantile(row, request, "ns", 0.25), quantile(row, request, "ns", 0.75),
           quantile(row, request, "cpu_ns", 0.5), quantile(row, request, "bytes_per_object", 0.5),
           quantile(row, request, "peak_rss_bytes", 0.5) / 1e6,
           quantile(row, request, "writer_per_second", 0.5));
}

static json_t *row_to_json(unsigned row, const struct request *request)
{
    json_t *json = json_pack("{s:s, s:I, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:[]}", "subject",
                             rows[row].subject->name, "size", (json_int_t)rows[row].size, "updates",
                             rows[row].updates, "hits", rows[row].hits, "walk", rows[row].walk,
                             "threads", rows[row].threads, "writers", rows[row].writers, "ns",
                             quantile(row, request, "ns", 0.5), "cpu_ns",
                             quantile(row, request, "cpu_ns", 0.5), "bytes_per_object",
                             quantile(row, request, "bytes_per_object", 0.5), "repeats");

    for (unsigned i = 0; i < request->repeat; i++)
        json_array_append(json_object_get(json, "repeats"), results[row][i]);
    return json;
}

static int write_json(const struct request *request)
{
    json_t *document = document_begin("prudence-structures"), *list = json_array();
    int failed;

    for (unsigned row = 0; row < row_count; row++)
        json_array_append_new(list, row_to_json(row, request));
    json_object_set_new(document, "prudence", json_string(prudence_version()));
    json_object_set_new(document, "liburcu", json_string(LIBURCU_VERSION));
    json_object_set_new(document, "ck", json_string(CK_VERSION));
#ifdef DPDK_VERSION
    json_object_set_new(document, "dpdk", json_string(DPDK_VERSION));
#endif
#ifdef LIBCDS_VERSION
    json_object_set_new(document, "libcds", json_string(LIBCDS_VERSION));
#endif
    json_object_set_new(document, "rows", list);
    failed = document_write(document, request->json);
    json_decref(document);
    return failed;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .doc =
            "Tables that are read under RCU: Prudence's, liburcu's, Concurrency Kit's and DPDK's; "
            "and "
            "ordered maps.",
    };
    struct request request = {
        .sizes = {.value = {1000, 100000}, .count = 2},
        .updates = {.value = {0, 10, 100}, .count = 3},
        .threads = {.value = {1}, .count = 1},
        .hits = {.value = {100}, .count = 1},
        .writers = {.value = {0}, .count = 1},
        .walks = {.value = {0}, .count = 1},
        .seconds = 0.3,
        .repeat = 1,
    };
    unsigned failed;

    argp_parse(&argp, argc, argv, 0, NULL, &request);
    for (unsigned i = 0; request.list && i < SUBJECTS; i++)
        printf("%-14s%s\n", subjects[i]->name, subjects[i]->origin);
    if (request.list)
        return EXIT_SUCCESS;
    make_rows(&request);
    failed = measure(&request);
    printf("%-13s %9s %8s %5s %5s %8s %9s %9s %9s %9s %9s %9s %9s\n", "subject", "objects",
           "updates%", "hits%", "walk", "threads", "ns", "quarter", "3/4", "cpu ns", "bytes/obj",
           "peak MB", "writer/s");
    for (unsigned row = 0; row < row_count; row++)
        print_row(row, &request);
    if (request.json && write_json(&request))
        return EXIT_FAILURE;
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
