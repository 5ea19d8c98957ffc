/* SPDX-License-Identifier: MIT */
/*
 * A map in the order of the keys, from 64-bit numbers or byte strings to the caller's objects.
 * Readers look keys up, find the nearest below or above, and walk ranges, while many writers change
 * the map. Readers write nothing shared, take no lock, and do not wait. The map is a tree over the
 * bytes of keys (an adaptive radix tree). Writers change a node in place if one store is enough,
 * and otherwise replace the node. docs/adr/0069 has the reasons, and the alternatives that were
 * measured. (P. McKenney, "Exploiting Deferred Destruction", 2004, section 9.2.5, asks for trees in
 * a library.)
 *
 *     struct flow { struct prudence_map_node node; int port; };
 *
 *     prudence_read_lock();
 *     prudence_map_for_each_from(&walk, flows, lowest, node) {
 *         if (node->key > highest)
 *             break;
 *         ... prudence_map_entry(node, struct flow, node)->port ...
 *     }
 *     prudence_read_unlock();
 *
 * Conventions are those of <prudence/prudence.h>, and these:
 *  - Sections: the functions of readers are called inside a read-side section of the map's domain,
 *    or online there. The objects that a function returns stay valid until that section ends.
 *    Updates need no section. Make them outside, so that deferrals may wait and keep latent memory
 *    below the limit. (But an object that a function is given, and that another thread might
 *    remove, is valid only in the section in which it was found: prudence_map_replace, _remove.)
 *    In a qsbr domain the thread is online. Sets and external domains have no
 *    sections of their own, so the caller's thread is inside one of a member, or of the other
 *    scheme.
 *  - Keys: a map has numbers, or byte strings (PRUDENCE_MAP_BYTES). Byte strings have any length
 *    and any bytes, and are in the order of memcmp; a string comes before those that it begins.
 *    With a key of the other kind a function finds nothing.
 *  - Ownership: objects belong to the caller, and so do the bytes of their keys, which do not
 *    change while the object is in the map, and for a grace period longer. A removed or replaced
 *    object may be freed, changed or added again only after a grace period (prudence_free_deferred
 *    does that). The map allocates nodes of its tree, nothing else. (To store pointers without
 *    objects of your own, use <prudence/map_values.h>.)
 *  - Signals: the functions of readers are async-signal-safe; no other is.
 *  - Fork: a child may read and update. fork() waits until no thread is inside an update, and holds
 *    updates up in that time. The child loses nodes that another thread was about to add or to
 *    defer, a few for each such thread, until it destroys the map. A child of _Fork or clone may
 *    only read.
 *  - Order: a lookup takes effect at one moment between call and return. So does an update, so
 *    every lookup that begins after an update has returned sees that update. A reader that finds an
 *    object sees the object in the state in which it was added. The promises of ceiling, floor and
 *    walks are next to them.
 */
#ifndef PRUDENCE_MAP_H
#define PRUDENCE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <prudence/language.h>
#include <prudence/prudence.h>

