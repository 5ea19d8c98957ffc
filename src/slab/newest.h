/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A look at what came last into CPUs' caches: whether an object that should be live lies there. */
#ifndef SLAB_NEWEST_H
#define SLAB_NEWEST_H

#include "slab/cpu_cache.h"

/* What is looked for. `look` is called by the owner of a CPU's caches; `found` ends the search. */
struct newest_search {
    void (*look)(struct newest_search *search, const struct cpu_cache *cpu);
    bool found;
};

/* In this CPU's caches, and the first times in a process in those of all CPUs, by a system call for each. Passes over what
 * other threads own. Nothing is owned. */
void newest_look(struct prudence_cache *cache, struct newest_search *search);

/* The i-th newest free or latent object; by the owner. */
static inline void *newest_free(const struct cpu_cache *cpu, unsigned i)
{
    return cpu->line.stack[stack_count(&cpu->line) - 1 - i];
}

static inline void *newest_latent(const struct cpu_cache *cpu, unsigned i)
{
    return cpu->line.ring[(load_relaxed(&cpu->line.ring_tail) - 1 - i) & cpu->line.ring_mask];
}

/* Whether the object lies there, among the newest `most` of stack and ring, and whether it is latent. */
bool newest_have(struct prudence_cache *cache, const void *object, unsigned most, bool *latent);

#endif /* SLAB_NEWEST_H */
