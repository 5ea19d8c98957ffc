/* SPDX-License-Identifier: MIT */
/* Prints the JSON document as tables. No value contains a comma or a quote. */
#include <string.h>

#include "report.h"

static void print_value(const json_t *value, FILE *file)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        fputs(json_string_value(value), file);
        break;
    case JSON_INTEGER:
        fprintf(file, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL:
        fprintf(file, "%.9g", json_real_value(value));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        fputs(json_is_true(value) ? "1" : "0", file);
        break;
    default: /* unknown, so empty */
        break;
    }
}

/* Prints names or values of all single values below `json`, with their path in the name. */
static void print_flat(json_t *json, const char *path, bool names, bool *first, FILE *file)
{
    const char *key;
    json_t *value;

    json_object_foreach(json, key, value)
    {
        char name[128];

        snprintf(name, sizeof name, "%s%s%s", path, *path ? "." : "", key);
        if (json_is_array(value) || !strcmp(name, "host"))
            continue;
        if (json_is_object(value)) {
            print_flat(value, name, names, first, file);
            continue;
        }
        if (!*first)
            fputc(',', file);
        *first = false;
        if (names)
            fputs(name, file);
        else
            print_value(value, file);
    }
}

static void print_line(json_t *json, bool names, FILE *file)
{
    bool first = true;

    print_flat(json, "", names, &first, file);
    fputc('\n', file);
}

void report_csv(json_t *document, FILE *file)
{
    print_line(document, true, file);
    print_line(document, false, file);
}

void report_csv_samples(json_t *document, FILE *file)
{
    const json_t *samples = json_object_get(document, "samples");
    json_t *sample;
    size_t i;

    fputs("time,seconds,live_objects,live_bytes,held_bytes,resident_bytes\n", file);
    json_array_foreach(samples, i, sample) print_line(sample, false, file);
}
