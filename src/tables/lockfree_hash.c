/* SPDX-License-Identifier: MIT */
/*
 * The hash table without locks (<prudence/lockfree_hash.h>, ADR 72).
 *
 * A chain begins at a bucket, and new nodes are pushed there. A node is in the table from the push
 * until one atomic operation sets PRUDENCE_LOCKFREE_HASH_REMOVED in the node's link, so exactly one
 * thread removes the node. From then on the link does not change. The removing thread unlinks the
 * node, unless another thread does so while unlinking a node further down.
 *
 * Invariants:
 *  - Every node that is not removed can be reached from its bucket, as can every removed node that
 *    is not unlinked yet.
 *  - Two nodes of a chain never change their order. A node enters a chain only at the bucket or, to
 *    replace another node, right after that node, by the same operation that removes the other. So
 *    a reader always finds one node of a key that is being replaced.
 *  - Only the first removed node after one that is not removed is unlinked. The atomic operation on
 *    the latter's link fails if the latter was removed in between. So nothing is unlinked from, or
 *    linked to, a node that is not in the chain.
 *  - While a thread stays in a section in which it saw a link, a link that changed returns to the
 *    old value only if the nodes linked in between have come and gone, because a node is added
 *    again only after a grace period.
 *
 * Order. Operations that store a link are releases, and loads of links are acquires. So a thread
 * that follows a link sees the node as it was when added, whichever thread stored the link last.
 */
#include <errno.h>

#include "base/atomic.h"
#include "bug_search.h"
#include "os/os.h"
#include "race_detector.h"

/* The header's functions, when compiled here, use tell_acquire, because ThreadSanitizer may be in
 * the caller's program only. */
#include <prudence/language.h>
#undef PRUDENCE_TELL_FOUND
#define PRUDENCE_TELL_FOUND(node) tell_acquire(node)
#include <prudence/lockfree_hash.h>

#include "tables/attributes.h"
#include "tables/own_successor.h"
#include "tables/views.h"

#define BUCKETS 64 /* if the caller gives no number */
#define REMOVED ((uintptr_t)PRUDENCE_LOCKFREE_HASH_REMOVED)

/* Table and buckets are one allocation, and the name follows them. The table itself is never
 * written, and no written data shares the cache line. */
struct lockfree_table {
    struct prudence_lockfree_hash public; /* constant, like the name */
    const char *name;
    uintptr_t buckets[] __attribute__((aligned(VIEW_ORDER_MASK + 1)));
};

/* ------------------------------------------------------------------------ making and destroying */

static size_t bytes_of(unsigned order)
{
    return sizeof(struct lockfree_table) + (sizeof(uintptr_t) << order);
}

static struct lockfree_table *lockfree_make(const char *name, unsigned order)
{
    const size_t name_bytes = __builtin_strlen(name) + 1;
    struct lockfree_table *table =
        prudence_aligned_alloc(VIEW_ORDER_MASK + 1, bytes_of(order) + name_bytes);

    if (!table)
        return NULL;
    __builtin_memset(table, 0, bytes_of(order));
    __builtin_memcpy((char *)table + bytes_of(order), name, name_bytes);
    table->name = (char *)table + bytes_of(order);
    table->public.view = (uintptr_t)table->buckets | order;
    return table;
}

struct prudence_lockfree_hash *
prudence_lockfree_hash_create(const char *name, const struct prudence_lockfree_hash_attr *attr)
{
    static const char what[] = "prudence_lockfree_hash_create";
    struct prudence_lockfree_hash_attr known;
    struct lockfree_table *table;
    uint64_t buckets;

    if (!attributes_take(what, name, "prudence_lockfree_hash_attr", attr, &known, sizeof known))
        return NULL;
    if (known.buckets > UINT64_C(1) << VIEW_ORDER_MOST) {
        os_report("%s: '%s': attr->buckets is %llu, more than 2 to the power of %u", what, name,
                  (unsigned long long)known.buckets, VIEW_ORDER_MOST);
        errno = EINVAL;
        return NULL;
    }
    buckets = known.buckets ? known.buckets : BUCKETS;
    table = lockfree_make(name, buckets > 2 ? 64 - (unsigned)__builtin_clzll(buckets - 1) : 1);
    return table ? &table->public : NULL;
}

