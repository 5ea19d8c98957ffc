/* SPDX-License-Identifier: MIT */
/*
 * A hash table of values, in which each key, a 64-bit number or a byte string, leads to a pointer.
 * The program needs neither objects with nodes nor a hash function. The table makes, defers and
 * frees the entries, with a copy of the key, and hashes keys by SipHash-1-3 with a secret. So keys
 * may come from the network: an attacker who does not know the secret cannot choose keys that make
 * long chains. The table builds on <prudence/hash.h>, and grows and shrinks in the same way while
 * readers search it. docs/adr/0067 has the reasons. <prudence/map_values.h> has keys in their
 * order, with the same operations.
 *
 *     prudence_hash_values_put(sessions, number, session, &old);
 *     ...
 *     prudence_read_lock();
 *     session = prudence_hash_values_get(sessions, number);
 *     ...
 *     prudence_read_unlock();
 *
 * Conventions are those of <prudence/prudence.h>, and these:
 *  - Sections: the functions of readers are called inside a read-side section of the table's
 *    domain, or online there. Make updates outside of sections, because they may wait to keep
 *    latent memory below the limit. (In a qsbr domain the thread is online. Sets and external
 *    domains have no sections of their own, so the caller's thread is inside one of a member, or of
 *    the other scheme.)
 *  - Values are the caller's pointers, and not NULL. The table never reads their targets.
 *    Readers may still have found a value that an update takes out, so defer the target. Integers
 *    may be values, too, if none is 0.
 *  - Keys: a table has numbers, or byte strings (PRUDENCE_HASH_VALUES_BYTES) of any length and any
 *    bytes, which are copied. With a key of the other kind a function finds nothing.
 *  - Memory: 32 bytes for each number; for each string 32 bytes and the string, rounded up to a
 *    power of two and at least 64, or from 481 bytes of string on to whole pages; and the array of
 *    buckets, 8 to 16 bytes for each key. A value is changed in place, which needs no memory, and
 *    leaves none to defer.
 *  - Signals: the functions of readers are async-signal-safe; no other is.
 *  - Fork: as with <prudence/hash.h>, a child may read and update. The child loses the entry that
 *    another thread was about to add or to defer, at most one for each such thread, until it
 *    destroys the table. A child has the parent's secret. A child of _Fork or clone may only read.
 *  - Order: a reader that finds a value sees everything that the writer wrote before putting the
 *    value there. Each call takes effect at one moment between call and return, so every search
 *    that begins after an update has returned sees that update.
 */
#ifndef PRUDENCE_HASH_VALUES_H
#define PRUDENCE_HASH_VALUES_H

#include <prudence/hash.h>

