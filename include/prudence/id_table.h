/* SPDX-License-Identifier: MIT */
/*
 * A table from small numbers, which the table chooses, to the caller's objects: handles, sessions,
 * connections, semaphores. A lookup takes two loads, writes nothing, and does not wait. The array
 * grows while readers use it. They see the old array or the new one, and the old one is freed when
 * the readers have ended. (P. McKenney, "Exploiting Deferred Destruction", 2004, section 6.1: the
 * arrays of System V IPC in Linux.)
 *
 *     prudence_read_lock();
 *     session = prudence_id_table_lookup(sessions, id);
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

#define PRUDENCE_ID_TABLE_ORDER_MASK UINT64_C(63)

/* Attributes of a table, used as those of <prudence/hash.h>. */
struct prudence_id_table_attr {
    size_t size;                    /* sizeof(struct prudence_id_table_attr) */
    uint32_t ids;                   /* room for this number of ids at first; 0: 64 */
    uint32_t ids_most;              /* identifiers are below this number; 0: below 2^32 - 1 */
    struct prudence_domain *domain; /* whose readers look objects up; NULL: the default domain */
};

/*
 * Makes an empty table; attr may be NULL, which means defaults. `name` appears in the statistics of
 * the caches of arrays, made when they are needed. Returns NULL with errno EINVAL (a message on
 * standard error names the cause), or ENOMEM.
 */
PRUDENCE_API struct prudence_id_table *
prudence_id_table_create(const char *name, const struct prudence_id_table_attr *attr);

/*
 * Destroys a table that no thread uses any more. Calls dispose(object, argument) for each object,
 * in the order of identifiers; the object may be freed at once there. If `dispose` is NULL the
 * table must be empty. Waits for the grace period of arrays that were replaced. Returns 0, or an
 * error number with the table as usable as before: EBUSY while the table has objects and there is
 * no `dispose`, or in a handler of pthread_atfork; EDEADLK, with a report, where
 * prudence_domain_synchronize of the domain fails (inside a section), and online in any qsbr
 * domain; EINVAL for NULL. `dispose` must not use the table.
 * Destroy the table before the caches of its objects, and those before the domain.
 */
PRUDENCE_API int prudence_id_table_destroy(struct prudence_id_table *table,
                                           void (*dispose)(void *object, void *argument),
                                           void *argument);

/* ------------------------------------------------------------------------------------- readers */

/* Returns the object with this identifier, or NULL if there is none. Wait-free. */
PRUDENCE_INLINE void *prudence_id_table_lookup(const struct prudence_id_table *table, uint32_t id)
{
    uintptr_t view = __atomic_load_n(&table->view, __ATOMIC_CONSUME);
    const uint64_t number = id;

    if (__builtin_expect(number >> (view & PRUDENCE_ID_TABLE_ORDER_MASK) != 0, 0))
        return PRUDENCE_NULL;
    return __atomic_load_n(PRUDENCE_CAST(void *const *, view & ~PRUDENCE_ID_TABLE_ORDER_MASK) + id,
                           __ATOMIC_CONSUME);
}

/*
 * Walks over all objects, or those from an identifier on, in the order of identifiers:
 *
 *     prudence_id_table_for_each(&walk, table, object) { ... walk.id ... }
 *
 * break ends it early; the body may update the table. The walk finds all objects that are in the
 * table during the whole walk, exactly once if they keep their identifiers. The walk may span
 * several sections. Each step is wait-free, with a load for each identifier in between.
 */
struct prudence_id_table_walk {
    uint32_t id;                           /* of the object found */
    const struct prudence_id_table *table; /* private */
};

PRUDENCE_API void *prudence_id_table_first(struct prudence_id_table_walk *walk,
                                           const struct prudence_id_table *table);
PRUDENCE_API void *prudence_id_table_first_from(struct prudence_id_table_walk *walk,
                                                const struct prudence_id_table *table, uint32_t id);
PRUDENCE_API void *prudence_id_table_next(struct prudence_id_table_walk *walk);

#define prudence_id_table_for_each(walk, table, place)                                             \
    for ((place) = prudence_id_table_first(walk, table); (place);                                  \
         (place) = prudence_id_table_next(walk))

/* ------------------------------------------------------------------------------------- writers */

/*
 * Each of these takes the lock of the table (a sleeping one) for a moment. They return 0, or an
 * error number with the table as it was: EINVAL for NULL instead of the table, an object or `id`.
 * `old` may be NULL; otherwise the object that had the identifier is stored there, or NULL if there
 * was none or an argument is wrong.
 *
 *  - add gives the object the lowest free identifier, and stores that in *id before a reader can
 *    find the object (`id` may point into it). ENOMEM; ENOSPC: as many objects as ids_most. Cost:
 *    some loads; if there is no room, an array of twice the size, to which all pointers are copied
 *    under the lock; the old one is deferred.
 *  - replace puts `object` in the place of the one with this identifier. ENOENT: there was none;
 *    EINVAL, with a report: `object` has the identifier already.
 *  - erase takes the identifier and its object out. ENOENT: there is none. So if several threads
 *    erase one identifier, one gets the object, and defers it.
 */
PRUDENCE_API int prudence_id_table_add(struct prudence_id_table *table, void *object, uint32_t *id);
PRUDENCE_API int prudence_id_table_replace(struct prudence_id_table *table, uint32_t id,
                                           void *object, void **old);
PRUDENCE_API int prudence_id_table_erase(struct prudence_id_table *table, uint32_t id, void **old);

/* ---------------------------------------------------------------------------------- statistics */

/* Returns the number of objects. */
PRUDENCE_API uint64_t prudence_id_table_count(const struct prudence_id_table *table);

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
