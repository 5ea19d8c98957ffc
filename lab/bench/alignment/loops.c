/* SPDX-License-Identifier: MIT */
/* The loops timed by prudence-alignment, linked into a module for each place. */
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <stdlib.h>

#include "alignment.h"

static struct prudence_cache *cache;
static size_t size;
static void *objects[PAIRS];

static inline void touch(void *object)
{
    if (!object)
        abort();
    *(volatile char *)object = 1;
}

#define LOOPS(name, allocate, retire)                                                              \
    static void name##_one_at_a_time(void)                                                         \
    {                                                                                              \
        for (unsigned i = 0; i < PAIRS; i++) {                                                     \
            void *object = allocate;                                                               \
                                                                                                   \
            touch(object);                                                                         \
            retire;                                                                                \
        }                                                                                          \
    }                                                                                              \
    static void name##_in_batches(void)                                                            \
    {                                                                                              \
        for (unsigned i = 0; i < PAIRS; i++)                                                       \
            touch(objects[i] = allocate);                                                          \
        for (unsigned i = 0; i < PAIRS; i++) {                                                     \
            void *object = objects[i];                                                             \
                                                                                                   \
            retire;                                                                                \
        }                                                                                          \
    }

LOOPS(deferred, prudence_cache_alloc(cache), prudence_cache_free_deferred(cache, object))
LOOPS(cache, prudence_cache_alloc(cache), prudence_cache_free(cache, object))
LOOPS(malloc, prudence_malloc(size), prudence_free(object))

static const struct aligned_loop loops[] = {
    {"cache, deferred free, one at a time", deferred_one_at_a_time},
    {"cache, deferred free, batches", deferred_in_batches},
    {"cache, free, one at a time", cache_one_at_a_time},
    {"cache, free, batches", cache_in_batches},
    {"malloc, free, one at a time", malloc_one_at_a_time},
    {"malloc, free, batches", malloc_in_batches},
    {NULL, NULL},
};

extern aligned_loops_function aligned_loops;

const struct aligned_loop *aligned_loops(size_t object_size)
{
    size = object_size;
    cache = prudence_cache_create("alignment", size, 0);
    if (!cache)
        abort();
    return loops;
}
