/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The account of deferred bytes that are not merged yet, bounded by the limit in force. */
#ifndef SLAB_RECLAIM_LIMIT_H
#define SLAB_RECLAIM_LIMIT_H

#include "os/os.h"

extern uint64_t slab_growth_limit; /* latent bytes past which growing waits; 0: none */
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

#endif /* SLAB_RECLAIM_LIMIT_H */
