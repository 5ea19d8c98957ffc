/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The object cache is a CPU's stack of free objects. Only the owner calls these functions. */
#ifndef SLAB_OBJECT_CACHE_H
#define SLAB_OBJECT_CACHE_H

#include "base/base.h"

struct cpu_cache;

void *object_cache_pop(struct cpu_cache *cpu);
bool object_cache_is_top(const struct cpu_cache *cpu, const void *object);
unsigned object_cache_push(struct cpu_cache *cpu, void **objects, unsigned count);
unsigned object_cache_take(struct cpu_cache *cpu, void **objects, unsigned count);
unsigned object_cache_take_coldest(struct cpu_cache *cpu, void **objects, unsigned count);
unsigned object_cache_flush_count(const struct cpu_cache *cpu);

#endif /* SLAB_OBJECT_CACHE_H */
