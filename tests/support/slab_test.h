/* SPDX-License-Identifier: MIT */
/*
 * What the deterministic tests of slab/ and heap/ have in common: a manual domain, caches of a
 * fixed object-cache size, pinning, books that must balance, memory that fails on demand, and
 * deaths with a message.
 */
#ifndef TESTS_SUPPORT_SLAB_TEST_H
#define TESTS_SUPPORT_SLAB_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

/* Large enough for whatever a test holds at a time. */
#define OBJECTS_MAX 8192

/* This thread stays on one CPU from now on (the first it may use), so that it always meets the same
 * per-CPU caches. Returns which. */
unsigned pin_thread(void);

/* Pretends 64 CPUs on 4 nodes; this thread runs on `injected_cpu`. Before any cache is made. */
extern unsigned injected_cpu;
void inject_topology(void);

/* A domain whose grace periods end when the test says so. */
struct prudence_domain *manual_domain(void);

/* A cache of that domain whose object caches always have room for `objects` (a multiple of 2, at
 * most twice a batch); 0: default sizes, that follow demand. */
struct prudence_cache *fixed_cache(size_t object_size, unsigned objects,
                                   struct prudence_domain *domain);

/* The caches of the CPU that this thread runs on. */
struct cpu_cache *cpu_here(struct prudence_cache *cache);

/* Allocates `count` objects, all of them, or fails the test. */
void allocate_all(struct prudence_cache *cache, void **objects, unsigned count);
void defer_all(struct prudence_cache *cache, void **objects, unsigned count);
void free_all(struct prudence_cache *cache, void **objects, unsigned count);

/* Allocates straight from a node, past the object cache; all of them, or fails the test. */
void node_take_all(struct prudence_cache *cache, struct slab_node *node, void **objects,
                   unsigned count);

struct prudence_cache_stats stats_of(struct prudence_cache *cache);
bool contains(void *const *objects, unsigned count, const void *object);

/* Every invariant of slab.h, node.h and cpu_cache.h that can be counted: bitmaps, lists, lines; and that live, latent,
 * cached and free objects add up to all slabs' objects. */
void check_books(struct prudence_cache *cache);

/* Everything goes back: no object live or latent, destroy succeeds. Ends grace periods itself. */
void destroy_empty(struct prudence_cache *cache);

/* Objects filled with a pattern of their address (large ones here and there, on each page); whether they
 * still have it. */
void fill_pattern(void *object, size_t size);
bool has_pattern(const void *object, size_t size);

/* The calls to the page source, metadata and page map from now on are counted; those numbered
 * from `first` on fail, `count` of them. */
extern unsigned memory_calls;
void memory_fail(unsigned first, unsigned count);
void memory_succeed(void);

/* Runs `act` in a child that must abort after it wrote a line that contains each of the (up to
 * three) texts on standard error; NULL: no further text. */
void expect_death(void (*act)(void *), void *argument, const char *text, const char *more,
                  const char *yet_more);

/* Runs `act` in a child that this signal must end; what it wrote on standard error is in `output`. */
void expect_signal(int number, void (*act)(void *), void *argument, char *output, size_t size);
void expect_text(const char *output, const char *text);

/* Runs `act` in a child that must exit normally; what it wrote on standard error is in `output`. */
void expect_life(void (*act)(void *), void *argument, char *output, size_t size);

#endif /* TESTS_SUPPORT_SLAB_TEST_H */
