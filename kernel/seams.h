/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What prudence.ko shows its own tests. Nothing for users: it may change with any version. */
#ifndef PRUDENCE_SEAMS_H
#define PRUDENCE_SEAMS_H

#include <linux/shrinker.h>
#include <linux/types.h>

/* The node in whose lists the slab of an object is; NUMA_NO_NODE: a pointer that is no object. */
int prudence_node_of(const void *object);

/* The shrinker as the kernel calls it. */
struct shrinker *prudence_shrinker(void);

/* `claims` is called by a thread that has found a CPU dead and is about to claim its caches; preemption is off. NULL:
 * no function. Every call is over once preemption was on everywhere. */
void prudence_watch_claims(void (*claims)(unsigned int cpu));

#endif /* PRUDENCE_SEAMS_H */
