/* SPDX-License-Identifier: MIT */
/* How far a test explores: `make test-long` sets PRUDENCE_MODELS=deep. */
#ifndef TESTS_SUPPORT_DEEP_H
#define TESTS_SUPPORT_DEEP_H

#include <stdlib.h>
#include <string.h>

/* The distance between two instructions that a test stops at: 1, or `most` where time is short. Take
 * a prime, and begin elsewhere in each case: then the cases together stop everywhere in a loop. */
static inline unsigned deep_stride(unsigned most)
{
    const char *models = getenv("PRUDENCE_MODELS");

    return models && strcmp(models, "deep") == 0 ? 1 : most;
}

#endif /* TESTS_SUPPORT_DEEP_H */
