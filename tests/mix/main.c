/* SPDX-License-Identifier: MIT */
/*
 * prudence-mix: hits, churns, peak slabs and total fragmentation of one cache (the paper's Figures
 * 7 to 11), as counts that other programs hardly change. Each is measured with the paper's
 * mechanisms and without: `classic` frees by callbacks, all of a grace period at the end;
 * `throttled-N` calls 10 of them every N steps; `+preflush` pre-flushes latent objects in idle
 * time; `+spares` leaves alone slabs that are mostly latent.
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "arguments.h"
#include "document.h"
#include "repeats.h"
#include "workload.h"

#define LONGEST 600 /* seconds */

struct request {
    struct numbers mixes; /* indices; none selects all */
    struct numbers periods, idles, cached;
    uint64_t allocations, seeds;
    const char *json;
};

/* Variants to compare side by side. */
static const struct {
    const char *name;
    bool classic, preflush, spares;
    unsigned pace;
} subjects[] = {{"classic", .classic = true},
                {"throttled-10", .classic = true, .pace = 10},
                {"throttled-20", .classic = true, .pace = 20},
                {"throttled-40", .classic = true, .pace = 40},
                {"prudence", .classic = false},
                {"+preflush", .preflush = true},
                {"+spares", .spares = true}};

static double number(const json_t *row, const char *name)
{
    return json_number_value(json_object_get(row, name));
}

static void print_heading(void)
{
    printf("%-7s %6s %5s %6s %-12s %8s %7s %8s %8s %7s %8s %8s %7s %6s %6s %6s\n", "mix", "period",
           "idle", "cache", "subject", "hits", "merges", "refills", "flushed", "churns", "overflow",
           "preflush", "slab ch", "peak", "f_t", "mean");
}

static void print_row(const struct run *run, const char *subject, const json_t *row)
{
    if (json_object_get(row, "failed")) {
        printf("%-7s %s: failed: %s\n", run->mix->name, subject,
               json_string_value(json_object_get(row, "failed")));
        return;
    }
    printf(
        "%-7s %6llu %5llu %6u %-12s %7.3f%% %7.0f %8.0f %8.0f %7.0f %8.0f %8.0f %7.0f %6.1f "
        "%6.3f %6.3f\n",
        run->mix->name, (unsigned long long)run->period, (unsigned long long)run->idle, run->cached,
        subject, 100 * number(row, "hits") / number(row, "allocations"),
        number(row, "hits_after_merge"), number(row, "refills"), number(row, "flushed_objects"),
        number(row, "object_cache_churns"), number(row, "overflowed_objects"),
        number(row, "preflushed_objects"), number(row, "slab_churns"), number(row, "slabs_peak"),
        number(row, "bytes_left") / number(row, "bytes_live"), number(row, "f_t_mean"));
}

/* Adds a share of each number. */
static void add_share(json_t *sum, json_t *row, double share)
{
    const char *name;
    json_t *value;

    json_object_foreach(row, name, value)
    {
        if (json_is_number(value))
            json_object_set_new(sum, name,
                                json_real(number(sum, name) + share * json_number_value(value)));
        else
            json_object_set(sum, name, value); /* reason for the failure */
    }
}

/* Returns the mean over seeds, and the figures of each. */
static json_t *run_seeds(struct run *run, uint64_t seeds)
{
    json_t *mean = json_object(), *repeats = json_array();

    for (run->seed = 1; run->seed <= seeds; run->seed++) {
        json_t *row = run_in_child(run_mix, run, LONGEST);

        add_share(mean, row, 1.0 / (double)seeds);
        json_array_append_new(repeats, row);
    }
    json_object_set_new(mean, "repeats", repeats);
    return mean;
}

