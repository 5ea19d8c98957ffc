/* SPDX-License-Identifier: MIT */
/*
 * Common parts of the deterministic tests of slab/ and heap/: a manual domain, caches with a fixed
 * object-cache size, pinning, checks that the books balance, memory that fails on demand, and
 * deaths with a message.
 */
#ifndef TESTS_SUPPORT_SLAB_TEST_H
#define TESTS_SUPPORT_SLAB_TEST_H

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "slab/cpu_cache.h"
#include "slab/node.h"
#include "support/gp_child.h"
#include "support/suite.h"

/* Large enough for all objects a test holds at a time. */
#define OBJECTS_MAX 8192

/* Pins this thread to the first CPU it may use, so that it always uses the same per-CPU caches.
 * Returns that CPU. */
unsigned pin_thread(void);

/* Pretends 64 CPUs on 4 nodes, with this thread on `injected_cpu`. Call before any cache is
 * made. */
extern unsigned injected_cpu;
void inject_topology(void);

/* Creates a domain whose grace periods end when the test says so. */
struct prudence_domain *manual_domain(void);

/* Ends enough grace periods of the manual domain to make all deferred objects safe and merge
 * them. */
void all_readers_leave(struct prudence_domain *domain);

/* Creates a cache of that domain whose object caches always have room for `objects` (a multiple of
 * 2, at most twice a batch). 0 means default sizes, which follow demand. */
struct prudence_cache *fixed_cache(size_t object_size, unsigned objects,
                                   struct prudence_domain *domain);

/* Returns the caches of the CPU that this thread runs on. */
struct cpu_cache *cpu_here(struct prudence_cache *cache);

/* Allocates all `count` objects, or fails the test. */
void allocate_all(struct prudence_cache *cache, void **objects, unsigned count);
void defer_all(struct prudence_cache *cache, void **objects, unsigned count);
void free_all(struct prudence_cache *cache, void **objects, unsigned count);

/* Allocates all `count` objects straight from a node, bypassing the object cache, or fails the
 * test. */
void node_take_all(struct prudence_cache *cache, struct slab_node *node, void **objects,
                   unsigned count);

struct prudence_cache_stats stats_of(struct prudence_cache *cache);
bool contains(void *const *objects, unsigned count, const void *object);

/* Checks every countable invariant of slab.h, node.h and cpu_cache.h: bitmaps, lists and lines, and
 * that live, latent, cached and free objects add up to all slabs' objects. */
void check_books(struct prudence_cache *cache);

/* Ends grace periods, gives everything back, checks that no object is live or latent, and destroys
 * the cache. */
void destroy_empty(struct prudence_cache *cache);

/* Fill objects with a pattern of their address (large ones sparsely, on each page), and check that
 * pattern. */
void fill_pattern(void *object, size_t size);
bool has_pattern(const void *object, size_t size);

/* Counts calls to the page source, metadata and page map from now on, and makes `count` of them
 * fail, starting with call number `first`. */
extern unsigned memory_calls;
void memory_fail(unsigned first, unsigned count);
void memory_succeed(void);

/* Runs `act` in a child that must exit normally; `output` gets the child's standard error. */
void expect_life(void (*act)(void *), void *argument, char *output, size_t size);
void expect_text(const char *output, const char *text);

#endif /* TESTS_SUPPORT_SLAB_TEST_H */
