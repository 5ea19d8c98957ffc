/* SPDX-License-Identifier: MIT */
/* Creates, destroys and updates hash tables. */
#include <errno.h>

#include <prudence/stats.h>

#include "os/os.h"
#include "process.h"
#include "tables/attributes.h"
#include "tables/hash.h"
#include "tables/hash_bucket.h"
#include "tables/hash_move.h"
#include "tables/hash_resize.h"
#include "tables/own_successor.h"
#include "tables/writers.h"

/* An addition checks whether the table should grow if it passes this number of nodes. Otherwise,
 * updates check when their CPU's counter is a multiple of COUNTS. */
#define LONG_CHAIN 8
#define COUNTS     64

/* ------------------------------------------------------------------------ making and destroying */

static bool hash_arguments_are_valid(const char *what, const char *name,
                                     const struct prudence_hash_attr *attr)
{
    const unsigned unknown = attr->flags & ~(unsigned)PRUDENCE_HASH_FIXED;

    if (unknown)
        os_report("%s: '%s': attr->flags has unknown bits (0x%x)", what, name, unknown);
    else if (attr->reserved)
        os_report("%s: '%s': attr->reserved is %u, not 0", what, name, attr->reserved);
    else if (attr->buckets > UINT64_C(1) << VIEW_ORDER_MOST)
        os_report("%s: '%s': attr->buckets is %llu, more than 2 to the power of %u", what, name,
                  (unsigned long long)attr->buckets, VIEW_ORDER_MOST);
    else if (attr->buckets_most && attr->buckets_most < attr->buckets)
        os_report("%s: '%s': attr->buckets_most is %llu, less than attr->buckets, which is %llu",
                  what, name, (unsigned long long)attr->buckets_most,
                  (unsigned long long)attr->buckets);
    else
        return true;
    errno = EINVAL;
    return false;
}

static void orders_of(struct hash_table *table, const struct prudence_hash_attr *attr)
{
    table->order_min = views_order(attr->buckets);
    table->order_max = VIEW_ORDER_MOST;
    if (attr->buckets_most && attr->buckets_most < UINT64_C(1) << VIEW_ORDER_MOST)
        table->order_max = views_order(attr->buckets_most);
}

static bool hash_make_parts(struct hash_table *table, const char *name,
                            struct prudence_domain *domain, void *first)
{
    uintptr_t view;
    bool zeroed;

    if (!views_make(&table->views, name, domain, first))
        return false;
    view = views_new(&table->views, table->order_min, &zeroed);
    if (!view) {
        views_unmake(&table->views);
        return false;
    }
    for (uint64_t i = 0; i < view_size(view); i++)
        view_words(view)[i] = PRUDENCE_HASH_END(0);
    table->public.view = view;
    return true;
}

struct hash_table *hash_make(const char *what, const char *name,
                             const struct prudence_hash_attr *attr)
{
    struct hash_table *table;
    size_t counters, bytes, first;

    if (!hash_arguments_are_valid(what, name, attr))
        return NULL;
    process_start();
    counters = object_counters();
    bytes = sizeof *table + counters * sizeof table->counters[0];
    first = views_order(attr->buckets) == VIEW_ORDER_SMALL ? VIEW_FIRST_BYTES : 0;
    table = prudence_aligned_alloc(CACHE_LINES_APART, bytes + first);
    if (!table)
        return NULL;
    __builtin_memset(table, 0, bytes);
    table->counter_mask = narrow(unsigned, counters - 1);
    table->flags = attr->flags;
    orders_of(table, attr);
    if (!hash_make_parts(table, name, attr->domain, first ? (char *)table + bytes : NULL)) {
        prudence_free(table);
        errno = ENOMEM;
        return NULL;
    }
    tables_add(&hash_tables, &table->link);
    return table;
}

struct prudence_hash *prudence_hash_create(const char *name, const struct prudence_hash_attr *attr)
{
    static const char what[] = "prudence_hash_create";
    struct prudence_hash_attr known;
    struct hash_table *table;

