/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The account of deferred bytes that are not merged yet, and the limit in force that bounds it. */
#ifndef SLAB_RECLAIM_LIMIT_H
#define SLAB_RECLAIM_LIMIT_H

#include "gp/gp_wait.h"
#include "os/os.h"

/* Policy: when does latent_limit fall again? */
#define LIMIT_RISE_GRACE_PERIODS 10 /* rounds; grace periods without a rise end all rises */

extern uint64_t slab_growth_limit; /* latent bytes past which growing waits; 0 is none */
extern uint64_t limit_overruns;    /* deferrals past the limit */
bool limit_start(void);
void limit_stop(void);
void limit_change(uint64_t bytes);
void limit_set_by_user(uint64_t bytes);
bool limit_reserve(unsigned cpu, size_t bytes);
void limit_reserve_past(unsigned cpu, size_t bytes);
void limit_release(unsigned cpu, size_t bytes);
void limit_set_apart(unsigned cpu, size_t bytes);
void limit_count_again(size_t bytes);
void limit_named_go(size_t bytes);
uint64_t limit_named(void);
unsigned limit_ahead_share(unsigned cpu, size_t stride, unsigned ahead, unsigned batch);
void limit_ahead_note(unsigned cpu, int64_t change);
void limit_due_note(unsigned cpu, size_t bytes);
uint64_t limit_due(unsigned cpu);
void limit_due_clear(unsigned cpu);
bool limit_fits(size_t bytes, bool idle);
bool limit_never_fits(size_t bytes);
bool limit_holds_growth(void);
uint64_t limit_used(void);
uint64_t limit_used_roughly(void);
uint64_t limit_used_peak(void);
void limit_clear(void);
void limit_add(unsigned cpu, size_t bytes, size_t ahead);

/* The limit in force is latent_limit, or more while readers lack a CPU. */
extern uint64_t slab_latent_limit; /* bytes; 0 is none; changed by limit_change() */
extern uint64_t limit_rises;       /* statistics; atomic */
extern uint64_t limit_risen;       /* bytes; in force if above latent_limit; watchers read it */
uint64_t limit_in_force(void);
uint64_t limit_ceiling(void);
bool limit_may_rise(void);
bool limit_follow(enum gp_reader_state state);
void limit_fall(void);
void limit_set_ceiling(uint64_t bytes);
bool limit_is_possible(uint64_t bytes);
bool limit_ceiling_is_possible(uint64_t bytes);
bool limit_check_ceiling(void);
const char *limit_why(void);

#endif /* SLAB_RECLAIM_LIMIT_H */
