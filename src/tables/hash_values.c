/* SPDX-License-Identifier: MIT */
/*
 * Hash tables of values (<prudence/hash_values.h>, ADR 67): a hash table whose objects are entries,
 * allocated here, each with a value and a key.
 *
 * The value of an entry changes only while the bucket is locked and the entry is in the table. So
 * the value of a removed entry no longer changes, an update sees every update before, and a reader
 * loads one word, from before the store or after. A reader whose entry is removed in between loads
 * the last value, which the key had until the removal. The entry was in the table at some moment of
 * the search, so the key had that value at some moment of the call.
 *
 * An entry is allocated before the update and deferred afterwards, both outside of sections, so
 * both may wait. Updates enter a section of their own, because the table's arrays are replaced
 * under them. Replaced arrays, too, are deferred after the section.
 */
#include "tables/hash_values.h"

#include <errno.h>
#include <prudence/rcu.h>

#include "tables/attributes.h"
#include "tables/hash_resize.h"
#include "tables/own_sections.h"
#include "tables/own_successor.h"

struct entry {
    struct prudence_hash_node node;
    void *value;     /* atomic */
    uint64_t number; /* the key, or the length if it is a string */
    uint8_t bytes[]; /* bytes of the string */
};

/* A key as a caller gives it, and the change to the entry with this key. */
struct request {
    const uint8_t *bytes; /* NULL if the key is a number */
    uint64_t number;      /* the number, or the length */
    uint64_t hash;
    void *value; /* value to store; NULL: none */
    void *old;   /* required old value; NULL: any */
    void *found; /* value found */
};

/* ----------------------------------------------------------------------------------------- keys */

static inline struct entry *hash_values_entry(const struct prudence_hash_node *node)
{
    return PRUDENCE_CONTAINER_OF(node, struct entry, node);
}

static inline bool has_number(const struct prudence_hash_node *node, const void *request)
{
    return hash_values_entry(node)->number == ((const struct request *)request)->number;
}

static inline bool has_string(const struct prudence_hash_node *node, const void *request)
{
    tell_acquire(node); /* informs ThreadSanitizer about the bytes that memcmp reads */
    return has_number(node, request) &&
           !__builtin_memcmp(hash_values_entry(node)->bytes,
                             ((const struct request *)request)->bytes,
                             ((const struct request *)request)->number);
}

static inline bool hash_values_has_key(const struct prudence_hash_node *node, const void *request)
{
    return ((const struct request *)request)->bytes ? has_string(node, request)
                                                    : has_number(node, request);
}

/* Make a request. Return false if the table has no such keys. */
static inline bool number_key(const struct prudence_hash_values *table, uint64_t number,
                              struct request *request)
{
    if (unlikely(!table || table->strings))
        return false;
    *request =
        (struct request){.number = number, .hash = prudence_hash_number(&table->secret, number)};
    return true;
}

static inline bool string_key(const struct prudence_hash_values *table, const void *bytes,
                              size_t length, struct request *request)
{
    if (unlikely(!table || !table->strings || (!bytes && length)))
        return false;
    *request = (struct request){.bytes = length ? bytes : (const void *)"", .number = length};
    request->hash = prudence_hash_bytes(&table->secret, request->bytes, length);
    return true;
}

/* -------------------------------------------------------------------------------------- entries */

/* Loads the value. Informs ThreadSanitizer to acquire the entry, which the store of the value
 * released. */
static inline void *hash_values_value(const struct entry *entry)
{
    void *value = load_acquire(&entry->value);

    tell_acquire(entry);
    return value;
}

static struct entry *entry_make(struct prudence_hash_values *table, const struct request *request,
                                void *value)
{
    struct entry *entry = entries_alloc(&table->entries, request->number);

    if (!entry)
        return NULL;
    entry->value = value;
    entry->number = request->number;
    if (request->bytes)
        __builtin_memcpy(entry->bytes, request->bytes, request->number);
    return entry;
}

