/* SPDX-License-Identifier: MIT */
/*
 * The extension check keeps the state of each object, and the calls that allocated and released the
 * object (see check.c). Used for caches made with check=1, quarantine or shuffle, and for guarded
 * objects.
 */
#ifndef GUARD_CHECK_H
#define GUARD_CHECK_H

#include "guard/settings.h"
#include "guard/stack_depot.h"
#include "slab/extension.h"
#include "slab/slab.h"

enum { CHECK_EXTENSION = 3 }; /* number of the extension */
extern const struct slab_extension check_extension;

enum object_state { OBJECT_FREE, OBJECT_LIVE, OBJECT_LATENT };

/* An object's word has the state, a flag that says whether the last release was a deferral, and the
 * numbers of two traces (0 if unknown), of the last allocation and of that release. */
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
    return load_relaxed(&cache->extensions) & EXTENSION_BIT(CHECK_EXTENSION);
}

/* Returns the words of a checked slab, one for each object, changed atomically; NULL if not
 * checked. */
static inline uint64_t *object_words(const struct slab *slab)
{
    return slab->side[CHECK_EXTENSION];
}

/* Moves an object of a checked slab from one state to another, and reports an object in any other
 * state. */
void check_state_change(const struct slab *slab, const void *object, enum object_state from,
                        enum object_state to, const char *what);

/* Upcalls of the heap (heap/upcalls.h). */
void check_resizes(struct slab *slab, bool begins);
uint32_t check_trace(const struct prudence_cache *cache);
void check_live_explain(const struct prudence_cache *cache);

/* Writes the calls that allocated and released the object of this word. */
void check_print_word(uint64_t word);

#endif /* GUARD_CHECK_H */
