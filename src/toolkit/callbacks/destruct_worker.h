/* SPDX-License-Identifier: MIT */
/* Destructors that the worker of callbacks runs (see destruct_worker.c). */
#ifndef TOOLKIT_CALLBACKS_DESTRUCT_WORKER_H
#define TOOLKIT_CALLBACKS_DESTRUCT_WORKER_H

#include "base/base.h"

struct prudence_cache;

void destruct_worker_start(void);

/* Returns whether the worker, in another thread, has the cache in hand. */
bool destruct_worker_serves(const struct prudence_cache *cache);

void destruct_worker_forget(void);

#endif /* TOOLKIT_CALLBACKS_DESTRUCT_WORKER_H */