/* ------------------------------------------------------------------------ making and destroying */

/* Checks what hash_make does not. */
static bool values_flags_are_valid(const char *what, const char *name,
                                   const struct prudence_hash_values_attr *attr)
{
    const unsigned unknown = attr->flags & ~(unsigned)PRUDENCE_HASH_VALUES_BYTES;

    if (!unknown)
        return true;
    os_report("%s: '%s': attr->flags has unknown bits (0x%x)", what, name, unknown);
    errno = EINVAL;
    return false;
}

static struct prudence_hash_values *make(struct hash_table *table, unsigned flags)
{
    struct prudence_hash_values *values = prudence_aligned_alloc(CACHE_LINES_APART, sizeof *values);

    if (!values)
        return NULL;
    __builtin_memset(values, 0, sizeof *values);
    values->table = table;
    values->strings = flags & PRUDENCE_HASH_VALUES_BYTES;
    os_secret(values->secret.words);
    entries_init(&values->entries, &table->views.owner, sizeof(struct entry), values->strings);
    values->domain = table->views.owner.domain;
    values->own_sections = table->leaves_outside = has_own_sections(values->domain);
    return values;
}

struct prudence_hash_values *
prudence_hash_values_create(const char *name, const struct prudence_hash_values_attr *attr)
{
    static const char what[] = "prudence_hash_values_create";
    struct prudence_hash_values_attr known;
    struct prudence_hash_attr of_table = {.size = sizeof of_table};
    struct prudence_hash_values *values;
    struct hash_table *table;

    if (!attributes_take(what, name, "prudence_hash_values_attr", attr, &known, sizeof known) ||
        !values_flags_are_valid(what, name, &known) ||
        !attributes_domain_is_valid(what, name, known.domain))
        return NULL;
    of_table.buckets = known.buckets;
    of_table.buckets_most = known.buckets_most;
    of_table.reserved = known.reserved;
    of_table.domain = known.domain;
    table = hash_make(what, name, &of_table);
    if (!table)
        return NULL;
    values = make(table, known.flags);
    if (!values) {
        hash_end(table, NULL, NULL);
        hash_unmake(table);
        errno = ENOMEM;
    }
    return values;
}

struct disposal {
    struct prudence_hash_values *values;
    void (*dispose)(void *value, void *argument);
    void *argument;
};

static void values_dispose(struct prudence_hash_node *node, void *of)
{
    const struct disposal *disposal = of;
    struct entry *entry = hash_values_entry(node);

    disposal->dispose(hash_values_value(entry), disposal->argument);
    entries_free(&disposal->values->entries, entry, entry->number);
}

int prudence_hash_values_destroy(struct prudence_hash_values *values,
                                 void (*dispose)(void *value, void *argument), void *argument)
{
    int error;

    if (!values)
        return EINVAL;
    if (!dispose && hash_count(values->table))
        return EBUSY;
    error = views_may_end(&values->table->views, "prudence_hash_values_destroy",
                          __builtin_return_address(0));
    if (error)
        return error;
    hash_end(values->table, dispose ? values_dispose : NULL,
             &(struct disposal){values, dispose, argument});
    entries_destroy(&values->entries);
    hash_unmake(values->table);
    prudence_free(values);
    return 0;
}

/* -------------------------------------------------------------------------------------- readers */

void *prudence_hash_values_get(const struct prudence_hash_values *table, uint64_t key)
{
    const struct prudence_hash_node *node;
    struct request request;

    if (unlikely(!number_key(table, key, &request)))
        return NULL;
    node = prudence_hash_lookup(&table->table->public, request.hash, has_number, &request);
    return node ? hash_values_value(hash_values_entry(node)) : NULL;
}

void *prudence_hash_values_get_bytes(const struct prudence_hash_values *table, const void *bytes,
                                     size_t length)
{
    const struct prudence_hash_node *node;
    struct request request;

    if (unlikely(!string_key(table, bytes, length, &request)))
        return NULL;
    node = prudence_hash_lookup(&table->table->public, request.hash, has_string, &request);
    return node ? hash_values_value(hash_values_entry(node)) : NULL;
}

