/* SPDX-License-Identifier: MIT */
/* The command line. */
#ifndef ACDC_OPTIONS_H
#define ACDC_OPTIONS_H

#include "settings.h"

struct options {
    struct settings settings;
    const char *json, *csv, *csv_samples; /* files; "-": standard output; NULL: not requested */
    bool quiet, verbose;
};

/* Ends the process for --help and --version, and for refused options: names them, with status
 * 64. */
void options_parse(int argc, char **argv, struct options *options);

#endif /* ACDC_OPTIONS_H */