    if (!attributes_take(what, name, "prudence_hash_attr", attr, &known, sizeof known) ||
        !attributes_domain_is_valid(what, name, known.domain))
        return NULL;
    table = hash_make(what, name, &known);
    return table ? &table->public : NULL;
}

/* A walk reads the node that it found last when it goes on, so `dispose` gets each node after the
 * next one is found. */
static void hash_dispose(const struct hash_table *table,
                         void (*dispose)(struct prudence_hash_node *object, void *argument),
                         void *argument)
{
    struct prudence_hash_walk walk;
    struct prudence_hash_node *node = prudence_hash_first(&walk, &table->public), *next;

    for (; node; node = next) {
        next = prudence_hash_next(&walk);
        dispose(node, argument);
    }
}

/* The table leaves the list first, because other_table_with reads the objects of listed tables. */
void hash_end(struct hash_table *table,
              void (*dispose)(struct prudence_hash_node *object, void *argument), void *argument)
{
    tables_remove(&table->link);
    if (dispose)
        hash_dispose(table, dispose, argument);
}

void hash_unmake(struct hash_table *table)
{
    views_free(&table->views, table->public.view);
    if (table->from)
        views_free(&table->views, table->from);
    if (table->fresh)
        views_free(&table->views, table->fresh);
    if (table->left.view)
        views_free(&table->views, table->left.view);
    views_unmake(&table->views);
    prudence_free(table);
    tables_trim();
}

int prudence_hash_destroy(struct prudence_hash *public,
                          void (*dispose)(struct prudence_hash_node *object, void *argument),
                          void *argument)
{
    struct hash_table *table = hash_of(public);
    int error;

    if (!table)
        return EINVAL;
    if (!dispose && hash_count(table))
        return EBUSY;
    error = views_may_end(&table->views, "prudence_hash_destroy", __builtin_return_address(0));
    if (error)
        return error;
    hash_end(table, dispose, argument);
    hash_unmake(table);
    return 0;
}

/* ------------------------------------------------------------------------------------- updates */

/* A place in a locked chain: a link, and the next node. */
struct place {
    uintptr_t *bucket;
    uintptr_t first; /* content of the bucket, without HASH_LOCKED */
    uintptr_t *link; /* the link at the place; the bucket, if at the beginning of the chain */
    uintptr_t next;  /* content of that link */
    unsigned passed; /* number of nodes before the place */
};

/* Moves the group of a bucket that is 0 in the view. Does nothing if the view has changed. */
void hash_move_first(const struct hash_table *table, uintptr_t view, uint64_t hash)
{
    uintptr_t from = load_acquire(&table->from);

    if (from && from != view && load_acquire(&table->public.view) == view)
        hash_move(from, view,
                  hash_index(hash, (unsigned)min_size(view_order(from), view_order(view))), false);
}

/* Locks the chain of the hash. Until it is unlocked, this thread is inside the library. */
static void chain_lock(const struct hash_table *table, uint64_t hash, struct place *place)
{
    os_busy_enter();
    for (;;) {
        uintptr_t view = load_acquire(&table->public.view);

        place->bucket = &view_words(view)[hash_index(hash, view_order(view))];
        place->first = hash_bucket_lock_first(place->bucket);
        if (likely(place->first && !(place->first & HASH_MOVED)))
            break;
        if (!place->first)
            hash_move_first(table, view, hash);
    }
    place->link = place->bucket;
    place->next = place->first;
    place->passed = 0;
}

static void pass(struct place *place)
{
    place->link = &prudence_hash_node_(place->next)->next;
    place->next = load_relaxed(place->link);
    place->passed++;
}

/* Moves to the first node with this hash or a higher one. */
static void to_hash(struct place *place, uint64_t hash)
{
    while (is_node(place->next) && prudence_hash_node_(place->next)->hash < hash)
        pass(place);
}

static bool is_at_hash(const struct place *place, uint64_t hash)
{
    return is_node(place->next) && prudence_hash_node_(place->next)->hash == hash;
}

