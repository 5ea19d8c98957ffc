/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Pre-flush moves latent objects to their latent slabs in idle time. */
#ifndef SLAB_PREFLUSH_H
#define SLAB_PREFLUSH_H

#include "base/base.h"

struct cpu_cache;
struct prudence_cache;

extern bool preflush_enabled;
bool preflush_start(void);
void preflush_stop(void);
void preflush_schedule(struct prudence_cache *cache, struct cpu_cache *cpu);
unsigned preflush_cpu(struct prudence_cache *cache, unsigned cpu, unsigned batches);
bool preflush_work(void);
void preflush_start_helper(void);
void preflush_forget(struct prudence_cache *cache);
void preflush_pause(void);
void preflush_fork_child(void);
void preflush_go_on(void);

#endif /* SLAB_PREFLUSH_H */