static void *found(struct prudence_hash_values_walk *walk, const struct prudence_hash_node *node)
{
    const struct entry *entry = hash_values_entry(node);

    if (!node)
        return NULL;
    walk->key = walk->strings ? 0 : entry->number;
    walk->bytes = walk->strings ? entry->bytes : NULL;
    walk->length = walk->strings ? entry->number : 0;
    return hash_values_value(entry);
}

void *prudence_hash_values_first(struct prudence_hash_values_walk *walk,
                                 const struct prudence_hash_values *table)
{
    walk->strings = table->strings;
    return found(walk, prudence_hash_first(&walk->walk, &table->table->public));
}

void *prudence_hash_values_next(struct prudence_hash_values_walk *walk)
{
    return found(walk, prudence_hash_next(&walk->walk));
}

/* -------------------------------------------------------------------------------------- updates */

static void enter(const struct prudence_hash_values *table)
{
    if (likely(table->own_sections))
        prudence_domain_read_lock(table->domain);
}

static void leave(const struct prudence_hash_values *table)
{
    if (likely(table->own_sections)) {
        prudence_domain_read_unlock(table->domain);
        hash_resize_leave_array(table->table);
    }
}

/* Returns the value of the key before an addition. If there is one, the addition needs neither
 * the lock nor memory. */
static void *value_now(const struct prudence_hash_values *table, const struct request *request)
{
    const struct prudence_hash_node *node;
    void *value;

    enter(table);
    node = prudence_hash_lookup(&table->table->public, request->hash, hash_values_has_key, request);
    value = node ? hash_values_value(hash_values_entry(node)) : NULL;
    leave(table);
    return value;
}

/*
 * Returns, under the bucket's lock, whether this entry has the key. If so, notes the value found,
 * and changes it as requested. Release: a reader that finds the value sees the memory it points to.
 */
static bool change(const struct prudence_hash_node *node, const void *key)
{
    struct request *request = (struct request *)(uintptr_t)key;
    struct entry *entry = hash_values_entry(node);

    if (!hash_values_has_key(node, key))
        return false;
    request->found = hash_values_value(entry);
    if (request->value && (!request->old || request->old == request->found)) {
        tell_release(entry);
        store_release(&entry->value, request->value);
    }
    return true;
}

/* Changes the value of the key as requested. Returns false if the key has none. */
static bool visit(struct prudence_hash_values *table, struct request *request)
{
    bool there;

    enter(table);
    there = hash_visit_key(table->table, request->hash, change, request);
    leave(table);
    return there;
}

/* Adds an entry with this value. If the key has a value by now, changes that as requested. Returns
 * 0, EEXIST or ENOMEM. */
static int values_add_entry(struct prudence_hash_values *table, struct request *request,
                            void *value)
{
    struct entry *entry = entry_make(table, request, value);
    int error;

    if (!entry)
        return ENOMEM;
    enter(table);
    error = prudence_hash_add(&table->table->public, request->hash, change, request, &entry->node,
                              NULL);
    leave(table);
    if (error)
        entries_free(&table->entries, entry, request->number);
    return error;
}

/* Stores what an update found under a key, or NULL, if the caller wants to know. */
static void values_tell(void **found, void *value)
{
    if (found)
        *found = value;
}

static int values_add(struct prudence_hash_values *table, struct request *request, void *value)
{
    if (!value)
        return EINVAL;
    request->found = value_now(table, request);
    return request->found ? EEXIST : values_add_entry(table, request, value);
}

static int values_put(struct prudence_hash_values *table, struct request *request, void *value)
{
    if (!value)
        return EINVAL;
    request->value = value;
    if (visit(table, request))
        return 0;
    return values_add_entry(table, request, value) == ENOMEM ? ENOMEM : 0;
}