/* Move on from there to the key or the node. Return false at the end. */
static bool to_key(struct place *place, uint64_t hash, prudence_hash_match match, const void *key)
{
    for (; is_at_hash(place, hash); pass(place))
        if (match(found_node(place->next), key))
            return true;
    return false;
}

static bool to_node(struct place *place, const struct prudence_hash_node *node)
{
    for (; is_at_hash(place, node->hash); pass(place))
        if (prudence_hash_node_(place->next) == node)
            return true;
    return false;
}

/* Stores the link at the place, and unlocks the chain. Release: a reader that finds a node sees the
 * content of the object. */
static void store_and_unlock(const struct place *place, uintptr_t link)
{
    if (place->link == place->bucket) {
        hash_bucket_unlock(place->bucket, link);
    } else {
        store_release(place->link, link);
        hash_bucket_unlock(place->bucket, place->first);
    }
    os_busy_leave();
}

static void unlock(const struct place *place)
{
    hash_bucket_unlock(place->bucket, place->first);
    os_busy_leave();
}

int64_t hash_change_count(struct hash_table *table, int64_t objects)
{
    return object_count_add(table->counters, table->counter_mask, objects);
}

void hash_counted(struct hash_table *table, int64_t count, unsigned passed)
{
    if (unlikely(load_relaxed(&table->phase) != HASH_IDLE))
        hash_resize_step(table);
    else if (unlikely(count % COUNTS == 0) || unlikely(passed >= LONG_CHAIN))
        hash_resize_follow_count(table);
}

void hash_replaced(struct hash_table *table)
{
    if (unlikely(load_relaxed(&table->phase) != HASH_IDLE))
        hash_resize_step(table);
}

/* Returns whether the chain of the node's last hash has the node. If a node was never added, the
 * memory may hold anything. */
static bool hash_has_node(const struct hash_table *table, const struct prudence_hash_node *node)
{
    struct place place;
    bool found;

    chain_lock(table, node->hash, &place);
    to_hash(&place, node->hash);
    found = to_node(&place, node);
    unlock(&place);
    return found;
}

/*
 * Returns another table that has the node, or NULL. A table on the list exists while its lock is
 * held, and its arrays while no other thread takes steps. A node that was removed, or never added
 * to a table, rarely costs the search, because most have no link. The program's handlers of
 * pthread_atfork run while the lock is held for fork, so nothing is searched there.
 */
static const struct hash_table *other_table_with(const struct hash_table *table,
                                                 const struct prudence_hash_node *node)
{
    const uintptr_t link = load_relaxed(&node->next);
    struct hash_table *other = NULL;
    struct list *item;

    if ((!is_node(link) && !is_end_of(link, VIEW_ORDER_MOST)) || os_lock_forking)
        return NULL;
    os_lock_take(&tables_lock);
    /* The analyzer does not know that lists are circular. */
    list_for_each(item, &hash_tables) /* NOLINT(clang-analyzer-core.NullDereference) */
    {
        struct hash_table *at = list_entry(item, struct hash_table, link);

        if (at == table)
            continue;
        hash_resize_take_stepping(at);
        if (hash_has_node(at, node))
            other = at;
        hash_resize_end_stepping(at);
        if (other)
            break;
    }
    os_lock_release(&tables_lock);
    return other;
}

/* Skips the searches under Valgrind, because they read memory that may never have been written. */
void hash_check_fresh_slow(const struct hash_table *table, const struct prudence_hash_node *node,
                           const char *what, const void *caller)
{
    const char *const name = table->views.owner.name;
    const struct hash_table *other;

    if (is_misaligned(node))
        os_panic(
            "%s, called from %p: table '%s': node %p is not aligned to 8 bytes: do not pack the "
            "structure that contains the node, and allocate the structure with its alignment",
            what, caller, name, (const void *)node);
    if (annotate_on)
        return;
    if (hash_has_node(table, node))
        os_panic(
            "%s, called from %p: table '%s': node %p is in the table already: remove the node "
            "first, and "
            "add it again after a grace period, or give the object a node for each table",
            what, caller, name, (const void *)node);
    other = other_table_with(table, node);
    if (!other)
        return;
    os_panic(
        "%s, called from %p: table '%s': node %p is in table '%s': remove it there first, and "
        "add it after a grace period, or give the object a node for each table",
        what, caller, name, (const void *)node, other->views.owner.name);
}

