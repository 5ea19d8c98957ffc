/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Hooks for the tests of prudence.ko. Not for users, because they may change with any version. */
#ifndef PRUDENCE_SEAMS_H
#define PRUDENCE_SEAMS_H

#include <linux/shrinker.h>
#include <linux/types.h>

/* Returns the node of the object's slab, or NUMA_NO_NODE if the pointer is no object. */
int prudence_node_of(const void *object);

/* Returns the registered shrinker, or NULL before the module has started. */
struct shrinker *prudence_shrinker(void);

/* Sets (or with NULL removes) a function that a thread calls, with preemption off, when it has
 * found a CPU dead and is about to claim that CPU's caches. No old call is running after
 * synchronize_rcu(). */
void prudence_watch_claims(void (*claims)(unsigned int cpu));

#endif /* PRUDENCE_SEAMS_H */
