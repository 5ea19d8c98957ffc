/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Decay takes back memory that has been unused for long, or that another cache wants. */
#ifndef SLAB_RECLAIM_DECAY_H
#define SLAB_RECLAIM_DECAY_H

#include "base/base.h"
#include "slab/reclaim/drain.h"

struct prudence_cache;

/* Policy: how often does a thread visit for decay? */
#define BYPASSES_A_VISIT 16 /* tries; that bypass a busy CPU, for one visit */

extern bool decay_enabled, decay_helper;
uint64_t decay_kept(void);
bool decay_is_worth_it(void);
uint64_t decay_rounds(void);
void decay_forget(struct prudence_cache *cache);
void decay_fork_child(void);
bool decay_some(unsigned caches, unsigned moves);
void decay_drive(void);
void decay_visit(void);
void decay_visit_and_drive(void);
bool decay_visit_count_bypass(struct prudence_cache *cache);
void decay_early(struct prudence_cache *cache, unsigned node, size_t bytes);
/* State of a check of a CPU's caches. Begins as {.place.cpu = CPU} when decay_is_wanted_on() says
 * so. */
struct decay_pass {
    struct prudence_cache *cache; /* the cache whose turn is now, held; or NULL */
    struct drain_place place;
};
bool decay_is_wanted_on(unsigned cpu);
bool decay_pass(struct decay_pass *pass, unsigned moves);
void decay_pass_end(struct decay_pass *pass);

#endif /* SLAB_RECLAIM_DECAY_H */
