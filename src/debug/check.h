/* SPDX-License-Identifier: MIT */
/*
 * The extension check: the state of each object, and which calls allocated and released it (see check.c). For caches
 * made with check=1 or quarantine, and for guarded objects.
 */
#ifndef DEBUG_CHECK_H
#define DEBUG_CHECK_H

#include "debug/settings.h"
#include "slab/extension.h"
#include "slab/slab.h"

enum { CHECK_EXTENSION = 3 }; /* its number */
extern const struct slab_extension check_extension;

enum object_state { OBJECT_FREE, OBJECT_LIVE, OBJECT_LATENT };

/* An object's word: its state, whether it was deferred when it was last released, and the numbers of
 * two traces (0: unknown): of its last allocation and of that release. */
#define TRACE_BITS    30
#define WORD_DEFERRED ((uint64_t)4)
static inline enum object_state state_of_word(uint64_t word)
{
    return (enum object_state)(word & 3);
}
static inline uint32_t allocation_trace_of_word(uint64_t word)
{
    return (uint32_t)(word >> 3 & ((UINT64_C(1) << TRACE_BITS) - 1));
}
static inline uint32_t release_trace_of_word(uint64_t word)
{
    return (uint32_t)(word >> (3 + TRACE_BITS));
}

static inline bool is_checked(const struct prudence_cache *cache)
{
    return cache->extensions & EXTENSION_BIT(CHECK_EXTENSION);
}

/* A word for each object of a checked slab, changed atomically; NULL: it is not checked. */
static inline uint64_t *object_words(const struct slab *slab)
{
    return slab->side[CHECK_EXTENSION];
}

/* From one state to another; an object that is not in the first is reported. `slab` is checked. */
void object_state_change(const struct slab *slab, const void *object, enum object_state from,
                         enum object_state to, const char *what);

#endif /* DEBUG_CHECK_H */
