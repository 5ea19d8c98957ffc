/* SPDX-License-Identifier: MIT */
/*
 * An ordered map of values, in which each key, a 64-bit number or a byte string, leads to a
 * pointer. The program needs no objects with nodes. The map makes, defers and frees entries, each
 * with a copy of the key. <prudence/hash_values.h> has the same operations without an order.
 *
 *     prudence_map_values_put(flows, key, flow, &old);
 *     ...
 *     prudence_read_lock();
 *     flow = prudence_map_values_get(flows, key);
 *     ...
 *     prudence_read_unlock();
 *
 * To search for the nearest key, and to walk, use the functions of readers of <prudence/map.h> on
 * prudence_map_values_nodes(map); prudence_map_values_value(node) is the value of the node that
 * they return.
 *
 * Conventions are those of <prudence/map.h>, and these:
 *  - Values are the caller's pointers, and not NULL. The map never reads their targets. Readers
 *    may still have found a value that an update takes out, so defer it. Integers may be values,
 *    too, if none is 0.
 *  - Keys: byte strings are copied.
 *  - Memory: 16 bytes for each number; for each string 24 bytes and the string, rounded up to a
 *    power of two, or from 489 bytes of string on to whole pages. All of it counts in the map's
 *    statistics, and replaced entries are latent until readers have ended.
 *  - Signals, fork, and order are the map's. (A value that another thread was about to add to a map
 *    when the process forks is in the child's map or not; memory of the entry may be lost there.)
 */
#ifndef PRUDENCE_MAP_VALUES_H
#define PRUDENCE_MAP_VALUES_H

#include <prudence/map.h>

#ifdef __cplusplus
extern "C" {
#endif

struct prudence_map_values;

/* ------------------------------------------------------------------------ making and destroying */

/* Attributes of a map, used as those of <prudence/hash.h>. */
struct prudence_map_values_attr {
    size_t size;                    /* sizeof(struct prudence_map_values_attr) */
    unsigned flags;                 /* of enum prudence_map_values_flags */
    unsigned reserved;              /* 0 */
    struct prudence_domain *domain; /* whose readers use the map; NULL: the default domain */
};

/* Flags of prudence_map_values_attr.flags. */
enum prudence_map_values_flags {
    PRUDENCE_MAP_VALUES_BYTES = 1 << 0, /* keys are byte strings; otherwise 64-bit numbers */
};

/*
 * Makes an empty map; attr may be NULL, which means defaults. `name` appears in the statistics of
 * the caches. Returns NULL with errno EINVAL (a message on standard error names the
 * cause), or ENOMEM.
 */
PRUDENCE_API struct prudence_map_values *
prudence_map_values_create(const char *name, const struct prudence_map_values_attr *attr);

/*
 * Destroys a map that no thread uses any more, like prudence_map_destroy. Calls dispose(value,
 * argument) for each value, in the order of keys. If `dispose` is NULL the map must be empty.
 */
PRUDENCE_API int prudence_map_values_destroy(struct prudence_map_values *map,
                                             void (*dispose)(void *value, void *argument),
                                             void *argument);

/* ------------------------------------------------------------------------------------- readers */

/* Returns the map's entries, for the functions of readers of <prudence/map.h>. */
PRUDENCE_INLINE const struct prudence_map *
prudence_map_values_nodes(const struct prudence_map_values *map)
{
    return PRUDENCE_CAST(const struct prudence_map *, map);
}

/* Returns the value of a node that was found in a map of values. A node's value does not change. */
PRUDENCE_INLINE void *prudence_map_values_value(const struct prudence_map_node *node)
{
    return PRUDENCE_CAST(void *const *, PRUDENCE_CAST(const void *, node))[-1];
}

/*
 * Return the value of the key, in a section, or NULL if there is none. Otherwise like
 * prudence_map_lookup.
 */
PRUDENCE_INLINE void *prudence_map_values_get(const struct prudence_map_values *map, uint64_t key)
{
    const struct prudence_map_node *node = prudence_map_lookup(prudence_map_values_nodes(map), key);

    return node ? prudence_map_values_value(node) : PRUDENCE_NULL;
}

PRUDENCE_INLINE void *prudence_map_values_get_bytes(const struct prudence_map_values *map,
                                                    const void *bytes, size_t length)
{
    const struct prudence_map_node *node =
        prudence_map_lookup_bytes(prudence_map_values_nodes(map), bytes, length);

    return node ? prudence_map_values_value(node) : PRUDENCE_NULL;
}

/* ------------------------------------------------------------------------------------- writers */

/*
 * Updates, which are made outside of sections, because they may wait. Cost: that of the map, and an
 * entry that is allocated, deferred, or both. Each is one step for readers. They return 0, or an
 * error number with the map as it was: ENOMEM; EINVAL: NULL for the map or a value, or a key of the
 * other kind. The last argument of put, add and erase may be NULL; otherwise the value that the key
 * had is stored there, or NULL if it had none or an argument is wrong.
 *
 *  - add gives the key this value only if the key has none; otherwise EEXIST. (Another thread may
 *    take the value in *there out; look the value up in a section before you use the target.)
 *  - put gives the key this value. If the key has the value already, *old is that value, which the
 *    map still has: compare the two before you defer a target.
 *  - replace puts `fresh` in the place of `old`, if the key has the value `old`; otherwise ENOENT.
 *    EINVAL, with a report: they are the same.
 *  - erase takes the key and its value out; ENOENT if the key has none. Needs no memory.
 */
PRUDENCE_API int prudence_map_values_add(struct prudence_map_values *map, uint64_t key, void *value,
                                         void **there);
PRUDENCE_API int prudence_map_values_add_bytes(struct prudence_map_values *map, const void *bytes,
                                               size_t length, void *value, void **there);
PRUDENCE_API int prudence_map_values_put(struct prudence_map_values *map, uint64_t key, void *value,
                                         void **old);
PRUDENCE_API int prudence_map_values_put_bytes(struct prudence_map_values *map, const void *bytes,
                                               size_t length, void *value, void **old);
PRUDENCE_API int prudence_map_values_replace(struct prudence_map_values *map, uint64_t key,
                                             void *old, void *fresh);
PRUDENCE_API int prudence_map_values_replace_bytes(struct prudence_map_values *map,
                                                   const void *bytes, size_t length, void *old,
                                                   void *fresh);
PRUDENCE_API int prudence_map_values_erase(struct prudence_map_values *map, uint64_t key,
                                           void **old);
PRUDENCE_API int prudence_map_values_erase_bytes(struct prudence_map_values *map, const void *bytes,
                                                 size_t length, void **old);

/* ---------------------------------------------------------------------------------- statistics */

/* Returns the number of keys with a value, like prudence_map_count. */
PRUDENCE_API uint64_t prudence_map_values_count(const struct prudence_map_values *map);

/* Works like prudence_map_stats_sized; entries count in bytes_live and bytes_latent. */
PRUDENCE_API int prudence_map_values_stats_sized(struct prudence_map_values *map,
                                                 struct prudence_map_stats *stats, size_t size);

#define prudence_map_values_stats(map, stats)                                                      \
    prudence_map_values_stats_sized(map, stats, sizeof *(stats))

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_MAP_VALUES_H */
