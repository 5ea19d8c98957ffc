/* SPDX-License-Identifier: MIT */
/*
 * Ordered maps of values (<prudence/map_values.h>, ADR 69): a map whose objects are entries,
 * allocated here, each with a value and a copy of the key. A `struct prudence_map_values` is a
 * `struct prudence_map` under another name, so that neither can be given to the other's functions
 * unnoticed. The map treats entries like any other object. An update changes a value by putting
 * another entry in the place of the first.
 *
 * An entry of a number has 16 bytes; one of a string has 24 and the string (entries.h). An entry is
 * made before the update and deferred afterwards, both outside of sections, so both may wait, as
 * for nodes.
 */
#include <prudence/map_values.h>

#include <errno.h>

#include "tables/attributes.h"
#include "tables/map.h"
#include "tables/map_add.h"
#include "tables/map_read.h"
#include "tables/map_remove.h"
#include "tables/map_update.h"
#include "tables/own_successor.h"

struct entry {
    void *value;                    /* prudence_map_values_value reads this word before the node */
    struct prudence_map_bytes node; /* without the length if the key is a number */
    uint8_t bytes[];                /* bytes of the key */
};

#define NUMBER_BYTES (offsetof(struct entry, node) + sizeof(struct prudence_map_node))

/* -------------------------------------------------------------------------------------- entries */