static void insert_and_unlock(struct place *place, uint64_t hash, struct prudence_hash_node *node)
{
    node->hash = hash;
    store_relaxed(&node->next, place->next);
    store_and_unlock(place, link_to(node));
}

static void replace_and_unlock(struct place *place, struct prudence_hash_node *node)
{
    const struct prudence_hash_node *old = prudence_hash_node_(place->next);

    node->hash = old->hash;
    store_relaxed(&node->next, load_relaxed(&old->next));
    store_and_unlock(place, link_to(node));
}

int prudence_hash_add_duplicate(struct prudence_hash *public, uint64_t hash,
                                struct prudence_hash_node *node)
{
    struct hash_table *table = hash_of(public);
    const uint64_t spread = prudence_hash_spread_(hash);
    struct place place;
    int64_t here;

    if (unlikely(!public || !node))
        return EINVAL;
    HASH_CHECK_FRESH(table, node);
    chain_lock(table, spread, &place);
    to_hash(&place, spread);
    here = hash_change_count(table, 1);
    insert_and_unlock(&place, spread, node);
    hash_counted(table, here, place.passed);
    return 0;
}

/* Adds the node and returns true, unless a node has the key. Then *place is the place of that node,
 * and the chain stays locked. */
static bool hash_add_or_find(struct hash_table *table, uint64_t spread, prudence_hash_match match,
                             const void *key, struct prudence_hash_node *node, struct place *place)
{
    struct place insertion;
    int64_t here;

    chain_lock(table, spread, place);
    to_hash(place, spread);
    insertion = *place;
    if (to_key(place, spread, match, key))
        return false;
    here = hash_change_count(table, 1);
    insert_and_unlock(&insertion, spread, node);
    hash_counted(table, here, insertion.passed);
    return true;
}

/* Stores what an update found under a key, if the caller wants to know. */
static void hash_tell(struct prudence_hash_node **found, struct prudence_hash_node *node)
{
    if (found)
        *found = node;
}

int prudence_hash_add(struct prudence_hash *public, uint64_t hash, prudence_hash_match match,
                      const void *key, struct prudence_hash_node *node,
                      struct prudence_hash_node **there)
{
    struct place place;

    if (unlikely(!public || !node)) {
        hash_tell(there, NULL);
        return EINVAL;
    }
    HASH_CHECK_FRESH(hash_of(public), node);
    if (hash_add_or_find(hash_of(public), prudence_hash_spread_(hash), match, key, node, &place)) {
        hash_tell(there, NULL);
        return 0;
    }
    unlock(&place);
    hash_tell(there, prudence_hash_node_(place.next));
    return EEXIST;
}

int prudence_hash_put(struct prudence_hash *public, uint64_t hash, prudence_hash_match match,
                      const void *key, struct prudence_hash_node *node,
                      struct prudence_hash_node **old)
{
    struct hash_table *table = hash_of(public);
    struct place place;

    if (unlikely(!public || !node)) {
        hash_tell(old, NULL);
        return EINVAL;
    }
    HASH_CHECK_FRESH(table, node);
    if (hash_add_or_find(table, prudence_hash_spread_(hash), match, key, node, &place)) {
        hash_tell(old, NULL);
        return 0;
    }
    if (unlikely(prudence_hash_node_(place.next) == node)) {
        unlock(&place);
        hash_tell(old, NULL);
        return refuse_own_successor("prudence_hash_put");
    }
    replace_and_unlock(&place, node);
    hash_replaced(table);
    hash_tell(old, prudence_hash_node_(place.next));
    return 0;
}

int prudence_hash_replace(struct prudence_hash *public, struct prudence_hash_node *old,
                          struct prudence_hash_node *fresh)
{
    struct hash_table *table = hash_of(public);
    struct place place;

