/* SPDX-License-Identifier: MIT */
/* The table for a person to read while rows come in. */
#include <stdio.h>
#include <string.h>

#include "runner.h"

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

void table_head(const struct scenario *scenario)
{
    printf("%s: a pair is %s\n", scenario->name, scenario->pair);
    printf("%-22s %5s %3s %3s %5s %9s %21s %9s ", "subject", "size", "thr", "rdr", "batch",
           "ns/pair", "[min - max]", "cpu ns");
    if (scenario->compares)
        printf("%7s %7s ", "/single", "/batch");
    printf("%9s %9s\n", "peak MB", "latent MB");
}

/* Prints the CPU time by that of a best plain pair, if one was run. */
static void print_ratio(const struct row *row, const char *key)
{
    const json_t *found = json_object_get(json_object_get(row->merged, "by_plain"), key);

    if (found)
        printf("%7.2f ", number(found, "ratio"));
    else
        printf("%7s ", "-");
}

static void print_latencies(const json_t *latencies)
{
    if (!json_is_object(latencies))
        return;
    if (!json_object_get(latencies, "p50")) {
        printf("nothing came back ");
        return;
    }
    printf("us: p50 %.1f p99 %.1f p99.9 %.1f max %.1f ", number(latencies, "p50") / 1e3,
           number(latencies, "p99") / 1e3, number(latencies, "p99_9") / 1e3,
           number(latencies, "max") / 1e3);
}

static void print_notes(const struct row *row)
{
    const char *mode = json_string_value(json_object_get(row->merged, "reader_mode"));

    print_latencies(json_object_get(row->merged, "latency_ns"));
    if (row->config.order != ORDER_TIGHT)
        printf("%s, %u live ", order_name(row->config.order), row->config.live);
    if (!strcmp(row->config.scenario, "tree"))
        printf("%u %% updates ", row->config.updates);
    if (row->config.mixed)
        printf("mixed sizes ");
    if (row->config.latent_limit)
        printf("limit %.0f MB ", (double)row->config.latent_limit / 1e6);
    if (!strcmp(row->config.scenario, "stall"))
        printf("stays %u ms ", row->config.stay_ms);
    if (scenario_find(row->config.scenario)->samples)
        printf("grew %.1f MB ", number(row->merged, "rss_growth_bytes") / 1e6);
    if (mode)
        printf("%s ", mode);
    if (number(row->merged, "reader_errors") > 0)
        printf("READERS SAW FREED MEMORY ");
    if (json_is_true(json_object_get(row->merged, "stolen")))
        printf("STOLEN ");
    if (json_is_true(json_object_get(row->merged, "out_of_memory")))
        printf("OUT OF MEMORY ");
    if (json_object_get(row->merged, "failed"))
        printf("FAILED: %s", json_string_value(json_object_get(row->merged, "failed")));
}

void table_row(const struct row *row)
{
    const json_t *wall =
        json_object_get(json_object_get(row->merged, "spread"), "ns_per_pair_wall");
    char range[32];

    snprintf(range, sizeof range, "[%.2f - %.2f]", number(wall, "min"), number(wall, "max"));
    printf("%-22s %5zu %3u %3u %5u %9.2f %21s %9.2f ", row->subject->name, row->config.size,
           row->config.threads, row->config.readers, row->config.batch,
           number(row->merged, "ns_per_pair_wall"), range, number(row->merged, "ns_per_pair_cpu"));
    if (scenario_find(row->config.scenario)->compares) {
        print_ratio(row, "single");
        print_ratio(row, "batched");
    }
    printf("%9.1f %9.2f  ", number(row->merged, "peak_rss_bytes") / 1e6,
           number(row->merged, "latent_peak_bytes") / 1e6);
    print_notes(row);
    putchar('\n');
    fflush(stdout);
}
