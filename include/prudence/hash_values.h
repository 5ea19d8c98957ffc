/* SPDX-License-Identifier: MIT */
/*
 * A hash table of values: each key, a 64-bit number or a byte string, leads to a pointer. The program needs neither objects with
 * nodes nor a hash function: the table makes, defers and frees what it needs, with a copy of the key, and hashes keys by SipHash-1-3 with a
 * secret of its own. So keys may come from the network: an attacker that does not know the secret cannot choose keys that make long chains.
 * It is built on the table of <prudence/hash.h>, and grows and shrinks as that one does, while readers search it. Why it is done so:
 * docs/adr/0087. Keys in their order, with the same operations: <prudence/map_values.h>.
 *
 *     prudence_hash_values_put(sessions, number, session, &old);
 *     ...
 *     prudence_read_lock();
 *     session = prudence_hash_values_get(sessions, number);
 *     ...
 *     prudence_read_unlock();
 *
 * Conventions of <prudence/prudence.h>, and these:
 *  - Sections: the functions of readers are called inside a read-side section of the table's domain, or online in it. Make updates outside of
 *    sections: they may wait, to keep latent memory below its limit. (In a qsbr domain the thread is online; in a set or an external domain,
 *    which have no sections of their own, the caller's thread is inside one of a member, or of the other scheme.)
 *  - Values are the caller's pointers, and not NULL. The table never looks at what they lead to. What an update takes out, readers may
 *    still have found: defer it. Integers may be values, too, if none is 0.
 *  - Keys: a table has numbers, or byte strings (PRUDENCE_HASH_BYTES) of any length and any bytes, which are copied. With a key of the other
 *    kind a function finds nothing.
 *  - Memory: 32 bytes for each number; for each string 32 bytes and the string, rounded up to a power of two and at least 64, or from 481 bytes
 *    of string on to whole pages; and the array of buckets, 8 to 16 bytes for each key. A value is changed where it is: that needs no memory, and leaves none to defer.
 *  - Signals: the functions of readers are async-signal-safe; no other is.
 *  - Fork: as with <prudence/hash.h>, a child may read and update. What another thread was about to add or to defer is lost in the child: an entry for
 *    each such thread. A child has its parent's secret. A child of _Fork or clone may only read.
 *  - Order: a reader that finds a value sees what its writer wrote before it put it there. Each call takes effect at one moment between its
 *    beginning and its return: once an update has returned, every search that begins afterwards sees it.
 */
#ifndef PRUDENCE_HASH_VALUES_H
#define PRUDENCE_HASH_VALUES_H

#include <prudence/hash.h>

