/* SPDX-License-Identifier: MIT */
/*
 * The random walk on several CPUs of several nodes.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "support/random_walk.h"

static void go_elsewhere(struct prudence_cache *cache)
{
    injected_cpu = random_walk_choose(6) * 11;
}

int main(void)
{
    pin_thread();
    inject_topology();
    return random_walk_run(go_elsewhere);
}