#ifdef __cplusplus
extern "C" {
#endif

struct prudence_map;

/* Member of the caller's object, at an address that 8 divides. */
struct prudence_map_node {
    /*
     * The number, set by the caller before the object is added. Private in maps of byte
     * strings.
     */
    uint64_t key;
};

/* The node for a map of byte strings. */
struct prudence_map_bytes {
    struct prudence_map_node node;
    size_t length;
};

#define prudence_map_entry(place, type, member) PRUDENCE_CONTAINER_OF(place, type, member)

/*
 * Sets the key of an object that is not in a map: `length` bytes, which still belong to the caller.
 */
PRUDENCE_INLINE void prudence_map_set_bytes(struct prudence_map_bytes *node, const void *bytes,
                                            size_t length)
{
    node->node.key = PRUDENCE_CAST(uintptr_t, bytes);
    node->length = length;
}

/* ------------------------------------------------------------------------ making and destroying */

/* Attributes of a map, used as those of <prudence/hash.h>. */
struct prudence_map_attr {
    size_t size;                    /* sizeof(struct prudence_map_attr) */
    unsigned flags;                 /* of enum prudence_map_flags */
    unsigned reserved;              /* 0 */
    struct prudence_domain *domain; /* whose readers use the map; NULL: the default domain */
};

/* Flags of prudence_map_attr.flags. */
enum prudence_map_flags {
    PRUDENCE_MAP_BYTES = 1 << 0, /* keys are byte strings; otherwise 64-bit numbers */
};

/*
 * Makes an empty map; attr may be NULL, which means defaults. `name` appears in the statistics of
 * the caches of nodes, made when they are needed. Returns NULL with errno EINVAL (a message on
 * standard error names the cause), or ENOMEM.
 */
PRUDENCE_API struct prudence_map *prudence_map_create(const char *name,
                                                      const struct prudence_map_attr *attr);

/*
 * Destroys a map that no thread uses any more. Calls dispose(object, argument) for each object, in
 * the order of keys; the object may be freed at once there. If `dispose` is NULL the map must be
 * empty. Waits for the grace period of nodes that were replaced. Returns 0, or an error number with
 * the map as usable as before: EBUSY while the map has objects and there is no `dispose`, or in a
 * handler of pthread_atfork; EDEADLK, with a report, where prudence_domain_synchronize of the
 * domain fails (inside a section), and online in any qsbr domain; EINVAL for NULL. `dispose` must
 * not use the map.
 * Destroy the map before the caches of its objects, and those before the domain.
 */
PRUDENCE_API int prudence_map_destroy(struct prudence_map *map,
                                      void (*dispose)(struct prudence_map_node *object,
                                                      void *argument),
                                      void *argument);

/* ------------------------------------------------------------------------------------- readers */

/*
 * Return the object with this key, or NULL if there is none. Wait-free. Cost: two or three cache
 * lines for each byte of the key where the tree branches, at most; then the object's key.
 */
PRUDENCE_API struct prudence_map_node *prudence_map_lookup(const struct prudence_map *map,
                                                           uint64_t key);
PRUDENCE_API struct prudence_map_node *prudence_map_lookup_bytes(const struct prudence_map *map,
                                                                 const void *bytes, size_t length);

/*
 * Return the nearest object, or NULL if there is none.
 *  - ceiling, floor: the lowest key that is not below `key`, the highest that is not above it;
 *  - after, before: the lowest above, the highest below the key of `node`, which need not be in the
 *    map (any more);
 *  - lowest, highest: of the whole map.
 *
 * The object was in the map at a moment during the call. No key between the one asked for and the
 * one found was in the map during the whole call. (Among keys that are added or removed in that
 * time, the call may miss one that was there when the found one was not.) Lock-free: a call begins
 * again when others add and remove objects in the node in which the call searches for the next one.
 * Cost: a lookup, and a check of the bytes of each node on the way.
 */
PRUDENCE_API struct prudence_map_node *prudence_map_ceiling(const struct prudence_map *map,
                                                            uint64_t key);
PRUDENCE_API struct prudence_map_node *prudence_map_ceiling_bytes(const struct prudence_map *map,
                                                                  const void *bytes, size_t length);
PRUDENCE_API struct prudence_map_node *prudence_map_floor(const struct prudence_map *map,
                                                          uint64_t key);
PRUDENCE_API struct prudence_map_node *prudence_map_floor_bytes(const struct prudence_map *map,
                                                                const void *bytes, size_t length);
PRUDENCE_API struct prudence_map_node *prudence_map_after(const struct prudence_map *map,
                                                          const struct prudence_map_node *node);
PRUDENCE_API struct prudence_map_node *prudence_map_before(const struct prudence_map *map,
                                                           const struct prudence_map_node *node);
PRUDENCE_API struct prudence_map_node *prudence_map_lowest(const struct prudence_map *map);
PRUDENCE_API struct prudence_map_node *prudence_map_highest(const struct prudence_map *map);

/*
 * Walks over all objects, or those from a key on, in the order of keys, all in one section:
 *
 *     prudence_map_for_each(&walk, map, node) { ... }             break ends it early; the body may
 *     prudence_map_for_each_from(&walk, map, key, node) { ... }   update the map, and remove `node`
 *
 * The keys found rise strictly. The walk finds a key exactly once if the key is in the map during
 * the whole walk, and a key that is added or removed during the walk at most once. A found object
 * was in the map at a moment during the walk. The walk is not a picture of one moment: a walk may
 * see the later of two updates alone, and takes up to PRUDENCE_MAP_WALK objects at once, so the
 * walk may return one that was removed after that. To walk longer than a section should last, keep
 * the last key, and begin again with the key above it in the next section. The promise is the same.
 */
#define PRUDENCE_MAP_WALK 32

struct prudence_map_walk { /* private */
    const struct prudence_map *map;
    unsigned next, count;
    struct prudence_map_node *objects[PRUDENCE_MAP_WALK];
};

PRUDENCE_API struct prudence_map_node *prudence_map_first(struct prudence_map_walk *walk,
                                                          const struct prudence_map *map);
PRUDENCE_API struct prudence_map_node *prudence_map_first_from(struct prudence_map_walk *walk,
                                                               const struct prudence_map *map,
                                                               uint64_t key);
PRUDENCE_API struct prudence_map_node *prudence_map_first_from_bytes(struct prudence_map_walk *walk,
                                                                     const struct prudence_map *map,
                                                                     const void *bytes,
                                                                     size_t length);
PRUDENCE_API struct prudence_map_node *prudence_map_next_slow(struct prudence_map_walk *walk);

PRUDENCE_INLINE struct prudence_map_node *prudence_map_next(struct prudence_map_walk *walk)
{
    if (__builtin_expect(walk->next < walk->count, 1))
        return walk->objects[walk->next++];
    return prudence_map_next_slow(walk);
}

#define prudence_map_for_each(walk, map, place)                                                    \
    for ((place) = prudence_map_first(walk, map); (place); (place) = prudence_map_next(walk))

#define prudence_map_for_each_from(walk, map, key, place)                                          \
    for ((place) = prudence_map_first_from(walk, map, key); (place);                               \
         (place) = prudence_map_next(walk))

#define prudence_map_for_each_from_bytes(walk, map, bytes, length, place)                          \
    for ((place) = prudence_map_first_from_bytes(walk, map, bytes, length); (place);               \
         (place) = prudence_map_next(walk))

/* ------------------------------------------------------------------------------------- writers */

/*
 * Each update locks the node of the tree that it changes; to replace a node, that node and the one
 * above. A thread that finds one locked spins, then sleeps briefly. No lock is held while memory is
 * allocated or deferred. Cost: a lookup, an atomic operation to begin, one for each lock, and one
 * to end. Now and then a node of 64 to 2,072 bytes is allocated and another deferred: 6 to 18 bytes
 * an update with random keys (docs/adr/0069).
 *
 * They return 0, or an error number with the map as it was: ENOMEM; EINVAL: NULL, or a string that
 * is not empty and has no address, or (erase) a key of the other kind. The last argument of add,
 * put and erase may be NULL; otherwise the object that had the key is stored there, or NULL if
 * there was none or an argument is wrong.
 *
 *  - add adds the object only if there is no object with this key; otherwise EEXIST. (The object in
 *    *there is valid in a section that the caller is in, or while the caller keeps others from
 *    removing it.)
 *  - put replaces the object with this key, if there is one; the caller then owns the object in
 *    *old. EINVAL, with a report: `node` is the object that has the key.
 *  - replace puts `fresh` in the place of `old` in one step; a lookup finds one of the two. ENOENT:
 *    `old` is not in the map (any more); EINVAL: their keys differ or, with a report, `fresh` is
 *    `old`. No memory is needed.
 *  - remove takes this object out, inside a section. ENOENT: the object is not in the map (any
 *    more).
 *  - erase takes the key out, with its object, which the caller then owns; ENOENT: there is none.
 *    So if several threads erase one key, one gets the object, and defers it.
 *
 * remove and erase never fail for lack of memory; the tree then stays a little larger than
 * necessary.
 */
PRUDENCE_API int prudence_map_add(struct prudence_map *map, struct prudence_map_node *node,
                                  struct prudence_map_node **there);
PRUDENCE_API int prudence_map_put(struct prudence_map *map, struct prudence_map_node *node,
                                  struct prudence_map_node **old);
PRUDENCE_API int prudence_map_replace(struct prudence_map *map, struct prudence_map_node *old,
                                      struct prudence_map_node *fresh);
PRUDENCE_API int prudence_map_remove(struct prudence_map *map, struct prudence_map_node *node);
PRUDENCE_API int prudence_map_erase(struct prudence_map *map, uint64_t key,
                                    struct prudence_map_node **old);
PRUDENCE_API int prudence_map_erase_bytes(struct prudence_map *map, const void *bytes,
                                          size_t length, struct prudence_map_node **old);

/* ---------------------------------------------------------------------------------- statistics */

/*
 * Returns the number of objects. Exact if no thread updates the map, otherwise off by the updates
 * under way. Need not be in a section. Cost: a load for each of up to 16 counters.
 */
PRUDENCE_API uint64_t prudence_map_count(const struct prudence_map *map);

struct prudence_map_stats {
    uint64_t objects;
    uint64_t nodes;    /* nodes of the tree */
    uint64_t replaced; /* nodes that other nodes replaced, or nothing did, since the map was made */
    uint64_t bytes_live;   /* bytes of the map and its nodes */
    uint64_t bytes_latent; /* bytes of replaced nodes that wait for readers */
};

/*
 * Fills `stats`, of which the caller was compiled with `size` bytes. Returns 0, or EINVAL for NULL.
 */
PRUDENCE_API int prudence_map_stats_sized(struct prudence_map *map,
                                          struct prudence_map_stats *stats, size_t size);

#define prudence_map_stats(map, stats) prudence_map_stats_sized(map, stats, sizeof *(stats))

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_MAP_H */
