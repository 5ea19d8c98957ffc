/* SPDX-License-Identifier: MIT */
/*
 * PRUDENCE_TORTURE_SEED, from the environment: other random choices in tests that make some. tools/soak steps it.
 * Without it, each run makes the same choices (torture_everything: others, and says which).
 */
#ifndef TESTS_SUPPORT_TEST_SEED_H
#define TESTS_SUPPORT_TEST_SEED_H

#include <stdint.h>
#include <stdlib.h>

/* `otherwise`: what it is where the environment has none. */
static inline uint64_t test_seed(uint64_t otherwise)
{
    const char *text = getenv("PRUDENCE_TORTURE_SEED");

    return text ? strtoull(text, NULL, 0) : otherwise;
}

#endif /* TESTS_SUPPORT_TEST_SEED_H */
