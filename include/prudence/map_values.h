/* SPDX-License-Identifier: MIT */
/*
 * Values in an ordered map (<prudence/map.h>) without objects of the caller. Each key leads to a
 * pointer. The map makes, defers and frees entries, each with a copy of the key. Create the map
 * with the flag PRUDENCE_MAP_VALUES.
 *
 *     prudence_map_put(flows, key, flow, &old);
 *     ...
 *     prudence_read_lock();
 *     flow = prudence_map_get(flows, key);
 *     ...
 *     prudence_read_unlock();
 *
 * To look for the nearest key, and to walk, use the functions of <prudence/map.h>;
 * prudence_map_value(node) is the value of the node that they return. A map of values refuses their
 * updates of objects (EINVAL, NULL), and a map without the flag refuses those below.
 *
 * Conventions are those of <prudence/map.h>, and these:
 *  - Values are the caller's pointers, and not NULL. The map never looks at their targets. Readers
 *    may still have found a value that an update takes out, so defer it. Integers may be values,
 *    too, if none is 0.
 *  - Keys: byte strings are copied.
 *  - Memory: 16 bytes for each number; for each string 24 bytes and the string, rounded up to a
 *    power of two, or from 489 bytes of string on to whole pages. All of it counts in the map's
 *    statistics, and replaced entries are latent until readers have left.
 *  - Signals, fork, and order are the map's. (A value that another thread was about to add to a map
 *    when the process forks is in the child's map or not; memory of the entry may be lost there.)
 */
#ifndef PRUDENCE_MAP_VALUES_H
#define PRUDENCE_MAP_VALUES_H

#include <prudence/map.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the value of a node that was found in a map of values. A node's value does not change. */
static inline void *prudence_map_value(const struct prudence_map_node *node)
{
    return PRUDENCE_CAST(void *const *, PRUDENCE_CAST(const void *, node))[-1];
}

/*
 * Return the value of the key, in a section, or NULL if there is none. Otherwise like
 * prudence_map_lookup.
 */
static inline void *prudence_map_get(const struct prudence_map *map, uint64_t key)
{
    const struct prudence_map_node *node = prudence_map_lookup(map, key);

    return node ? prudence_map_value(node) : PRUDENCE_NULL;
}

static inline void *prudence_map_get_bytes(const struct prudence_map *map, const void *bytes,
                                           size_t length)
{
    const struct prudence_map_node *node = prudence_map_lookup_bytes(map, bytes, length);

    return node ? prudence_map_value(node) : PRUDENCE_NULL;
}

/*
 * Updates, which are made outside of sections, because they may wait. Cost: that of the map, and an
 * entry that is allocated, deferred, or both. Each is one step for readers. Errors leave the map as
 * it was: ENOMEM; EINVAL: NULL for the map or a value, a key of the other kind, or a map without
 * the flag.
 *
 *  - put gives the key this value. Stores the previous one, or NULL, in *old, if `old` is not NULL.
 *  - insert does so only if the key has none. Otherwise returns EEXIST, and the value in *there, if
 *    `there` is not NULL.
 *  - exchange replaces `old` by `fresh`, if the key has the value `old`; otherwise ENOENT.
 *  - erase returns the value of the key, which then has none, or NULL if there was none or an
 *    argument is wrong. Needs no memory.
 */
PRUDENCE_API int prudence_map_put(struct prudence_map *map, uint64_t key, void *value, void **old);
PRUDENCE_API int prudence_map_put_bytes(struct prudence_map *map, const void *bytes, size_t length,
                                        void *value, void **old);
PRUDENCE_API int prudence_map_insert(struct prudence_map *map, uint64_t key, void *value,
                                     void **there);
PRUDENCE_API int prudence_map_insert_bytes(struct prudence_map *map, const void *bytes,
                                           size_t length, void *value, void **there);
PRUDENCE_API int prudence_map_exchange(struct prudence_map *map, uint64_t key, void *old,
                                       void *fresh);
PRUDENCE_API int prudence_map_exchange_bytes(struct prudence_map *map, const void *bytes,
                                             size_t length, void *old, void *fresh);
PRUDENCE_API void *prudence_map_erase(struct prudence_map *map, uint64_t key);
PRUDENCE_API void *prudence_map_erase_bytes(struct prudence_map *map, const void *bytes,
                                            size_t length);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_MAP_VALUES_H */
