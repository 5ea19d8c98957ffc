/* SPDX-License-Identifier: MIT */
/*
 * From the environment: the duration of a torture (PRUDENCE_TORTURE_SECONDS), and how many times
 * slower than others the machine may be (PRUDENCE_TORTURE_SLOWER), for emulated ones.
 */
#ifndef TESTS_SUPPORT_TORTURE_SECONDS_H
#define TESTS_SUPPORT_TORTURE_SECONDS_H

#include <stdlib.h>

/* Returns the number in this variable, or `otherwise` if there is none above 0. */
static inline double torture_number(const char *name, double otherwise)
{
    const char *text = getenv(name);
    double number = text ? strtod(text, NULL) : 0;

    return number > 0 ? number : otherwise;
}

static inline double torture_seconds(double otherwise)
{
    return torture_number("PRUDENCE_TORTURE_SECONDS", otherwise);
}

/* Returns how long to wait for a process that takes at most `seconds` on a machine of its own. */
static inline double torture_patience(double seconds)
{
    return seconds * torture_number("PRUDENCE_TORTURE_SLOWER", 1);
}

#endif /* TESTS_SUPPORT_TORTURE_SECONDS_H */
