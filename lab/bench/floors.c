/* SPDX-License-Identifier: MIT */
#include "floors.h"

#include <stdio.h>
#include <string.h>

#include "statistics.h"

#define MOST_ROUNDS 1000 /* as of --repeat */

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* Returns the CPU time of a pair, or 0 if the run did not come to its end. */
static double cpu_of(const json_t *result)
{
    bool ended = !json_object_get(result, "failed") &&
                 !json_is_true(json_object_get(result, "out_of_memory"));

    return ended ? number(result, "ns_per_pair_cpu") : 0;
}

/* Returns the plain pair of a malloc that took the least CPU time in batches of that size, or
 * NULL. Prudence's own plain pairs do not count. */
static const struct row *best_plain(const struct row *rows, unsigned count, unsigned batch)
{
    const struct row *best = NULL;

    for (unsigned i = 0; i < count; i++) {
        if (strcmp(rows[i].subject->family->library, "malloc") != 0 ||
            rows[i].config.batch != batch || cpu_of(rows[i].merged) <= 0)
            continue;
        if (!best || cpu_of(rows[i].merged) < cpu_of(best->merged))
            best = &rows[i];
    }
    return best;
}

/* Stores the ratio of each round that counts, and in which both have a result. Returns how many. */
static size_t ratios(const struct row *row, const struct row *plain, double *values)
{
    size_t index, count = 0;
    json_t *result;

    json_array_foreach(row->repeats, index, result)
    {
        const json_t *measure = json_array_get(plain->repeats, index);

        if (repeat_counts(row, result) && cpu_of(result) > 0 && cpu_of(measure) > 0)
            values[count++] = cpu_of(result) / cpu_of(measure);
    }
    return count;
}

static void divide(struct row *row, const struct row *plain, const char *key, json_t *by_plain)
{
    double values[MOST_ROUNDS];
    size_t count;

    if (!plain || cpu_of(row->merged) <= 0)
        return;
    count = ratios(row, plain, values);
    numbers_sort(values, count);
    json_object_set_new(by_plain, key,
                        json_pack("{s:s, s:f, s:f, s:f}", "subject", plain->subject->name, "ratio",
                                  cpu_of(row->merged) / cpu_of(plain->merged), "min",
                                  count ? values[0] : 0, "max", count ? values[count - 1] : 0));
}

void floors_divide(struct row *rows, unsigned count)
{
    const struct row *single = best_plain(rows, count, 1);
    const struct row *batched = best_plain(rows, count, PLAIN_BATCH);

    for (unsigned i = 0; i < count; i++) {
        json_t *by_plain = json_object();

        divide(&rows[i], single, "single", by_plain);
        divide(&rows[i], batched, "batched", by_plain);
        json_object_set_new(rows[i].merged, "by_plain", by_plain);
    }
}

/* ------------------------------------------------------------------------------ the sentences */

static void print_plain(const struct row *plain, const char *how, const char *name)
{
    if (plain)
        printf("  best plain pair %s: %.2f ns of CPU (%s)\n", how, cpu_of(plain->merged),
               plain->subject->name);
    else
        printf("  no plain pair %s was run, so no ratio to it: --subject takes %s\n", how, name);
}

/* Prints how far a row's rounds are apart, as a share of the median: in the median row, and in the
 * worst one. */
static void print_spread(const struct row *rows, unsigned count)
{
    double spreads[MOST_ROUNDS], worst = 0;
    const char *worst_name = "";
    unsigned known = 0;

    for (unsigned i = 0; i < count && known < MOST_ROUNDS; i++) {
        const json_t *range =
            json_object_get(json_object_get(rows[i].merged, "spread"), "ns_per_pair_cpu");
        double median = cpu_of(rows[i].merged);
        double spread = median > 0 ? (number(range, "max") - number(range, "min")) / median : 0;

        if (median <= 0)
            continue;
        spreads[known++] = spread;
        if (spread > worst) {
            worst = spread;
            worst_name = rows[i].subject->name;
        }
    }
    if (worst > 0)
        printf(
            "  spread of CPU time over the rounds (max - min, by the median): %.0f %% in the "
            "median row, at most %.0f %% (%s)\n",
            numbers_median(spreads, known) * 100, worst * 100, worst_name);
}

void floors_print(const struct row *rows, unsigned count)
{
    print_plain(best_plain(rows, count, 1), "one at a time", "plain+*");
    print_plain(best_plain(rows, count, PLAIN_BATCH), "in batches of 1,024", "plain+*/1024");
    print_spread(rows, count);
}
