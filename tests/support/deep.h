/* SPDX-License-Identifier: MIT */
/* How far a test explores: `make test-long` sets PRUDENCE_MODELS=deep. */
#ifndef TESTS_SUPPORT_DEEP_H
#define TESTS_SUPPORT_DEEP_H

#include <stdlib.h>
#include <string.h>

/* Returns the distance between two instructions at which a test stops: 1 in a deep run, else
 * `most`. Pass a prime and start each case at another offset, so that the cases together stop at
 * every instruction of a loop. */
static inline unsigned deep_stride(unsigned most)
{
    const char *models = getenv("PRUDENCE_MODELS");

    return models && strcmp(models, "deep") == 0 ? 1 : most;
}

#endif /* TESTS_SUPPORT_DEEP_H */
