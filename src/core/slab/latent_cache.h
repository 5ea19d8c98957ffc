/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The latent cache is a CPU's ring of deferred objects. Only the owner calls these functions,
 * except latent_cache_count(). */
#ifndef SLAB_LATENT_CACHE_H
#define SLAB_LATENT_CACHE_H

#include "slab/cpu_cache.h"

static inline unsigned latent_cache_count(const struct cpu_cache *cpu)
{
    /* Read the head first. It never passes a tail read later, so the difference is never
     * negative. */
    uint64_t head = load_acquire(&cpu->line.ring_head);

    return (unsigned)(load_relaxed(&cpu->line.ring_tail) - head);
}

/* Returns whether there are closed batches. */
static inline bool latent_cache_waits(const struct cpu_cache *cpu)
{
    return cpu->batch_head != cpu->batch_tail;
}

/* Result of latent_cache_open(): no room under the limit, room for at least one object, or the same
 * when reservations of the CPU's other rings leave no room for more. */
enum latent_room { LATENT_NO_ROOM, LATENT_ROOM, LATENT_ROOM_CROWDED };
bool latent_cache_is_open(const struct prudence_cache *cache, const struct cpu_cache *cpu);
enum latent_room latent_cache_open(struct prudence_cache *cache, struct cpu_cache *cpu);
void latent_cache_open_past_limit(struct prudence_cache *cache, struct cpu_cache *cpu);
void latent_cache_take_back(struct prudence_cache *cache, struct cpu_cache *cpu);
bool latent_cache_is_full(const struct prudence_cache *cache, const struct cpu_cache *cpu);
void latent_cache_close(struct prudence_cache *cache, struct cpu_cache *cpu);
bool latent_cache_is_newest(const struct cpu_cache *cpu, const void *object);
bool latent_cache_append(struct prudence_cache *cache, struct cpu_cache *cpu, void *object);
unsigned latent_cache_take_safe(struct prudence_cache *cache, struct cpu_cache *cpu, void **objects,
                                unsigned count);
unsigned latent_cache_take_oldest(struct prudence_cache *cache, struct cpu_cache *cpu,
                                  void **objects, unsigned count, gp_cookie *cookie);
struct reuse;
unsigned latent_cache_reuse(struct prudence_cache *cache, struct cpu_cache *cpu,
                            struct reuse *reuse);
unsigned latent_cache_merge(struct prudence_cache *cache, struct cpu_cache *cpu);
bool latent_cache_newest_cookie(const struct cpu_cache *cpu, gp_cookie *cookie);
bool latent_cache_end_at_once(struct prudence_cache *cache, struct cpu_cache *cpu);
bool latent_cache_oldest_is_safe(const struct prudence_cache *cache, struct cpu_cache *cpu);
void latent_cache_set_stop(struct cpu_cache *cpu, unsigned batch);

#endif /* SLAB_LATENT_CACHE_H */
