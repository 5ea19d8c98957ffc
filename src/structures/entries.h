/* SPDX-License-Identifier: MIT */
/*
 * Entries of tables of values (<prudence/map_values.h>, <prudence/hash_values.h>): objects that a
 * table allocates, each with a head that the table knows and, in a table of strings, a copy of the
 * key. Entries come from caches of the table, in the table's domain: one cache of a single size for
 * number keys; for strings, caches of powers of two and one of whole pages. So entries count in the
 * table's statistics and wait for the table's readers.
 *
 * Any number of threads may allocate, free and defer entries at once. Allocating and deferring may
 * wait (latent_limit), so callers do both outside of sections, with no lock held.
 */
#ifndef STRUCTURES_ENTRIES_H
#define STRUCTURES_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct prudence_cache;
struct prudence_domain;

#define ENTRY_CLASSES_MOST 6u

struct entries {
    size_t head;      /* bytes of an entry without the string; constant, like the next three */
    size_t smallest;  /* bytes of an entry of the first cache */
    unsigned classes; /* number of caches; 1 for number keys. For strings, the last one has pages */
    struct prudence_cache *caches[ENTRY_CLASSES_MOST];
    uint64_t large_bytes; /* bytes of entries with pages of their own; atomic */
};

/* Creates the caches in *entries, which the caller has zeroed. Returns false if there is no memory;
 * entries_destroy then destroys the caches that were made. */
bool entries_make(struct entries *entries, const char *name, struct prudence_domain *domain,
                  size_t head, bool strings);

/* Waits for the readers of deferred entries. The caller has freed or deferred every entry. */
void entries_destroy(struct entries *entries);

/* Allocates an entry for a string of `length` bytes. The caller passes the same length when the
 * entry goes. Tables of numbers may pass any length. */
void *entries_alloc(struct entries *entries, size_t length);
void entries_free(struct entries *entries, void *entry, size_t length);
void entries_defer(struct entries *entries, void *entry, size_t length);

/* Adds the bytes of live entries to *live and those of deferred entries to *latent. */
void entries_add_bytes(const struct entries *entries, uint64_t *live, uint64_t *latent);

#endif /* STRUCTURES_ENTRIES_H */
