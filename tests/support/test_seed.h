/* SPDX-License-Identifier: MIT */
/*
 * PRUDENCE_TORTURE_SEED, from the environment, changes the choices of tests with random choices;
 * tools/test/soak steps through seeds. Without the variable, each run makes the same choices,
 * except that torture_everything picks a seed and reports it.
 */
#ifndef TESTS_SUPPORT_TEST_SEED_H
#define TESTS_SUPPORT_TEST_SEED_H

#include <stdint.h>
#include <stdlib.h>

/* Returns the seed from the environment, or `otherwise` if none is set. */
static inline uint64_t test_seed(uint64_t otherwise)
{
    const char *text = getenv("PRUDENCE_TORTURE_SEED");

    return text ? strtoull(text, NULL, 0) : otherwise;
}

#endif /* TESTS_SUPPORT_TEST_SEED_H */
