/* SPDX-License-Identifier: MIT */
/*
 * Updates of tables as expressions. Each function makes the update of its name, checks that the
 * error fits what was under the key, and returns that: an object, a value, or NULL.
 */
#ifndef TESTS_SUPPORT_UPDATES_H
#define TESTS_SUPPORT_UPDATES_H

#include <assert.h>
#include <errno.h>

#include <prudence/hash_values.h>
#include <prudence/id_table.h>
#include <prudence/lockfree_hash.h>
#include <prudence/map_values.h>

/* Poison: an update that does not store what it found leaves this. */
static inline void *updates_unset(void)
{
    static uint64_t unset;

    return &unset;
}

static inline void *updates_checked(void *found, int error, int if_found, int if_not)
{
    assert(found != updates_unset());
    assert(error == (found ? if_found : if_not));
    return found;
}

#define UPDATES_ADD(type, update)                                                                  \
    type *found = (type *)updates_unset();                                                         \
    int error = (update);                                                                          \
                                                                                                   \
    return (type *)updates_checked(found, error, EEXIST, 0)
#define UPDATES_PUT(type, update)                                                                  \
    type *found = (type *)updates_unset();                                                         \
    int error = (update);                                                                          \
                                                                                                   \
    return (type *)updates_checked(found, error, 0, 0)
#define UPDATES_TAKE(type, update)                                                                 \
    type *found = (type *)updates_unset();                                                         \
    int error = (update);                                                                          \
                                                                                                   \
    return (type *)updates_checked(found, error, 0, ENOENT)

static inline struct prudence_hash_node *hash_add_found(struct prudence_hash *table, uint64_t hash,
                                                        prudence_hash_match match, const void *key,
                                                        struct prudence_hash_node *node)
{
    UPDATES_ADD(struct prudence_hash_node,
                prudence_hash_add(table, hash, match, key, node, &found));
}

static inline struct prudence_hash_node *hash_put_found(struct prudence_hash *table, uint64_t hash,
                                                        prudence_hash_match match, const void *key,
                                                        struct prudence_hash_node *node)
{
    UPDATES_PUT(struct prudence_hash_node,
                prudence_hash_put(table, hash, match, key, node, &found));
}

static inline struct prudence_hash_node *
lockfree_add_found(struct prudence_lockfree_hash *table, uint64_t hash, prudence_hash_match match,
                   const void *key, struct prudence_hash_node *node)
{
    UPDATES_ADD(struct prudence_hash_node,
                prudence_lockfree_hash_add(table, hash, match, key, node, &found));
}

static inline struct prudence_hash_node *
lockfree_put_found(struct prudence_lockfree_hash *table, uint64_t hash, prudence_hash_match match,
                   const void *key, struct prudence_hash_node *node)
{
    UPDATES_PUT(struct prudence_hash_node,
                prudence_lockfree_hash_put(table, hash, match, key, node, &found));
}

static inline void *ids_replace_found(struct prudence_id_table *table, uint32_t id, void *object)
{
    UPDATES_TAKE(void, prudence_id_table_replace(table, id, object, &found));
}

static inline void *ids_erase_found(struct prudence_id_table *table, uint32_t id)
{
    UPDATES_TAKE(void, prudence_id_table_erase(table, id, &found));
}

static inline struct prudence_map_node *map_erase_found(struct prudence_map *map, uint64_t key)
{
    UPDATES_TAKE(struct prudence_map_node, prudence_map_erase(map, key, &found));
}

static inline struct prudence_map_node *map_erase_bytes_found(struct prudence_map *map,
                                                              const void *bytes, size_t length)
{
    UPDATES_TAKE(struct prudence_map_node, prudence_map_erase_bytes(map, bytes, length, &found));
}

static inline void *hash_values_erase_found(struct prudence_hash_values *table, uint64_t key)
{
    UPDATES_TAKE(void, prudence_hash_values_erase(table, key, &found));
}

static inline void *hash_values_erase_bytes_found(struct prudence_hash_values *table,
                                                  const void *bytes, size_t length)
{
    UPDATES_TAKE(void, prudence_hash_values_erase_bytes(table, bytes, length, &found));
}

static inline void *map_values_erase_found(struct prudence_map_values *map, uint64_t key)
{
    UPDATES_TAKE(void, prudence_map_values_erase(map, key, &found));
}

static inline void *map_values_erase_bytes_found(struct prudence_map_values *map, const void *bytes,
                                                 size_t length)
{
    UPDATES_TAKE(void, prudence_map_values_erase_bytes(map, bytes, length, &found));
}

#endif /* TESTS_SUPPORT_UPDATES_H */