static bool run_subjects(struct run *run, uint64_t seeds, json_t *rows)
{
    bool ok = true;

    for (unsigned i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        json_t *row;

        run->classic = subjects[i].classic;
        run->pace = subjects[i].pace;
        run->preflush = subjects[i].preflush;
        run->spares = subjects[i].spares;
        row = run_seeds(run, seeds);
        print_row(run, subjects[i].name, row);
        ok = ok && !json_object_get(row, "failed");
        json_object_update_new(row,
                               json_pack("{s:s, s:s, s:i, s:I, s:I, s:i}", "mix", run->mix->name,
                                         "subject", subjects[i].name, "size", (int)run->mix->size,
                                         "period", (json_int_t)run->period, "idle",
                                         (json_int_t)run->idle, "cached", (int)run->cached));
        json_array_append_new(rows, row);
    }
    return ok;
}

static int measure(const struct request *request)
{
    json_t *document = document_begin("prudence-mix"), *rows = json_array();
    struct run run = {.allocations = request->allocations};
    bool ok = true;

    print_heading();
    for (unsigned m = 0; m < request->mixes.count; m++)
        for (unsigned p = 0; p < request->periods.count; p++)
            for (unsigned i = 0; i < request->idles.count; i++)
                for (unsigned c = 0; c < request->cached.count; c++) {
                    run.mix = &mixes[request->mixes.value[m]];
                    run.period = request->periods.value[p];
                    run.idle = request->idles.value[i];
                    run.cached = (unsigned)request->cached.value[c];
                    ok &= run_subjects(&run, request->seeds, rows);
                }
    json_object_set_new(document, "scenario", json_string("mix"));
    json_object_set_new(document, "rows", rows);
    if (request->json && document_write(document, request->json))
        ok = false;
    json_decref(document);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ------------------------------------------------------------------------- the command line */

static const struct argp_option options[] = {
    {"mix", 'm', "NAME,...", 0, "all, file, socket, tree, folder or drop (all)", 0},
    {"period", 'p', "STEPS,...", 0,
     "A grace period ends after N allocations and releases (500,5000)", 0},
    {"idle", 'i', "STEPS,...", 0, "The CPU is idle after N steps (100)", 0},
    {"cache", 'c', "OBJECTS,...", 0, "Room in the object cache; 0: by demand (64,256)", 0},
    {"allocations", 'n', "COUNT", 0, "How long a run is (200000)", 0},
    {"seeds", 's', "COUNT", 0, "Runs of each row, whose mean is shown (5)", 0},
    {"json", 'j', "FILE", 0, "Write the results there, too", 0},
    {0},
};

static const char *mix_or_all(unsigned index)
{
    return index == 0 ? "all" : mix_name(index - 1);
}

static struct numbers take_mixes(struct argp_state *state, int key, const char *text)
{
    struct numbers chosen = argument_names(state, key, text, mix_or_all);
    struct numbers mixes_chosen = {.count = 0};

    for (unsigned i = 0; i < chosen.count; i++) {
        if (chosen.value[i])
            mixes_chosen.value[mixes_chosen.count++] = chosen.value[i] - 1;
        else
            for (mixes_chosen.count = 0; mix_name(mixes_chosen.count); mixes_chosen.count++)
                mixes_chosen.value[mixes_chosen.count] = mixes_chosen.count;
    }
    return mixes_chosen;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct request *request = state->input;

    switch (key) {
    case 'm':
        request->mixes = take_mixes(state, key, text);
        break;
    case 'p':
        request->periods = argument_numbers(state, key, text, 1, 1000000);
        break;
    case 'i':
        request->idles = argument_numbers(state, key, text, 0, 1000000);
        break;
    case 'c':
        request->cached = argument_numbers(state, key, text, 0, 16384);
        break;
    case 'n':
        request->allocations = argument_number(state, key, text, 1, UINT64_C(1) << 40);
        break;
    case 's':
        request->seeds = argument_number(state, key, text, 1, 1000);
        break;
    case 'j':
        request->json = text;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct argp argp = {
        options, parse, NULL, "Counts of one cache under the mixes of the kernel's bench.",
        NULL,    NULL,  NULL};
    struct request request = {.periods = {{500, 5000}, 2},
                              .idles = {{100}, 1},
                              .cached = {{64, 256}, 2},
                              .allocations = 200000,
                              .seeds = 5};

    for (; mix_name(request.mixes.count); request.mixes.count++)
        request.mixes.value[request.mixes.count] = request.mixes.count;
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    return measure(&request);
}
