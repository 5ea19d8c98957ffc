/* SPDX-License-Identifier: MIT */
/* What is measured of a variant; each in a process of its own. */
#ifndef VARIANTS_LOADS_H
#define VARIANTS_LOADS_H

#include <jansson.h>

#include "variant.h"

struct row {
    const struct load *load;
    const struct variant *variant;
    unsigned readers; /* places that read all the time */
    unsigned workers; /* places that are measured */
    unsigned batch;   /* update */
    double seconds;
};

struct load {
    const char *name;
    const char *what; /* of which the figure is in ns */
    bool reads;       /* its workers are readers: `none` may take part */
    bool batches;
    bool (*possible)(const struct variant *variant);
    json_t *(*run)(const struct row *row); /* {"ns": number, ...} */
};

extern const struct load loads[]; /* ended by a NULL name */

#endif /* VARIANTS_LOADS_H */