#ifdef __cplusplus
extern "C" {
#endif

struct prudence_hash_values;

/* ------------------------------------------------------------------------ making and destroying */

/*
 * Makes an empty table; attr may be NULL. `name` stands in the statistics of its caches. Of the flags only PRUDENCE_HASH_BYTES may be set.
 * NULL with errno EINVAL (a message on standard error names the cause) or ENOMEM.
 */
PRUDENCE_API struct prudence_hash_values *
prudence_hash_values_create(const char *name, const struct prudence_hash_attr *attr);

/*
 * Destroys a table that nobody uses any more. Calls dispose(value, argument) for each value that is in it, in no order. With `dispose` NULL
 * the table has to be empty. Waits for the grace period of what was deferred. Returns 0, or an error number with the table as usable as
 * before: EBUSY while values are in it and there is no `dispose`, or in a handler of pthread_atfork; EDEADLK, with a report, where
 * prudence_domain_synchronize of its domain gives it (inside a section); EINVAL for NULL. `dispose` must not use the table.
 */
PRUDENCE_API int prudence_hash_values_destroy(struct prudence_hash_values *table,
                                              void (*dispose)(void *value, void *argument),
                                              void *argument);

/* ------------------------------------------------------------------------------------- readers */

/*
 * The value of the key; NULL: it has none. Lock-free, and wait-free except for keys of the same bucket that are added during the search. Cost: the
 * hash, 5 rounds for a number and one more for each 8 bytes of string, and a lookup of <prudence/hash.h>.
 */
PRUDENCE_API void *prudence_hash_values_get(const struct prudence_hash_values *table, uint64_t key);
PRUDENCE_API void *prudence_hash_values_get_bytes(const struct prudence_hash_values *table,
                                                  const void *bytes, size_t length);

/*
 * All values with their keys, in no order, all in one section:
 *
 *     prudence_hash_values_for_each(&walk, table, value) { ... walk.key, or walk.bytes, walk.length ... }
 *
 * break ends it early; the body may update the table. A key that is there during the whole walk is found exactly once, with a value that it
 * had at a moment of the walk; one that is added or erased meanwhile, at most once.
 */
struct prudence_hash_values_walk {
    uint64_t key;      /* of the value that was found: the number, ... */
    const void *bytes; /* ... or the string, which is the table's: valid until the section ends */
    size_t length;
    struct prudence_hash_walk walk; /* private, as the next */
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
 * Each is one step for readers, and locks one bucket for as long as it takes to search it. Cost: the hash, a search under the lock, and where a key comes
 * or goes an entry that is allocated or deferred. Errors leave the table as it was: ENOMEM, only where the key has no value; EINVAL: NULL for the
 * table or a value, a key of the other kind.
 *
 * put:      the key has this value from now on. The one before, or NULL, is in *old, if `old` is not NULL.
 * insert:   only if the key has none: otherwise EEXIST, with that in *there, if `there` is not NULL. (Another thread may take that one out: look
 *           it up in a section before you look at what it leads to.)
 * exchange: `fresh` takes the place of `old`, if that is the key's value; otherwise ENOENT. It needs no memory.
 * erase:    the value of the key, which has none any more; NULL: there was none, or an argument is wrong. It needs no memory.
 *
 * Of several threads that replace or erase one value, one gets it, and defers what it leads to.
 */
PRUDENCE_API int prudence_hash_values_put(struct prudence_hash_values *table, uint64_t key,
                                          void *value, void **old);
PRUDENCE_API int prudence_hash_values_put_bytes(struct prudence_hash_values *table,
                                                const void *bytes, size_t length, void *value,
                                                void **old);
PRUDENCE_API int prudence_hash_values_insert(struct prudence_hash_values *table, uint64_t key,
                                             void *value, void **there);
PRUDENCE_API int prudence_hash_values_insert_bytes(struct prudence_hash_values *table,
                                                   const void *bytes, size_t length, void *value,
                                                   void **there);
PRUDENCE_API int prudence_hash_values_exchange(struct prudence_hash_values *table, uint64_t key,
                                               void *old, void *fresh);
PRUDENCE_API int prudence_hash_values_exchange_bytes(struct prudence_hash_values *table,
                                                     const void *bytes, size_t length, void *old,
                                                     void *fresh);
PRUDENCE_API void *prudence_hash_values_erase(struct prudence_hash_values *table, uint64_t key);
PRUDENCE_API void *prudence_hash_values_erase_bytes(struct prudence_hash_values *table,
                                                    const void *bytes, size_t length);

/* ---------------------------------------------------------------------------------- statistics */

/* How many keys have a value, as prudence_hash_count. */
PRUDENCE_API uint64_t prudence_hash_values_count(const struct prudence_hash_values *table);

/* As prudence_hash_stats_sized; entries count in bytes_live and bytes_latent. */
PRUDENCE_API int prudence_hash_values_stats_sized(struct prudence_hash_values *table,
                                                  struct prudence_hash_stats *stats, size_t size);

#define prudence_hash_values_stats(table, stats)                                                   \
    prudence_hash_values_stats_sized(table, stats, sizeof *(stats))

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_HASH_VALUES_H */
