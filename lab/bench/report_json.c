/* SPDX-License-Identifier: MIT */
/*
 * The JSON document: place of the measurement, and a row for each subject and configuration. A
 * number of a row is the median of its repeats in the rounds that count ("rounds" says how many);
 * "spread" has the smallest and largest of the main ones, "repeats" all results of each run.
 */
#include <stdlib.h>

#include <prudence/prudence.h>

#include "document.h"
#include "runner.h"
#include "statistics.h"

/* Collects the numbers under `key` in an array of objects. Returns how many there are. */
static size_t numbers_under(json_t *objects, const char *key, double *values)
{
    size_t index, count = 0;
    json_t *object;

    json_array_foreach(objects, index, object)
    {
        json_t *number = json_object_get(object, key);

        if (json_is_number(number))
            values[count++] = json_number_value(number);
    }
    return count;
}

static json_t *median(double *values, size_t count, bool integer)
{
    double value = numbers_median(values, count);

    return integer ? json_integer((json_int_t)value) : json_real(value);
}

static bool any_true(json_t *objects, const char *key)
{
    size_t index;
    json_t *object;

    json_array_foreach(objects, index, object)
    {
        if (json_is_true(json_object_get(object, key)))
            return true;
    }
    return false;
}

static json_t *members_under(json_t *objects, const char *key)
{
    json_t *members = json_array();
    size_t index;
    json_t *object;

    json_array_foreach(objects, index, object)
    {
        if (json_object_get(object, key))
            json_array_append(members, json_object_get(object, key));
    }
    return members;
}

static json_t *merge(json_t *objects);

/* Merges the values of all objects under `key`, of which `first` is one. Returns NULL if there
 * are none. */
static json_t *merge_key(json_t *objects, const char *key, json_t *first, double *values)
{
    json_t *members, *merged;

    if (json_is_number(first))
        return median(values, numbers_under(objects, key, values), json_is_integer(first));
    if (json_is_boolean(first))
        return json_boolean(any_true(objects, key));
    if (json_is_string(first))
        return json_incref(first);
    if (!json_is_object(first))
        return NULL;
    members = members_under(objects, key);
    merged = merge(members);
    json_decref(members);
    return merged;
}

/* Merges by medians of numbers, "any" of booleans, the first of strings; objects likewise; no
 * arrays. */
static json_t *merge(json_t *objects)
{
    double *values = calloc(json_array_size(objects) + 1, sizeof *values);
    json_t *merged = json_object();
    size_t index;
    json_t *object, *value;
    const char *key;

    json_array_foreach(objects, index, object)
    {
        json_object_foreach(object, key, value)
        {
            if (!json_object_get(merged, key))
                json_object_set_new(merged, key, merge_key(objects, key, value, values));
        }
    }
    free(values);
    return merged;
}

static json_t *spread(json_t *repeats)
{
    static const char *const keys[] = {"ns_per_pair_wall", "ns_per_pair_cpu", "pairs_per_second",
                                       "peak_rss_bytes", "latent_peak_bytes"};
    double *values = calloc(json_array_size(repeats) + 1, sizeof *values);
    json_t *spreads = json_object();

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        size_t count = numbers_under(repeats, keys[i], values);

        numbers_sort(values, count);
        if (count)
            json_object_set_new(
                spreads, keys[i],
                json_pack("{s:f, s:f}", "min", values[0], "max", values[count - 1]));
    }
    free(values);
    return spreads;
}

/* Returns the repeats that are not stolen, or all if every one is. A new reference. */
static json_t *repeats_to_merge(json_t *repeats)
{
    json_t *kept = json_array();
    size_t index;
    json_t *repeat;

    json_array_foreach(repeats, index, repeat)
    {
        if (!json_is_true(json_object_get(repeat, "stolen")))
            json_array_append(kept, repeat);
    }
    if (json_array_size(kept))
        return kept;
    json_decref(kept);
    return json_incref(repeats);
}

/* A run that failed counts as failed in whichever round. */
static void keep_failures(json_t *merged, json_t *repeats)
{
    size_t index;
    json_t *repeat;

    json_array_foreach(repeats, index, repeat)
    {
        if (json_object_get(repeat, "failed"))
            json_object_set(merged, "failed", json_object_get(repeat, "failed"));
    }
    if (any_true(repeats, "out_of_memory"))
        json_object_set_new(merged, "out_of_memory", json_true());
}

void rows_merge(struct row *rows, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        json_t *counted = repeats_to_merge(rows[i].repeats);

        rows[i].merged = merge(counted);
        keep_failures(rows[i].merged, rows[i].repeats);
        json_object_set_new(rows[i].merged, "spread", spread(counted));
        json_object_set_new(rows[i].merged, "rounds",
                            json_integer((json_int_t)json_array_size(counted)));
        json_decref(counted);
    }
}

json_t *document_create(const struct scenario *scenario)
{
    json_t *document = document_begin("prudence-bench");

    json_object_update_new(document, json_pack("{s:s, s:s, s:s, s:[], s:[]}", "prudence",
                                               prudence_version(), "scenario", scenario->name,
                                               "pair", scenario->pair, "skipped", "rows"));
    return document;
}

void document_skip(json_t *document, const struct subject *subject, const char *why)
{
    json_array_append_new(json_object_get(document, "skipped"),
                          json_pack("{s:s, s:s}", "subject", subject->name, "why", why));
}

void document_add(json_t *document, const struct row *rows, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        json_t *row = config_to_json(&rows[i].config);

        json_object_del(row, "progress");
        json_object_update(row, rows[i].merged);
        json_object_set(row, "repeats", rows[i].repeats);
        json_array_append_new(json_object_get(document, "rows"), row);
    }
}
