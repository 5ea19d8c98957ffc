/* SPDX-License-Identifier: MIT */
/*
 * Entries of tables of values (<prudence/map_values.h>, <prudence/hash_values.h>): objects that a
 * table allocates, each with a head known to the table and, if keys are strings, a copy of the key.
 * They come from caches in the table's domain: one for number keys; for strings, some of powers of
 * two and one of whole pages, each made when it is needed. So they count in the table's statistics
 * and wait for the table's readers.
 *
 * Many threads may allocate, free and defer entries at once. Allocating and deferring may wait
 * (latent_limit), so callers do both outside of sections, with no lock held.
 */
#ifndef TABLES_ENTRIES_H
#define TABLES_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tables/own_cache.h"

#define ENTRY_CLASSES_MOST 6u

struct entries {
    size_t head;      /* bytes without the string; constant, like the next two */
    size_t smallest;  /* bytes of an entry of the first cache */
    unsigned classes; /* number of caches; 1 for number keys. For strings, the last one has pages */
    const struct cache_owner *owner;                   /* constant */
    struct prudence_cache *caches[ENTRY_CLASSES_MOST]; /* NULL until needed (own_cache.h) */
    uint64_t large_bytes; /* bytes of entries with pages of their own; atomic */
};

/* Fills *entries, which is 0. */
void entries_init(struct entries *entries, const struct cache_owner *owner, size_t head,
                  bool strings);

/* Waits for the readers of deferred entries. The caller has freed or deferred every entry. */
void entries_destroy(struct entries *entries);

/* Allocates an entry for a string of `length` bytes; the caller frees it with the same length. For
 * numbers, any length will do. */
void *entries_alloc(struct entries *entries, size_t length);
void entries_free(struct entries *entries, void *entry, size_t length);
void entries_defer(struct entries *entries, void *entry, size_t length);

/* Adds the bytes of live entries to *live and those of deferred entries to *latent. */
void entries_add_bytes(const struct entries *entries, uint64_t *live, uint64_t *latent);

#endif /* TABLES_ENTRIES_H */