/* Takes the next object from the table before it disposes of the one before. */
static void lockfree_dispose(const struct prudence_lockfree_hash *table,
                             void (*dispose)(struct prudence_hash_node *object, void *argument),
                             void *argument)
{
    struct prudence_lockfree_hash_walk walk;
    struct prudence_hash_node *node = prudence_lockfree_hash_first(&walk, table), *next;

    for (; node; node = next) {
        next = prudence_lockfree_hash_next(&walk);
        dispose(node, argument);
    }
}

int prudence_lockfree_hash_destroy(struct prudence_lockfree_hash *public,
                                   void (*dispose)(struct prudence_hash_node *object,
                                                   void *argument),
                                   void *argument)
{
    struct prudence_lockfree_hash_walk walk;

    if (!public)
        return EINVAL;
    if (!dispose && prudence_lockfree_hash_first(&walk, public))
        return EBUSY;
    if (dispose)
        lockfree_dispose(public, dispose, argument);
    prudence_free(public);
    return 0;
}

/* -------------------------------------------------------------------------------------- updates */

/* Replaces the link if it is `expected`. Otherwise returns false, with the present link in
 * *expected. */
static bool swap_link(uintptr_t *place, uintptr_t *expected, uintptr_t link)
{
    return __atomic_compare_exchange_n(place, expected, link, false, __ATOMIC_RELEASE,
                                       __ATOMIC_ACQUIRE);
}

/*
 * Unlinks the removed nodes from the beginning of the chain up to `node`, which is one of them.
 * Returns false if another update has changed a link in between. After true, `node` is unlinked, by
 * this thread or another. While `node` is linked, it is not before `place`, because the node there
 * was not removed when its link was loaded, so nothing was unlinked between that node and `at`.
 */
static bool unlink_up_to(uintptr_t *bucket, const struct prudence_hash_node *node)
{
    uintptr_t *place = bucket, link = load_acquire(place);

    while (link) {
        struct prudence_hash_node *at = prudence_lockfree_hash_node_(link);
        uintptr_t next = load_acquire(&at->next);

        if (!(next & REMOVED)) {
            place = &at->next;
        } else {
            next &= ~REMOVED;
            if (!swap_link(place, &link, next))
                return false;
            if (at == node)
                return true;
        }
        link = next;
    }
    return true;
}

static void unlink_removed(const struct prudence_lockfree_hash *table,
                           const struct prudence_hash_node *node)
{
    uintptr_t *bucket = prudence_lockfree_hash_bucket_(table, node->hash);

    while (!unlink_up_to(bucket, node)) {
    }
}

/* Returns whether the node is in the chain of its last hash. A node is not there any more once its
 * removal has returned. */
static bool lockfree_hash_has_node(const struct prudence_lockfree_hash *table,
                                   const struct prudence_hash_node *node)
{
    uintptr_t link = load_acquire(prudence_lockfree_hash_bucket_(table, node->hash));

    while (link && prudence_lockfree_hash_node_(link) != node)
        link = load_acquire(&prudence_lockfree_hash_node_(link)->next) & ~REMOVED;
    return link;
}

static bool is_misaligned(const struct prudence_hash_node *node)
{
    return (uintptr_t)node % sizeof(uintptr_t) != 0;
}

/* The counterpart of hash_check_fresh_slow in the hash table with locks (hash.c). */
static __attribute__((noinline, cold)) void
check_fresh_slow(const struct prudence_lockfree_hash *table, const struct prudence_hash_node *node,
                 const char *what, const void *caller)
{
    const char *name = ((const struct lockfree_table *)table)->name;

    if (is_misaligned(node))
        os_panic(
            "%s, called from %p: table '%s': node %p is not aligned to 8 bytes: do not pack the "
            "structure that contains the node, and allocate the structure with its alignment",
            what, caller, name, (const void *)node);
    if (!annotate_on && lockfree_hash_has_node(table, node))
        os_panic(
            "%s, called from %p: table '%s': node %p is in the table already: remove it first, "
            "and add it again after a grace period, or give the object a node for each table",
            what, caller, name, (const void *)node);
}

