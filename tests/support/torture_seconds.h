/* SPDX-License-Identifier: MIT */
/* Duration of a torture: PRUDENCE_TORTURE_SECONDS, from the environment. */
#ifndef TESTS_SUPPORT_TORTURE_SECONDS_H
#define TESTS_SUPPORT_TORTURE_SECONDS_H

#include <stdlib.h>

/* Returns the seconds from the environment, or `otherwise` if those are not a number above 0. */
static inline double torture_seconds(double otherwise)
{
    const char *text = getenv("PRUDENCE_TORTURE_SECONDS");
    double seconds = text ? strtod(text, NULL) : 0;

    return seconds > 0 ? seconds : otherwise;
}

#endif /* TESTS_SUPPORT_TORTURE_SECONDS_H */