    if (unlikely(!public || !old || !fresh))
        return EINVAL;
    if (unlikely(old == fresh))
        return refuse_own_successor("prudence_hash_replace");
    HASH_CHECK_FRESH(table, fresh);
    chain_lock(table, old->hash, &place);
    to_hash(&place, old->hash);
    if (!to_node(&place, old)) {
        unlock(&place);
        return ENOENT;
    }
    replace_and_unlock(&place, fresh);
    hash_replaced(table);
    return 0;
}

static void remove_and_unlock(struct hash_table *table, struct place *place)
{
    int64_t here = hash_change_count(table, -1);

    store_and_unlock(place, load_relaxed(&prudence_hash_node_(place->next)->next));
    hash_counted(table, here, 0);
}

int prudence_hash_remove(struct prudence_hash *public, struct prudence_hash_node *node)
{
    struct hash_table *table = hash_of(public);
    struct place place;

    if (unlikely(!public || !node))
        return EINVAL;
    chain_lock(table, node->hash, &place);
    to_hash(&place, node->hash);
    if (!to_node(&place, node)) {
        unlock(&place);
        return ENOENT;
    }
    remove_and_unlock(table, &place);
    return 0;
}

struct prudence_hash_node *hash_remove_key(struct hash_table *table, uint64_t hash,
                                           prudence_hash_match match, const void *key)
{
    const uint64_t spread = prudence_hash_spread_(hash);
    struct place place;

    chain_lock(table, spread, &place);
    to_hash(&place, spread);
    if (!to_key(&place, spread, match, key)) {
        unlock(&place);
        return NULL;
    }
    remove_and_unlock(table, &place);
    return prudence_hash_node_(place.next);
}

bool hash_visit_key(struct hash_table *table, uint64_t hash, prudence_hash_match match,
                    const void *key)
{
    const uint64_t spread = prudence_hash_spread_(hash);
    struct place place;
    bool found;

    chain_lock(table, spread, &place);
    to_hash(&place, spread);
    found = to_key(&place, spread, match, key);
    unlock(&place);
    hash_replaced(table);
    return found;
}

/* ---------------------------------------------------------------------------------- statistics */

uint64_t prudence_hash_count(const struct prudence_hash *table)
{
    return table ? hash_count(hash_of(table)) : 0;
}

/* Runs under `stepping`, so that all numbers except that of the objects are of one moment. */
static void hash_collect_stats(struct hash_table *table, struct prudence_hash_stats *stats)
{
    uintptr_t view = table->public.view;

    stats->objects = hash_count(table);
    stats->buckets = view_size(view);
    stats->grows = table->grows;
    stats->shrinks = table->shrinks;
    stats->refused = load_relaxed(&table->refused);
    stats->bytes_live = sizeof *table + (table->counter_mask + 1) * sizeof table->counters[0] +
                        (table->views.first ? VIEW_FIRST_BYTES : 0) +
                        views_bytes(&table->views, view);
    if (table->from) {
        stats->bytes_live += views_bytes(&table->views, table->from);
        stats->moving =
            view_size(table->from) - table->cursor * (view_size(table->from) > view_size(view)
                                                          ? view_size(table->from) / view_size(view)
                                                          : 1);
    }
    if (table->fresh)
        stats->bytes_live += views_bytes(&table->views, table->fresh);
    if (table->left.view)
        stats->bytes_live += views_bytes(&table->views, table->left.view);
}

int prudence_hash_stats_sized(struct prudence_hash *public, struct prudence_hash_stats *stats,
                              size_t size)
{
    struct hash_table *table = hash_of(public);
    struct prudence_hash_stats all = {.bytes_latent = 0};

    if (!table || !stats)
        return EINVAL;
    hash_resize_take_stepping(table);
    hash_collect_stats(table, &all);
    hash_resize_end_stepping(table);
    all.bytes_latent = views_latent_bytes(&table->views);
    give_sized(stats, size, &all, sizeof all);
    return 0;
}
