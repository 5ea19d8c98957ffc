/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Searches the newest objects in CPUs' caches for one that should be live. */
#ifndef SLAB_RECENT_FREES_H
#define SLAB_RECENT_FREES_H

#include "slab/cpu_cache.h"

/* State of a search. The owner of a CPU's caches calls `look`, and `found` ends the search. */
struct recent_search {
    void (*look)(struct recent_search *search, const struct cpu_cache *cpu);
    bool found;
};

/* Searches this CPU's caches, and for the first few searches of a process those of all CPUs, at one
 * system call each. Skips caches that another thread owns. The caller owns nothing. */
void recent_frees_look(struct prudence_cache *cache, struct recent_search *search);

/* Return the i-th newest free or latent object. Only the owner calls these. */
static inline void *recent_free(const struct cpu_cache *cpu, unsigned i)
{
    return cpu->line.stack[stack_count(&cpu->line) - 1 - i];
}

static inline void *recent_latent(const struct cpu_cache *cpu, unsigned i)
{
    return cpu->line.ring[(load_relaxed(&cpu->line.ring_tail) - 1 - i) & cpu->line.ring_mask];
}

/* Returns whether the object is among the newest `most` of stack and ring, and sets *latent if it
 * is in the ring. */
bool recent_frees_have(struct prudence_cache *cache, const void *object, unsigned most,
                       bool *latent);

#endif /* SLAB_RECENT_FREES_H */