#define CHECK_FRESH(table, node)                                                                   \
    (unlikely(is_misaligned(node)) || unlikely(check_wanted)                                       \
         ? check_fresh_slow((table), (node), __func__, __builtin_return_address(0))                \
         : (void)0)

/* Informs ThreadSanitizer about a node that is about to be linked. The thread that finds the node
 * acquires it (PRUDENCE_TELL_FOUND). */
static uintptr_t link_to(const struct prudence_hash_node *node)
{
    tell_release(node);
    return (uintptr_t)node;
}

/* Pushes the node if the bucket still holds *first. Otherwise *first becomes the present link. */
static bool lockfree_hash_push(uintptr_t *bucket, uintptr_t *first, struct prudence_hash_node *node)
{
    store_relaxed(&node->next, *first);
    return swap_link(bucket, first, link_to(node));
}

int prudence_lockfree_hash_add_duplicate(struct prudence_lockfree_hash *table, uint64_t hash,
                                         struct prudence_hash_node *node)
{
    uintptr_t *bucket, first;

    if (unlikely(!table || !node))
        return EINVAL;
    CHECK_FRESH(table, node);
    node->hash = prudence_hash_spread_(hash);
    bucket = prudence_lockfree_hash_bucket_(table, node->hash);
    first = load_acquire(bucket);
    while (!lockfree_hash_push(bucket, &first, node)) {
    }
    return 0;
}

/* Notes that a node which the table has refused is not in the table, unless the caller gave a node
 * that is. No other thread has the node, which may hold the link that it was to get. */
static void note_refused(const struct prudence_lockfree_hash *table,
                         struct prudence_hash_node *node)
{
    if (likely(!lockfree_hash_has_node(table, node)))
        store_relaxed(&node->next, REMOVED);
}

/* Puts `fresh` after `old` and removes `old`, in one operation. Returns false if another thread
 * removed `old`. */
static bool replace(struct prudence_hash_node *old, struct prudence_hash_node *fresh)
{
    uintptr_t next = load_acquire(&old->next);

    fresh->hash = old->hash;
    while (!(next & REMOVED)) {
        store_relaxed(&fresh->next, next);
        if (swap_link(&old->next, &next, link_to(fresh) | REMOVED))
            return true;
    }
    return false;
}

/*
 * Adds the node and returns NULL, or returns the object that has the key. With `replacing`, the
 * node takes the place of that object, unless it is that object. A node that was added during the
 * search is at the front of the chain, where the push notices it in the bucket.
 */
static struct prudence_hash_node *
lockfree_hash_add_or_find(struct prudence_lockfree_hash *table, uint64_t hash,
                          prudence_hash_match match, const void *key,
                          struct prudence_hash_node *node, bool replacing)
{
    uintptr_t *bucket, first;

    node->hash = prudence_hash_spread_(hash);
    bucket = prudence_lockfree_hash_bucket_(table, node->hash);
    first = load_acquire(bucket);
    for (;;) {
        struct prudence_hash_node *there =
            prudence_lockfree_hash_search_(first, node->hash, match, key);

        if (there && (there == node || !replacing || replace(there, node)))
            return there;
        if (there)
            first = load_acquire(bucket);
        else if (lockfree_hash_push(bucket, &first, node))
            return NULL;
    }
}

/* Stores what an update found under a key, if the caller wants to know. */
static void lockfree_tell(struct prudence_hash_node **found, struct prudence_hash_node *node)
{
    if (found)
        *found = node;
}

int prudence_lockfree_hash_add(struct prudence_lockfree_hash *table, uint64_t hash,
                               prudence_hash_match match, const void *key,
                               struct prudence_hash_node *node, struct prudence_hash_node **there)
{
    struct prudence_hash_node *found;

