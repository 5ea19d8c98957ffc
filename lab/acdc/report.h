/* SPDX-License-Identifier: MIT */
/* Results of a run: for people, and for programs. */
#ifndef ACDC_REPORT_H
#define ACDC_REPORT_H

#include <stdio.h>

#include <jansson.h>

#include "run.h"

struct outcome {
    const struct run *run;
    const struct result *result;
};

/* Computes the mean of live, held or resident bytes of a run that has settled: between the first
 * and last lifetime. */
bool outcome_steady(const struct outcome *outcome, size_t offset, double *mean);

/* Returns bytes allocated per second; 0 if the run took no time. */
double outcome_throughput(const struct outcome *outcome);

void report_text(const struct outcome *outcome, FILE *file);
/* Returns a new reference. */
json_t *report_json(const struct outcome *outcome);
/* Prints the settings and figures: a line of names, and one of values. */
void report_csv(json_t *document, FILE *file);
/* Prints the samples in the same way. */
void report_csv_samples(json_t *document, FILE *file);

#endif /* ACDC_REPORT_H */
