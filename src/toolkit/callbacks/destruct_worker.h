/* SPDX-License-Identifier: MIT */
/* Destructors that the worker of callbacks runs (see destruct_worker.c). */
#ifndef RCU_DESTRUCT_WORKER_H
#define RCU_DESTRUCT_WORKER_H

#include "base/base.h"

struct prudence_cache;

void destruct_worker_start(void);

/* Returns whether the worker, in another thread, has the cache in hand. */
bool destruct_worker_serves(const struct prudence_cache *cache);

void destruct_worker_forget(void);

#endif /* RCU_DESTRUCT_WORKER_H */
