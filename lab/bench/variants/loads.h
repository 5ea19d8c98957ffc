/* SPDX-License-Identifier: MIT */
/* Measurements of a variant, each in a separate process. */
#ifndef VARIANTS_LOADS_H
#define VARIANTS_LOADS_H

#include <jansson.h>

#include "variant.h"

struct row {
    const struct load *load;
    const struct variant *variant;
    unsigned readers; /* places that read all the time */
    unsigned workers; /* places that are measured */
    unsigned batch;   /* batch size of "update" */
    unsigned rate;    /* paced: calls a second, of each worker */
    unsigned samples; /* loads that take latencies: a run continues until it has this many */
    double seconds;
};

struct load {
    const char *name;
    const char *what;    /* unit of the figure in ns */
    bool reads;          /* the workers are readers, so `none` may take part */
    bool batches, rates; /* it has rows for these */
    bool (*possible)(const struct variant *variant);
    json_t *(*run)(const struct row *row); /* {"ns": number, ...} */
};

#define SAMPLES_SECONDS 60 /* longest wait for samples beyond `seconds` */

extern const struct load loads[]; /* ended by a NULL name */

/*
 * Runs the row: workers run `body` and readers `reader`, each in a thread at a place of its
 * own, until load_goes_on() returns false; a body returns the number of operations. The result has
 * the workers' time per operation.
 */
json_t *run_crew(const struct row *row, uint64_t (*body)(const struct row *row, unsigned place),
                 uint64_t (*reader)(const struct row *row, unsigned place));
bool load_goes_on(void);

json_t *load_paced(const struct row *row); /* paced.c */

#endif /* VARIANTS_LOADS_H */
