/* SPDX-License-Identifier: MIT */
/* Waits for the destructors of one cache (see destruct_barrier.c). */
#ifndef TOOLKIT_CALLBACKS_DESTRUCT_BARRIER_H
#define TOOLKIT_CALLBACKS_DESTRUCT_BARRIER_H

#include "base/base.h"

struct prudence_cache;

/* Waits until the destructors of all objects deferred before have returned. Runs destructors here,
 * or waits for the threads that do. Returns false at the deadline (0: none), when the destructor
 * that runs here has returned. The caller may wait for the program's code (may_wait.c). */
bool destruct_barrier(struct prudence_cache *cache, uint64_t deadline);

/* Same before the cache is destroyed, also for objects that destructors defer. Afterwards the
 * worker reads the cache no more. */
void destruct_barrier_until_empty(struct prudence_cache *cache);

#endif /* TOOLKIT_CALLBACKS_DESTRUCT_BARRIER_H */
