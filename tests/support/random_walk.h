/* SPDX-License-Identifier: MIT */
/*
 * A long walk of operations in a fixed pseudo-random order, checked against a model: no object is
 * handed out while live, or before a grace period after its deferral; waiting objects are not
 * written; and after each leg the books balance and the statistics equal the model's.
 */
#ifndef TESTS_SUPPORT_RANDOM_WALK_H
#define TESTS_SUPPORT_RANDOM_WALK_H

#include "support/slab_test.h"

/* Runs the tests with object caches of several sizes, as a group, and returns the result of main().
 * About one operation in 130 calls `now_and_then`. */
int random_walk_run(void (*now_and_then)(struct prudence_cache *cache));

/* Returns a random number of the walk below `below`. */
unsigned random_walk_choose(unsigned below);

#endif /* TESTS_SUPPORT_RANDOM_WALK_H */
