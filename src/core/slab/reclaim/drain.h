/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Drain moves objects from CPUs' caches to nodes. */
#ifndef SLAB_RECLAIM_DRAIN_H
#define SLAB_RECLAIM_DRAIN_H

#include "base/base.h"

struct cpu_cache;
struct prudence_cache;

size_t drain_then_shrink(struct prudence_cache *cache, bool free_ones, unsigned keep);
bool drain_any_in_rings(const struct prudence_cache *cache);
bool drain_any_in_slabs(struct prudence_cache *cache);
bool drain_leaves_latent(struct prudence_cache *cache);
size_t drain_fully(struct prudence_cache *cache);
void drain_all_caches(void);
size_t drain_cpus(struct prudence_cache *cache, size_t wanted);
size_t drain_array_bytes(const struct prudence_cache *cache);
void drain_cache(struct prudence_cache *cache, bool free_ones);
void drain_here(struct prudence_cache *cache);
void drain_dead_cpu(unsigned cpu);
void drain_left(struct prudence_cache *cache, struct cpu_cache *cpu);
bool drain_quiet_cpus(struct prudence_cache *cache);
bool drain_to_size(struct prudence_cache *cache, struct cpu_cache *cpu, unsigned size);
/* Position of drain_unwanted() or drain_unwanted_of(). */
struct drain_place {
    unsigned cpu;
    unsigned unwanted; /* objects of that CPU still to be taken */
    bool looked;       /* whether that CPU has been read */
    bool ring;         /* whether to take safe objects of the ring */
    bool unused;       /* nothing has moved there since the last check */
    uint64_t left;     /* bytes that stay in object caches */
};
bool drain_unwanted(struct prudence_cache *cache, struct drain_place *place, unsigned *moves);
bool drain_unwanted_of(struct prudence_cache *cache, struct drain_place *place, unsigned *moves);
bool drain_is_wanted(const struct prudence_cache *cache, unsigned cpu_number);
void drain_note(struct prudence_cache *cache, unsigned cpu_number);
uint64_t drain_cached(const struct prudence_cache *cache);

#endif /* SLAB_RECLAIM_DRAIN_H */
