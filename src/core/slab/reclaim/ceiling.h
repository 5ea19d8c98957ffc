/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The limit of deferred bytes in force: latent_limit, or up to latent_ceiling. */
#ifndef SLAB_RECLAIM_CEILING_H
#define SLAB_RECLAIM_CEILING_H

#include "gp/gp_wait.h"
#include "os/os.h"

/* Policy: when does latent_limit fall again? */
#define CEILING_GRACE_PERIODS 10 /* rounds; grace periods without a rise end all rises */

extern uint64_t slab_latent_limit; /* bytes; 0: none; changed by limit_change() */
extern uint64_t ceiling_rises;     /* statistics; atomic */
extern uint64_t ceiling_risen;     /* bytes; in force if above latent_limit; watchers read it */
uint64_t ceiling_in_force(void);
uint64_t ceiling_most(void);
bool ceiling_may_rise(void);
bool ceiling_follow(enum gp_reader_state state);
void ceiling_fall(void);
void ceiling_set(uint64_t bytes);
void ceiling_is_the_limit(void);
bool ceiling_allows_limit(uint64_t bytes);
bool ceiling_is_possible(uint64_t bytes);
bool ceiling_check(void);
const char *ceiling_why(void);

#endif /* SLAB_RECLAIM_CEILING_H */
