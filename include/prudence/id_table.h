/* SPDX-License-Identifier: MIT */
/*
 * A table from small numbers, which the table chooses, to the caller's objects: handles, sessions,
 * connections, semaphores. A lookup takes two loads, writes nothing, and does not wait. The array
 * grows while readers use it. They see the old array or the new one, and the old one is freed when
 * the readers have left. (P. McKenney, "Exploiting Deferred Destruction", 2004, section 6.1: the
 * arrays of System V IPC in Linux.)
 *
 *     prudence_read_lock();
 *     session = prudence_id_lookup(sessions, id);
 *     ...
 *     prudence_read_unlock();
 *
 * Conventions are those of <prudence/prudence.h>, and these:
 *  - Sections: lookups and walks are made inside a read-side section of the table's domain, or
 *    online there. The objects that they return stay valid until that section ends. Updates need no
 *    section; make them outside, so that deferrals may wait.
 *  - Ownership: objects belong to the caller. A removed or replaced object may be freed only after
 *    a grace period (prudence_free_deferred). The table allocates arrays, nothing else.
 *  - Fresh or stale: a lookup during a removal may return the object that is being removed. If that
 *    is not acceptable, give each object a lock and a flag `deleted`. The remover sets the flag
 *    under the lock; a reader that locks the object and finds the flag set behaves as if the lookup
 *    had returned NULL (docs/how-to/structures.md).
 *  - Identifiers are used again: the lowest free one comes next. A caller that keeps one across
 *    sections stores a number in the object, and compares.
 *  - Signals: lookups and walks are async-signal-safe; nothing else is.
 *  - Fork: a child may read and update: fork() waits until no thread is inside an update. A child
 *    of _Fork or clone may only read.
 */
#ifndef PRUDENCE_ID_TABLE_H
#define PRUDENCE_ID_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <prudence/language.h>
#include <prudence/prudence.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Private: the address of the array, with the logarithm of the size in the lowest 6 bits. One word,
 * so that a reader always has both, without fences or another load (docs/adr/0066).
 */
struct prudence_id_table {
    uintptr_t view;
};

#define PRUDENCE_ID_ORDER_MASK UINT64_C(63)

struct prudence_id_table_attr {
    size_t size;       /* sizeof(struct prudence_id_table_attr); new members may follow */
    uint32_t ids;      /* room for this number of ids at first; 0: 64 */
    uint32_t ids_most; /* identifiers are below this number; 0: below 2^32 - 1 */
    struct prudence_domain *domain; /* whose readers look objects up; NULL: the default domain */
};

/*
 * Makes an empty table; attr may be NULL. `name` appears in the statistics of the caches of arrays.
 * Returns NULL with errno EINVAL (a message on standard error names the cause) or ENOMEM.
 */
PRUDENCE_API struct prudence_id_table *
prudence_id_table_create(const char *name, const struct prudence_id_table_attr *attr);

/*
 * Destroys an empty table that nobody uses any more. Waits for the grace period of arrays that were
 * replaced. Returns 0, or an error number with the table as usable as before: EBUSY while the table
 * has objects, or in a handler of pthread_atfork; EDEADLK, with a report, where
 * prudence_domain_synchronize of the domain fails (inside a section); EINVAL for NULL.
 */
PRUDENCE_API int prudence_id_table_destroy(struct prudence_id_table *table);

/* ------------------------------------------------------------------------------------- readers */

/* Returns the object with this identifier, or NULL if there is none. Wait-free. */
static inline void *prudence_id_lookup(const struct prudence_id_table *table, uint32_t id)
{
    uintptr_t view = __atomic_load_n(&table->view, __ATOMIC_CONSUME);
    const uint64_t number = id;

    if (__builtin_expect(number >> (view & PRUDENCE_ID_ORDER_MASK) != 0, 0))
        return PRUDENCE_NULL;
    return __atomic_load_n(PRUDENCE_CAST(void *const *, view & ~PRUDENCE_ID_ORDER_MASK) + id,
                           __ATOMIC_CONSUME);
}

/*
 * Returns the object with the lowest identifier from *id on, and stores that identifier in *id.
 * Returns NULL if there is no more, with *id unchanged. Wait-free; a load for each identifier in
 * between.
 *
 *     prudence_id_for_each(table, id, object) { ... }     in the order of ids; break ends it early
 *
 * finds all objects that are in the table during the whole walk, exactly once if they keep their
 * identifiers. The walk may span several sections.
 */
PRUDENCE_API void *prudence_id_next(const struct prudence_id_table *table, uint32_t *id);

#define prudence_id_for_each(table, id, object)                                                    \
    for ((id) = 0; ((object) = prudence_id_next(table, &(id))) != PRUDENCE_NULL; (id)++)

/* ------------------------------------------------------------------------------------- writers */

/*
 * Each of these takes the lock of the table (a sleeping one) for a moment.
 *
 *  - insert gives the object, which is not NULL, the lowest free identifier, and stores that in *id
 *    before a reader can find the object (`id` may point into it). Returns 0, or an error number
 *    with the table as it was: ENOMEM, ENOSPC (as many objects as ids_most), EINVAL (NULL). Cost:
 *    some loads; if there is no room, an array of twice the size, to which all pointers are copied
 *    under the lock; the old one is deferred.
 *  - replace puts `object`, not NULL, in the place of the one with this identifier, and returns the
 *    old one; NULL: there was none, and nothing is done.
 *  - remove returns the object and frees the identifier; NULL: there is none. So if several threads
 *    remove one identifier, one gets the object, and defers it.
 */
PRUDENCE_API int prudence_id_insert(struct prudence_id_table *table, void *object, uint32_t *id);
PRUDENCE_API void *prudence_id_replace(struct prudence_id_table *table, uint32_t id, void *object);
PRUDENCE_API void *prudence_id_remove(struct prudence_id_table *table, uint32_t id);

/* ---------------------------------------------------------------------------------- statistics */

/* Returns the number of objects. */
PRUDENCE_API uint64_t prudence_id_count(const struct prudence_id_table *table);

struct prudence_id_table_stats {
    uint64_t objects;
    uint64_t slots;        /* identifiers that fit into the array */
    uint64_t grows;        /* number of times the array grew */
    uint64_t bytes_live;   /* of the table, its array and the map of free identifiers */
    uint64_t bytes_latent; /* of replaced arrays that wait for readers */
};

/*
 * Fills `stats`, of which the caller was compiled with `size` bytes. Returns 0, or EINVAL for NULL.
 */
PRUDENCE_API int prudence_id_table_stats_sized(struct prudence_id_table *table,
                                               struct prudence_id_table_stats *stats, size_t size);

#define prudence_id_table_stats(table, stats)                                                      \
    prudence_id_table_stats_sized(table, stats, sizeof *(stats))

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_ID_TABLE_H */
