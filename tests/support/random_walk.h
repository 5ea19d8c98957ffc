/* SPDX-License-Identifier: MIT */
/*
 * A long walk of operations in a fixed pseudo-random order against a model: no object is handed out
 * while it is live, or before a grace period after it was deferred; what waits is unwritten; and
 * after each leg the books balance and the figures are the model's.
 */
#ifndef TESTS_SUPPORT_RANDOM_WALK_H
#define TESTS_SUPPORT_RANDOM_WALK_H

#include "support/slab_test.h"

/* The tests, with object caches of several sizes, as a group: what main returns. `now_and_then` is
 * one of the operations, about one in 130. */
int random_walk_run(void (*now_and_then)(struct prudence_cache *cache));

/* The walk's own chance: 0 .. below - 1. */
unsigned random_walk_choose(unsigned below);

#endif /* TESTS_SUPPORT_RANDOM_WALK_H */