static struct prudence_map *map_of(const struct prudence_map_values *values)
{
    return (struct prudence_map *)values;
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

static struct entry *map_values_entry(const struct prudence_map_node *node)
{
    return PRUDENCE_CONTAINER_OF(node, struct entry, node.node);
}

static size_t length_of(const struct prudence_map *map, const struct entry *entry)
{
    return map->bytes ? entry->node.length : 0;
}

/* Frees an entry that no reader can see. */
static void free_entry(struct prudence_map *map, struct entry *entry)
{
    entries_free(&map->entries, entry, length_of(map, entry));
}

/* Returns the value of an entry that an update has unlinked, and defers the entry. */
static void *value_left_by(struct prudence_map *map, struct prudence_map_node *node)
{
    struct entry *entry = map_values_entry(node);
    void *value = entry->value;

    entries_defer(&map->entries, entry, length_of(map, entry));
    return value;
}

/* ------------------------------------------------------------------------ making and destroying */

struct prudence_map_values *prudence_map_values_create(const char *name,
                                                       const struct prudence_map_values_attr *attr)
{
    static const char what[] = "prudence_map_values_create";
    struct prudence_map_values_attr known;
    struct prudence_map *map;
    bool bytes;

    if (!attributes_take(what, name, "prudence_map_values_attr", attr, &known, sizeof known) ||
        !map_flags_are_valid(what, name, known.flags, known.reserved) ||
        !attributes_domain_is_valid(what, name, known.domain))
        return NULL;
    bytes = known.flags & PRUDENCE_MAP_VALUES_BYTES;
    map = map_make(name, bytes, known.domain);
    if (map)
        entries_init(&map->entries, &map->owner, bytes ? sizeof(struct entry) : NUMBER_BYTES,
                     bytes);
    return (struct prudence_map_values *)map;
}

_Static_assert((unsigned)PRUDENCE_MAP_VALUES_BYTES == (unsigned)PRUDENCE_MAP_BYTES,
               "map_flags_are_valid checks both");

struct disposal {
    struct prudence_map *map;
    void (*dispose)(void *value, void *argument);
    void *argument;
};

static void map_values_dispose(struct prudence_map_node *node, void *of)
{
    const struct disposal *disposal = of;

    disposal->dispose(prudence_map_values_value(node), disposal->argument);
    free_entry(disposal->map, map_values_entry(node));
}

int prudence_map_values_destroy(struct prudence_map_values *values,
                                void (*dispose)(void *value, void *argument), void *argument)
{
    struct disposal disposal = {map_of(values), dispose, argument};

    return map_destroy("prudence_map_values_destroy", __builtin_return_address(0), map_of(values),
                       dispose ? map_values_dispose : NULL, &disposal);
}

/* -------------------------------------------------------------------------------------- updates */

/* Checks the arguments of an update, and forgets what it is to find. */
static bool map_values_begin(const struct prudence_map *map, const struct map_key *key,
                             void **found)
{
    if (found)
        *found = NULL;
    return map && map_key_fits(map, key);
}

static int map_values_put(struct prudence_map *map, const struct map_key *key, void *value,
                          void **old)
{
    struct prudence_map_node *replaced;
    struct entry *entry;
    void *before;
    int error;

    if (!map_values_begin(map, key, old) || !value)
        return EINVAL;
    entry = make_entry(map, key, value);
    if (!entry)
        return ENOMEM;
    error = map_add(map, &entry->node.node, true, &replaced);
    if (error) {
        free_entry(map, entry);
        return error;
    }
    before = replaced ? value_left_by(map, replaced) : NULL;
    if (old)
        *old = before;
    return 0;
}

/* Returns the value of the key, loaded in a section, or NULL. */
static void *map_values_value(const struct prudence_map *map, const struct map_key *key)
{
    const struct prudence_map_node *node;
    void *value;

    map_section_enter(map);
    node = map_lookup(map, key);
    value = node ? prudence_map_values_value(node) : NULL;
    map_section_leave(map);
    return value;
}

/* Adds a value, unless the key has one, which is then *there. Tries again if another thread's entry
 * prevents the addition but leaves before its value is loaded. */
static int map_values_add(struct prudence_map *map, const struct map_key *key, void *value,
                          void **there)
{
    struct prudence_map_node *other;
    struct entry *entry = NULL;
    void *found;
    int error;

    if (!map_values_begin(map, key, there) || !value)
        return EINVAL;
    do {
        found = map_values_value(map, key);
        if (found)
            error = EEXIST;
        else if (!entry && !(entry = make_entry(map, key, value)))
            error = ENOMEM;
        else
            error = map_add(map, &entry->node.node, false, &other);
    } while (error == EEXIST && !found);
    if (error && entry)
        free_entry(map, entry);
    if (there)
        *there = found;
    return error;
}

/* In a section: replaces the entry of the key if it has the value `old`. Returns the old entry, or
 * NULL. */
static struct prudence_map_node *replace_entry(struct prudence_map *map, const struct map_key *key,
                                               const void *old, struct entry *entry)
{
    struct prudence_map_node *node;

    do {
        node = map_lookup(map, key);
        if (!node || prudence_map_values_value(node) != old)
            return NULL;
    } while (map_replace(map, key, node, &entry->node.node));
    return node;
}

static int map_values_replace(struct prudence_map *map, const struct map_key *key, void *old,
                              void *fresh)
{
    struct prudence_map_node *left;
    struct entry *entry;

    if (!map_values_begin(map, key, NULL) || !old || !fresh)
        return EINVAL;
    if (unlikely(old == fresh))
        return refuse_own_successor("prudence_map_values_replace");
    entry = make_entry(map, key, fresh);
    if (!entry)
        return ENOMEM;
    map_section_enter(map);
    left = replace_entry(map, key, old, entry);
    map_section_leave(map);
    if (!left) {
        free_entry(map, entry);
        return ENOENT;
    }
    value_left_by(map, left);
    return 0;
}

static int map_values_erase(struct prudence_map *map, const struct map_key *key, void **old)
{
    struct prudence_map_node *node;
    void *value;

    if (!map_values_begin(map, key, old))
        return EINVAL;
    node = map_remove(map, key, 0);
    if (!node)
        return ENOENT;
    value = value_left_by(map, node);
    if (old)
        *old = value;
    return 0;
}

/* --------------------------------------------------------------------------- both kinds of keys */

int prudence_map_values_add(struct prudence_map_values *values, uint64_t number, void *value,
                            void **there)
{
    const struct map_key key = map_key_of_number(number);

    return map_values_add(map_of(values), &key, value, there);
}

int prudence_map_values_add_bytes(struct prudence_map_values *values, const void *bytes,
                                  size_t length, void *value, void **there)
{
    const struct map_key key = map_key_of_bytes(bytes, length);

    return map_values_add(map_of(values), &key, value, there);
}

int prudence_map_values_put(struct prudence_map_values *values, uint64_t number, void *value,
                            void **old)
{
    const struct map_key key = map_key_of_number(number);

    return map_values_put(map_of(values), &key, value, old);
}

int prudence_map_values_put_bytes(struct prudence_map_values *values, const void *bytes,
                                  size_t length, void *value, void **old)
{
    const struct map_key key = map_key_of_bytes(bytes, length);

    return map_values_put(map_of(values), &key, value, old);
}

int prudence_map_values_replace(struct prudence_map_values *values, uint64_t number, void *old,
                                void *fresh)
{
    const struct map_key key = map_key_of_number(number);

    return map_values_replace(map_of(values), &key, old, fresh);
}

int prudence_map_values_replace_bytes(struct prudence_map_values *values, const void *bytes,
                                      size_t length, void *old, void *fresh)
{
    const struct map_key key = map_key_of_bytes(bytes, length);

    return map_values_replace(map_of(values), &key, old, fresh);
}

int prudence_map_values_erase(struct prudence_map_values *values, uint64_t number, void **old)
{
    const struct map_key key = map_key_of_number(number);

    return map_values_erase(map_of(values), &key, old);
}

int prudence_map_values_erase_bytes(struct prudence_map_values *values, const void *bytes,
                                    size_t length, void **old)
{
    const struct map_key key = map_key_of_bytes(bytes, length);

    return map_values_erase(map_of(values), &key, old);
}

/* ---------------------------------------------------------------------------------- statistics */

uint64_t prudence_map_values_count(const struct prudence_map_values *values)
{
    return prudence_map_count(map_of(values));
}

int prudence_map_values_stats_sized(struct prudence_map_values *values,
                                    struct prudence_map_stats *stats, size_t size)
{
    return prudence_map_stats_sized(map_of(values), stats, size);
}
