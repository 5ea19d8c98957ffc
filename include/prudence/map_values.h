/* SPDX-License-Identifier: MIT */
/*
 * Values in an ordered map (<prudence/map.h>) without objects of the caller: each key leads to a pointer, and the map makes,
 * defers and frees what it needs for that, with a copy of the key. The map is made with the flag PRUDENCE_MAP_VALUES.
 *
 *     prudence_map_put(flows, key, flow, &old);
 *     ...
 *     prudence_read_lock();
 *     flow = prudence_map_get(flows, key);
 *     ...
 *     prudence_read_unlock();
 *
 * To look for the nearest key, and to walk, use the functions of <prudence/map.h>: prudence_map_value(node) is the value of what
 * they find. Its updates of objects are refused here (EINVAL, NULL), and those below are in a map without the flag.
 *
 * Conventions of <prudence/map.h>, and these:
 *  - Values are the caller's pointers, and not NULL. The map never looks at what they lead to. What an update takes out, readers may
 *    still have found: defer it. Integers may be values, too, if none is 0.
 *  - Keys: byte strings are copied.
 *  - Memory: 16 bytes for each number; for each string 24 bytes and the string, rounded up to a power of two, or from 489 bytes of string
 *    on to whole pages. All of it counts in the map's statistics, and what was replaced is latent until readers have left.
 *  - Signals, fork, and order are those of the map. (A value that another thread was about to add to a map when the process forks
 *    is in the child's map or not; memory of the entry may be lost there.)
 */
#ifndef PRUDENCE_MAP_VALUES_H
#define PRUDENCE_MAP_VALUES_H

#include <prudence/map.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The value of a node that was found in a map of values. It does not change. */
static inline void *prudence_map_value(const struct prudence_map_node *node)
{
    return PRUDENCE_CAST(void *const *, PRUDENCE_CAST(const void *, node))[-1];
}

/* In a section: the value of the key; NULL: there is none. That of prudence_map_lookup in all else. */
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
 * Updates, which are made outside of sections, as all that may wait. Cost: those of the map, and an entry that is allocated, or deferred, or both.
 * Each is one step for readers. Errors leave the map as it was: ENOMEM; EINVAL: NULL for the map or a value, a key of the other kind, a map
 * without the flag.
 *
 * put:      the key has this value from now on. The one before, or NULL, is in *old, if `old` is not NULL.
 * insert:   only if the key has none: otherwise EEXIST, with that in *there, if `there` is not NULL.
 * exchange: `fresh` takes the place of `old`, if that is the key's value; otherwise ENOENT.
 * erase:    the value of the key, which has none any more; NULL: there was none, or an argument is wrong. It needs no memory.
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
