/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Tidying gives back memory that has been unused for long. */
#ifndef SLAB_RECLAIM_DECAY_H
#define SLAB_RECLAIM_DECAY_H

#include "base/base.h"
#include "slab/reclaim/drain.h"

struct prudence_cache;

extern bool slab_tidies;
uint64_t tidy_kept(void);
bool tidy_is_worth_it(void);
uint64_t tidy_rounds(void);
void tidy_forget(struct prudence_cache *cache);
void tidy_fork_child(void);
bool tidy_some(unsigned caches, unsigned moves);
void tidy_come_by(void);
void tidy_drive(void);
/* State of a look at a CPU's caches. Begins as {.place.cpu = CPU} when tidy_is_wanted_on() says
 * so. */
struct tidy_pass {
    struct prudence_cache *cache; /* the cache whose turn is now, held; or NULL */
    struct drain_place place;
};
bool tidy_is_wanted_on(unsigned cpu);
bool tidy_pass(struct tidy_pass *pass, unsigned moves);
void tidy_pass_end(struct tidy_pass *pass);

#endif /* SLAB_RECLAIM_DECAY_H */
