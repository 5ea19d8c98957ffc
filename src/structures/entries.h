/* SPDX-License-Identifier: MIT */
/*
 * Entries of tables of values (<prudence/map_values.h>, <prudence/hash_values.h>): objects that a table makes, of a head that the table
 * knows, and a copy of a key that is a string. They come from caches of the table, in its domain: of one size where keys are numbers; of
 * powers of two for strings, and of whole pages beyond. So they count in the table's statistics, and wait for its readers.
 *
 * All may be called by many threads at once. To allocate and to defer may wait (latent_limit): outside of sections, with no lock held.
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
    size_t head; /* bytes of an entry without its string; constant, as is the next */
    size_t
        smallest; /* bytes of an entry of the first cache; so many are all where keys are numbers */
    unsigned classes; /* caches; 1: for numbers. Of strings, the last one has pages */
    struct prudence_cache *caches[ENTRY_CLASSES_MOST];
    uint64_t large_bytes; /* of entries with pages of their own; atomic */
};

/* In *entries, which is 0. False: there is no memory; what was made is destroyed by entries_destroy. */
bool entries_make(struct entries *entries, const char *name, struct prudence_domain *domain,
                  size_t head, bool strings);

/* Waits for the readers of those that were deferred; all are freed or deferred. */
void entries_destroy(struct entries *entries);

/* `length`: of the string, which has to be the same again when the entry goes; of a number, anything. */
void *entries_alloc(struct entries *entries, size_t length);
void entries_free(struct entries *entries, void *entry, size_t length);
void entries_defer(struct entries *entries, void *entry, size_t length);

/* What is allocated and not deferred, and what is deferred. */
void entries_add_bytes(const struct entries *entries, uint64_t *live, uint64_t *latent);

#endif /* STRUCTURES_ENTRIES_H */