    if (unlikely(!table || !node)) {
        lockfree_tell(there, NULL);
        return EINVAL;
    }
    CHECK_FRESH(table, node);
    found = lockfree_hash_add_or_find(table, hash, match, key, node, false);
    if (found)
        note_refused(table, node);
    lockfree_tell(there, found);
    return found ? EEXIST : 0;
}

int prudence_lockfree_hash_put(struct prudence_lockfree_hash *table, uint64_t hash,
                               prudence_hash_match match, const void *key,
                               struct prudence_hash_node *node, struct prudence_hash_node **old)
{
    struct prudence_hash_node *found;

    if (unlikely(!table || !node)) {
        lockfree_tell(old, NULL);
        return EINVAL;
    }
    CHECK_FRESH(table, node);
    found = lockfree_hash_add_or_find(table, hash, match, key, node, true);
    if (unlikely(found == node)) {
        lockfree_tell(old, NULL);
        return refuse_own_successor("prudence_lockfree_hash_put");
    }
    if (found)
        unlink_removed(table, found);
    lockfree_tell(old, found);
    return 0;
}

int prudence_lockfree_hash_replace(struct prudence_lockfree_hash *table,
                                   struct prudence_hash_node *old, struct prudence_hash_node *fresh)
{
    if (unlikely(!table || !old || !fresh))
        return EINVAL;
    if (unlikely(old == fresh))
        return refuse_own_successor("prudence_lockfree_hash_replace");
    CHECK_FRESH(table, fresh);
    if (!replace(old, fresh)) {
        note_refused(table, fresh);
        return ENOENT;
    }
    unlink_removed(table, old);
    return 0;
}

int prudence_lockfree_hash_remove(struct prudence_lockfree_hash *table,
                                  struct prudence_hash_node *node)
{
    uintptr_t next;

    if (unlikely(!table || !node))
        return EINVAL;
    next = load_acquire(&node->next);
    do {
        if (next & REMOVED)
            return ENOENT;
    } while (!swap_link(&node->next, &next, next | REMOVED));
    unlink_removed(table, node);
    return 0;
}

/* ---------------------------------------------------------------------------------------- walks */

struct prudence_hash_node *prudence_lockfree_hash_next(struct prudence_lockfree_hash_walk *walk)
{
    for (;;) {
        while (walk->link & ~REMOVED) {
            struct prudence_hash_node *node = prudence_lockfree_hash_node_(walk->link);

            walk->link = load_acquire(&node->next);
            if (!(walk->link & REMOVED))
                return node;
        }
        if (walk->bucket == view_size(walk->table->view))
            return NULL;
        walk->link = load_acquire(&view_words(walk->table->view)[walk->bucket++]);
    }
}

struct prudence_hash_node *prudence_lockfree_hash_first(struct prudence_lockfree_hash_walk *walk,
                                                        const struct prudence_lockfree_hash *table)
{
    *walk = (struct prudence_lockfree_hash_walk){.table = table};
    return prudence_lockfree_hash_next(walk);
}

static void lockfree_hash_count_chain(uintptr_t link, struct prudence_lockfree_hash_stats *stats)
{
    uint64_t objects = 0, removed = 0;

    while (link) {
        uintptr_t next = load_acquire(&prudence_lockfree_hash_node_(link)->next);

        removed += next & REMOVED;
        objects += !(next & REMOVED);
        link = next & ~REMOVED;
    }
    stats->objects += objects;
    stats->removed += removed;
    if (stats->longest < objects + removed)
        stats->longest = objects + removed;
}

int prudence_lockfree_hash_stats_sized(const struct prudence_lockfree_hash *table,
                                       struct prudence_lockfree_hash_stats *stats, size_t size)
{
    struct prudence_lockfree_hash_stats all = {.objects = 0};

    if (!table || !stats)
        return EINVAL;
    all.buckets = view_size(table->view);
    all.bytes_live = bytes_of(view_order(table->view));
    for (uint64_t i = 0; i < all.buckets; i++)
        lockfree_hash_count_chain(load_acquire(&view_words(table->view)[i]), &all);
    give_sized(stats, size, &all, sizeof all);
    return 0;
}
