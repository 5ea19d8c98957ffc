/* SPDX-License-Identifier: MIT */
/*
 * Maps of values: entries, and the updates that make them (map_values.h).
 *
 * An entry of a number has 16 bytes; one of a string has 24 and the string (entries.h). An entry is
 * made before the update and deferred afterwards, both outside of sections, so both may wait, as
 * for nodes.
 */
#include "structures/map_values.h"

#include <errno.h>

#include <prudence/map_values.h>

#include "structures/map_add.h"
#include "structures/map_read.h"
#include "structures/map_remove.h"
#include "structures/map_update.h"

struct entry {
    void *value;                    /* the word before the node, which prudence_map_value reads */
    struct prudence_map_bytes node; /* without the length if the key is a number */
    uint8_t bytes[];                /* bytes of the key */
};

#define NUMBER_BYTES (offsetof(struct entry, node) + sizeof(struct prudence_map_node))

/* -------------------------------------------------------------------------------------- entries */

bool map_entries_make(struct prudence_map *map, const char *name, struct prudence_domain *domain)
{
    return entries_make(&map->entries, name, domain,
                        map->bytes ? sizeof(struct entry) : NUMBER_BYTES, map->bytes);
}

static struct entry *make_entry(struct prudence_map *map, const struct map_key *key, void *value)
{
    struct entry *entry = entries_alloc(&map->entries, key->length);

    if (!entry)
        return NULL;
    entry->value = value;
    if (!key->bytes) {
        entry->node.node.key = key->number;
        return entry;
    }
    __builtin_memcpy(entry->bytes, key->bytes, key->length);
    prudence_map_set_bytes(&entry->node, entry->bytes, key->length);
    return entry;
}

static struct entry *entry_of(const struct prudence_map_node *node)
{
    return PRUDENCE_CONTAINER_OF(node, struct entry, node.node);
}

static size_t length_of(const struct prudence_map *map, const struct entry *entry)
{
    return map->bytes ? entry->node.length : 0;
}

void map_entry_free(struct prudence_map *map, struct prudence_map_node *node)
{
    struct entry *entry = entry_of(node);

    entries_free(&map->entries, entry, length_of(map, entry));
}

/* Returns the value of an entry that an update has unlinked, and defers the entry. */
static void *value_left_by(struct prudence_map *map, struct prudence_map_node *node)
{
    struct entry *entry = entry_of(node);
    void *value = entry->value;

    entries_defer(&map->entries, entry, length_of(map, entry));
    return value;
}

/* -------------------------------------------------------------------------------------- updates */

static bool fits(const struct prudence_map *map, const struct map_key *key)
{
    return map && map->values && map_key_fits(map, key);
}

static int put(struct prudence_map *map, const struct map_key *key, void *value, void **old)
{
    struct prudence_map_node *replaced;
    struct entry *entry;
    void *before = NULL;
    int error;

    if (!fits(map, key) || !value)
        return EINVAL;
    entry = make_entry(map, key, value);
    if (!entry)
        return ENOMEM;
    error = map_add(map, &entry->node.node, true, &replaced);
    if (error) {
        map_entry_free(map, &entry->node.node);
        return error;
    }
    if (replaced)
        before = value_left_by(map, replaced);
    if (old)
        *old = before;
    return 0;
}

/* Returns the value of the key, loaded in a section, or NULL. */
static void *value_of(const struct prudence_map *map, const struct map_key *key)
{
    struct prudence_map_node *node;
    void *value;

    map_section_enter(map);
    node = map_lookup(map, key);
    value = node ? prudence_map_value(node) : NULL;
    map_section_leave(map);
    return value;
}

/* Inserts a value, unless the key has one, which is then *there. Tries again if another thread's
 * entry prevents the insertion but leaves before its value is loaded. */
static int insert(struct prudence_map *map, const struct map_key *key, void *value, void **there)
{
    struct prudence_map_node *other;
    struct entry *entry = NULL;
    void *found;
    int error;

    if (!fits(map, key) || !value)
        return EINVAL;
    do {
        found = value_of(map, key);
        if (found)
            error = EEXIST;
        else if (!entry && !(entry = make_entry(map, key, value)))
            error = ENOMEM;
        else
            error = map_add(map, &entry->node.node, false, &other);
    } while (error == EEXIST && !found);
    if (error && entry)
        map_entry_free(map, &entry->node.node);
    if (error == EEXIST && there)
        *there = found;
    return error;
}

/* In a section: replaces the entry of the key if it has the value `old`. Returns the old entry, or
 * NULL. */
static struct prudence_map_node *exchange_entry(struct prudence_map *map, const struct map_key *key,
                                                const void *old, struct entry *entry)
{
    struct prudence_map_node *node;

    do {
        node = map_lookup(map, key);
        if (!node || prudence_map_value(node) != old)
            return NULL;
    } while (map_replace(map, key, node, &entry->node.node));
    return node;
}

static int exchange(struct prudence_map *map, const struct map_key *key, void *old, void *fresh)
{
    struct prudence_map_node *left;
    struct entry *entry;

    if (!fits(map, key) || !old || !fresh)
        return EINVAL;
    entry = make_entry(map, key, fresh);
    if (!entry)
        return ENOMEM;
    map_section_enter(map);
    left = exchange_entry(map, key, old, entry);
    map_section_leave(map);
    if (!left) {
        map_entry_free(map, &entry->node.node);
        return ENOENT;
    }
    value_left_by(map, left);
    return 0;
}

static void *erase(struct prudence_map *map, const struct map_key *key)
{
    struct prudence_map_node *node = fits(map, key) ? map_remove(map, key, 0) : NULL;

    return node ? value_left_by(map, node) : NULL;
}

/* --------------------------------------------------------------------------- both kinds of keys */

int prudence_map_put(struct prudence_map *map, uint64_t number, void *value, void **old)
{
    const struct map_key key = map_key_of_number(number);

    return put(map, &key, value, old);
}

int prudence_map_put_bytes(struct prudence_map *map, const void *bytes, size_t length, void *value,
                           void **old)
{
    const struct map_key key = map_key_of_bytes(bytes, length);

    return put(map, &key, value, old);
}

int prudence_map_insert(struct prudence_map *map, uint64_t number, void *value, void **there)
{
    const struct map_key key = map_key_of_number(number);

    return insert(map, &key, value, there);
}

int prudence_map_insert_bytes(struct prudence_map *map, const void *bytes, size_t length,
                              void *value, void **there)
{
    const struct map_key key = map_key_of_bytes(bytes, length);

    return insert(map, &key, value, there);
}

int prudence_map_exchange(struct prudence_map *map, uint64_t number, void *old, void *fresh)
{
    const struct map_key key = map_key_of_number(number);

    return exchange(map, &key, old, fresh);
}

int prudence_map_exchange_bytes(struct prudence_map *map, const void *bytes, size_t length,
                                void *old, void *fresh)
{
    const struct map_key key = map_key_of_bytes(bytes, length);

    return exchange(map, &key, old, fresh);
}

void *prudence_map_erase(struct prudence_map *map, uint64_t number)
{
    const struct map_key key = map_key_of_number(number);

    return erase(map, &key);
}

void *prudence_map_erase_bytes(struct prudence_map *map, const void *bytes, size_t length)
{
    const struct map_key key = map_key_of_bytes(bytes, length);

    return erase(map, &key);
}