#ifdef __cplusplus
extern "C" {
#endif

struct prudence_hash_values;

/* ------------------------------------------------------------------------ making and destroying */

/* Attributes of a table, used as those of <prudence/hash.h>. */
struct prudence_hash_values_attr {
    size_t size;           /* sizeof(struct prudence_hash_values_attr) */
    uint64_t buckets;      /* initial and smallest number; rounded up to a power of two; 0: 64 */
    uint64_t buckets_most; /* largest number; rounded up; 0: no bound but memory */
    unsigned flags;        /* of enum prudence_hash_values_flags */
    unsigned reserved;     /* 0 */
    struct prudence_domain *domain; /* whose readers search the table; NULL: the default domain */
};

/* Flags of prudence_hash_values_attr.flags. */
enum prudence_hash_values_flags {
    PRUDENCE_HASH_VALUES_BYTES = 1 << 1, /* keys are byte strings; otherwise 64-bit numbers */
};

/*
 * Makes an empty table; attr may be NULL, which means defaults. `name` appears in the statistics of
 * the caches. Returns NULL with errno EINVAL (a message on standard error names the
 * cause), or ENOMEM.
 */
PRUDENCE_API struct prudence_hash_values *
prudence_hash_values_create(const char *name, const struct prudence_hash_values_attr *attr);

/*
 * Destroys a table that no thread uses any more. Calls dispose(value, argument) for each value, in
 * no order. If `dispose` is NULL the table must be empty. Waits for the grace period of deferred
 * memory. Returns 0, or an error number with the table as usable as before: EBUSY while the table
 * has values and there is no `dispose`, or in a handler of pthread_atfork; EDEADLK, with a report,
 * where prudence_domain_synchronize of the domain fails (inside a section), and online in any qsbr
 * domain; EINVAL for NULL. `dispose` must not use the table.
 */
PRUDENCE_API int prudence_hash_values_destroy(struct prudence_hash_values *table,
                                              void (*dispose)(void *value, void *argument),
                                              void *argument);

/* ------------------------------------------------------------------------------------- readers */

/*
 * Returns the value of the key, or NULL if there is none. Lock-free, and wait-free except for keys
 * of the same bucket that are added during the search. Cost: the hash, with 5 rounds for a number
 * and one more for each 8 bytes of string, and a lookup of <prudence/hash.h>.
 */
PRUDENCE_API void *prudence_hash_values_get(const struct prudence_hash_values *table, uint64_t key);
PRUDENCE_API void *prudence_hash_values_get_bytes(const struct prudence_hash_values *table,
                                                  const void *bytes, size_t length);

/*
 * Walks over all values with their keys, in no order, all in one section:
 *
 *     prudence_hash_values_for_each(&walk, table, value) {
 *         ... walk.key, or walk.bytes, walk.length ...
 *     }
 *
 * break ends it early; the body may update the table. The walk finds a key exactly once if the key
 * is there during the whole walk, with a value that the key had at a moment of the walk, and a key
 * that is added or erased during the walk at most once.
 */
struct prudence_hash_values_walk {
    uint64_t key;      /* the number of the value found, ... */
    const void *bytes; /* ... or the string, valid until the section ends */
    size_t length;
    struct prudence_hash_walk walk; /* private, like `strings` */
    bool strings;
};

PRUDENCE_API void *prudence_hash_values_first(struct prudence_hash_values_walk *walk,
                                              const struct prudence_hash_values *table);
PRUDENCE_API void *prudence_hash_values_next(struct prudence_hash_values_walk *walk);

#define prudence_hash_values_for_each(walk, table, place)                                          \
    for ((place) = prudence_hash_values_first(walk, table); (place);                               \
         (place) = prudence_hash_values_next(walk))

/* ------------------------------------------------------------------------------------- writers */

/*
 * Each update is one step for readers, and locks one bucket while searching there. Cost: the hash,
 * a search under the lock, and an entry that is allocated or deferred when a key comes or goes.
 * They return 0, or an error number with the table as it was: ENOMEM, only if the key has no value;
 * EINVAL: NULL for the table or a value, or a key of the other kind. The last argument of put, add
 * and erase may be NULL; otherwise the value that the key had is stored there, or NULL if it had
 * none or an argument is wrong.
 *
 *  - add gives the key this value only if the key has none; otherwise EEXIST. (Another thread may
 *    take the value in *there out; look the value up in a section before you use the target.)
 *  - put gives the key this value. If the key has the value already, *old is that value, which the
 *    table still has: compare the two before you defer a target.
 *  - replace puts `fresh` in the place of `old`, if the key has the value `old`; otherwise ENOENT.
 *    EINVAL, with a report: they are the same.
 *    Needs no memory.
 *  - erase takes the key and its value out; ENOENT if the key has none. Needs no memory.
 *
 * If several threads replace or erase one value, one gets it, and defers its target.
 */
PRUDENCE_API int prudence_hash_values_add(struct prudence_hash_values *table, uint64_t key,
                                          void *value, void **there);
PRUDENCE_API int prudence_hash_values_add_bytes(struct prudence_hash_values *table,
                                                const void *bytes, size_t length, void *value,
                                                void **there);
PRUDENCE_API int prudence_hash_values_put(struct prudence_hash_values *table, uint64_t key,
                                          void *value, void **old);
PRUDENCE_API int prudence_hash_values_put_bytes(struct prudence_hash_values *table,
                                                const void *bytes, size_t length, void *value,
                                                void **old);
PRUDENCE_API int prudence_hash_values_replace(struct prudence_hash_values *table, uint64_t key,
                                              void *old, void *fresh);
PRUDENCE_API int prudence_hash_values_replace_bytes(struct prudence_hash_values *table,
                                                    const void *bytes, size_t length, void *old,
                                                    void *fresh);
PRUDENCE_API int prudence_hash_values_erase(struct prudence_hash_values *table, uint64_t key,
                                            void **old);
PRUDENCE_API int prudence_hash_values_erase_bytes(struct prudence_hash_values *table,
                                                  const void *bytes, size_t length, void **old);

/* ---------------------------------------------------------------------------------- statistics */

/* Returns the number of keys with a value, like prudence_hash_count. */
PRUDENCE_API uint64_t prudence_hash_values_count(const struct prudence_hash_values *table);

/* Works like prudence_hash_stats_sized; entries count in bytes_live and bytes_latent. */
PRUDENCE_API int prudence_hash_values_stats_sized(struct prudence_hash_values *table,
                                                  struct prudence_hash_stats *stats, size_t size);

#define prudence_hash_values_stats(table, stats)                                                   \
    prudence_hash_values_stats_sized(table, stats, sizeof *(stats))

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_HASH_VALUES_H */
