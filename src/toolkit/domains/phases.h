/* SPDX-License-Identifier: MIT */
/*
 * Phases: a clock that many threads advance together (phases.c). Every thread that has joined
 * ticks. The last thread to tick in a phase ends the phase, and the next one begins. Phases are
 * named by increasing numbers, GP_STEP apart. No thread waits for a phase, so a thread that has
 * joined may wait.
 */
#ifndef TOOLKIT_DOMAINS_PHASES_H
#define TOOLKIT_DOMAINS_PHASES_H

#include "gp/gp.h"

/* Returns NULL without memory. */
struct prudence_domain *gp_phases_make(const char *name);

/* Counts this thread from now on. Sets *phase to the last phase in which the thread counts as
 * having ticked, which is the present one if `ticked`, otherwise the one before. Returns false
 * without memory, which can only happen to a thread that never joined before. */
bool gp_phases_join(struct prudence_domain *domain, bool ticked, uint64_t *phase);

/* Returns the phase in which the thread has ticked. */
uint64_t gp_phases_tick(struct prudence_domain *domain);

/* Stops counting the thread. */
void gp_phases_leave(struct prudence_domain *domain);

/* Stops counting threads that have ended without leaving. */
void gp_phases_reap(struct prudence_domain *domain);

/* After a tick or a leave, ends the phase if all have ticked. */
bool gp_phases_advance(struct prudence_domain *domain);

/* Returns the number of phases that have ended. */
uint64_t gp_phases_ended(const struct prudence_domain *domain);

#endif /* TOOLKIT_DOMAINS_PHASES_H */