static int values_replace(struct prudence_hash_values *table, struct request *request, void *old,
                          void *fresh)
{
    if (!old || !fresh)
        return EINVAL;
    if (unlikely(old == fresh))
        return refuse_own_successor("prudence_hash_values_replace");
    request->old = old;
    request->value = fresh;
    return visit(table, request) && request->found == old ? 0 : ENOENT;
}

static int values_erase(struct prudence_hash_values *table, struct request *request)
{
    const struct prudence_hash_node *node;
    struct entry *entry;

    enter(table);
    node = hash_remove_key(table->table, request->hash, hash_values_has_key, request);
    leave(table);
    if (!node)
        return ENOENT;
    entry = hash_values_entry(node);
    request->found = hash_values_value(entry);
    entries_defer(&table->entries, entry, entry->number);
    return 0;
}

/* --------------------------------------------------------------------------- both kinds of keys */

int prudence_hash_values_add(struct prudence_hash_values *table, uint64_t key, void *value,
                             void **there)
{
    struct request request = {.found = NULL};
    int error = number_key(table, key, &request) ? values_add(table, &request, value) : EINVAL;

    values_tell(there, request.found);
    return error;
}

int prudence_hash_values_add_bytes(struct prudence_hash_values *table, const void *bytes,
                                   size_t length, void *value, void **there)
{
    struct request request = {.found = NULL};
    int error =
        string_key(table, bytes, length, &request) ? values_add(table, &request, value) : EINVAL;

    values_tell(there, request.found);
    return error;
}

int prudence_hash_values_put(struct prudence_hash_values *table, uint64_t key, void *value,
                             void **old)
{
    struct request request = {.found = NULL};
    int error = number_key(table, key, &request) ? values_put(table, &request, value) : EINVAL;

    values_tell(old, request.found);
    return error;
}

int prudence_hash_values_put_bytes(struct prudence_hash_values *table, const void *bytes,
                                   size_t length, void *value, void **old)
{
    struct request request = {.found = NULL};
    int error =
        string_key(table, bytes, length, &request) ? values_put(table, &request, value) : EINVAL;

    values_tell(old, request.found);
    return error;
}

int prudence_hash_values_replace(struct prudence_hash_values *table, uint64_t key, void *old,
                                 void *fresh)
{
    struct request request;

    return number_key(table, key, &request) ? values_replace(table, &request, old, fresh) : EINVAL;
}

int prudence_hash_values_replace_bytes(struct prudence_hash_values *table, const void *bytes,
                                       size_t length, void *old, void *fresh)
{
    struct request request;

    return string_key(table, bytes, length, &request) ? values_replace(table, &request, old, fresh)
                                                      : EINVAL;
}

int prudence_hash_values_erase(struct prudence_hash_values *table, uint64_t key, void **old)
{
    struct request request = {.found = NULL};
    int error = number_key(table, key, &request) ? values_erase(table, &request) : EINVAL;

    values_tell(old, request.found);
    return error;
}

int prudence_hash_values_erase_bytes(struct prudence_hash_values *table, const void *bytes,
                                     size_t length, void **old)
{
    struct request request = {.found = NULL};
    int error = string_key(table, bytes, length, &request) ? values_erase(table, &request) : EINVAL;

    values_tell(old, request.found);
    return error;
}

/* ----------------------------------------------------------------------------------- statistics */

uint64_t prudence_hash_values_count(const struct prudence_hash_values *table)
{
    return table ? hash_count(table->table) : 0;
}

int prudence_hash_values_stats_sized(struct prudence_hash_values *table,
                                     struct prudence_hash_stats *stats, size_t size)
{
    struct prudence_hash_stats all;

    if (!table || !stats)
        return EINVAL;
    prudence_hash_stats(&table->table->public, &all);
    all.bytes_live += sizeof *table;
    entries_add_bytes(&table->entries, &all.bytes_live, &all.bytes_latent);
    give_sized(stats, size, &all, sizeof all);
    return 0;
}
