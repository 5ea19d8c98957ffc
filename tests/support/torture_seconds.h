/* SPDX-License-Identifier: MIT */
/* How long a torture runs: PRUDENCE_TORTURE_SECONDS, from the environment. */
#ifndef TESTS_SUPPORT_TORTURE_SECONDS_H
#define TESTS_SUPPORT_TORTURE_SECONDS_H

#include <stdlib.h>

/* `otherwise`: what it is where the environment has none, or no number above 0. */
static inline double torture_seconds(double otherwise)
{
    const char *text = getenv("PRUDENCE_TORTURE_SECONDS");
    double seconds = text ? strtod(text, NULL) : 0;

    return seconds > 0 ? seconds : otherwise;
}

#endif /* TESTS_SUPPORT_TORTURE_SECONDS_H */
