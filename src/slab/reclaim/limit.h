/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The account of deferred bytes that are not merged yet, bounded by latent_limit. */
#ifndef SLAB_RECLAIM_LIMIT_H
#define SLAB_RECLAIM_LIMIT_H

#include "os/os.h"

extern uint64_t slab_latent_limit; /* bytes; 0: none */
extern uint64_t slab_growth_limit; /* latent bytes past which growing waits; 0: none */
extern uint64_t latent_overruns;   /* deferrals past the limit */
bool latent_account_start(void);
void latent_account_stop(void);
void latent_limit_set(uint64_t bytes);
bool latent_reserve(unsigned cpu, size_t bytes);
void latent_reserve_past_limit(unsigned cpu, size_t bytes);
void latent_release(unsigned cpu, size_t bytes);
unsigned latent_ahead_share(unsigned cpu, size_t stride, unsigned ahead, unsigned batch);
void latent_ahead_note(unsigned cpu, int64_t change);
void latent_due_note(unsigned cpu, size_t bytes);
uint64_t latent_due(unsigned cpu);
void latent_due_clear(unsigned cpu);
bool latent_fits(size_t bytes, bool idle);
bool latent_never_fits(size_t bytes);
bool latent_holds_growth(void);
uint64_t latent_bytes(void);
uint64_t latent_bytes_roughly(void);
uint64_t latent_bytes_peak(void);
void latent_account_clear(void);
void latent_account_add(unsigned cpu, size_t bytes, size_t ahead);

#endif /* SLAB_RECLAIM_LIMIT_H */
