/* SPDX-License-Identifier: MIT */
/*
 * acdc, an allocator benchmark after M. Aigner, "Short-term Memory for C" (2012), chapter 5, with
 * the options of the public tool that resulted. See docs/reference/acdc.md.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "report.h"

static bool write_json(json_t *document, FILE *file)
{
    bool written = !json_dumpf(document, file, JSON_INDENT(1) | JSON_REAL_PRECISION(9));

    return putc('\n', file) != EOF && written;
}

static bool write_csv(json_t *document, FILE *file)
{
    report_csv(document, file);
    return true;
}

static bool write_csv_samples(json_t *document, FILE *file)
{
    report_csv_samples(document, file);
    return true;
}

/* An output file is opened before the run, so that an invalid name does not waste the run. */
struct output {
    const char *option, *name;
    bool (*write)(json_t *document, FILE *file);
    FILE *file;
};

static void fail(const char *option, const char *name)
{
    fprintf(stderr, "acdc: %s: %s: %s\n", option, name, strerror(errno));
    exit(EXIT_FAILURE);
}

static void output_open(struct output *output)
{
    if (!output->name)
        return;
    output->file = strcmp(output->name, "-") ? fopen(output->name, "we") : stdout;
    if (!output->file)
        fail(output->option, output->name);
}

static void output_write(struct output *output, json_t *document)
{
    bool good;

    if (!output->file)
        return;
    good = output->write(document, output->file) && !ferror(output->file);
    good &= !(output->file == stdout ? fflush(stdout) : fclose(output->file));
    if (!good)
        fail(output->option, output->name);
}

int main(int argc, char **argv)
{
    static struct run run;
    static struct result result;
    struct outcome outcome = {.run = &run, .result = &result};
    const struct model *model;
    struct options options;
    bool table = true;
    json_t *document;
    char why[256];

    options_parse(argc, argv, &options);
    struct output outputs[] = {
        {"--json", options.json, write_json, NULL},
        {"--csv", options.csv, write_csv, NULL},
        {"--csv-samples", options.csv_samples, write_csv_samples, NULL},
    };

    for (unsigned i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        output_open(&outputs[i]);
        table &= outputs[i].file != stdout;
    }
    model = model_find(&options.settings, why, sizeof why);
    if (!model || !run_all(&options.settings, model, !options.quiet && isatty(STDERR_FILENO), &run,
                           &result, why, sizeof why)) {
        fprintf(stderr, "acdc: %s\n", why);
        return EXIT_FAILURE;
    }
    if (table && !options.quiet)
        report_text(&outcome, stdout);
    document = report_json(&outcome);
    for (unsigned i = 0; i < sizeof outputs / sizeof *outputs; i++)
        output_write(&outputs[i], document);
    if (table && options.verbose) {
        fputs("\nsamples of memory\n", stdout);
        report_csv_samples(document, stdout);
    }
    json_decref(document);
    if (result.out_of_memory) {
        fprintf(stderr, "acdc: out of memory after %llu bytes in all\n",
                (unsigned long long)result.allocated_bytes);
        return EXIT_FAILURE;
    }
    return ferror(stdout) || fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
