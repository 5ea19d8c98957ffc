/* SPDX-License-Identifier: MIT */
/*
 * The random walk on one CPU, with its fast paths and a few more shrinks.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 * ctest: inlined-too
 */
#include "support/random_walk.h"

static void shrink(struct prudence_cache *cache)
{
    prudence_cache_shrink(cache);
}

int main(void)
{
    pin_thread();
    return random_walk_run(shrink);
}
