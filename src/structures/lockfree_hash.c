/* SPDX-License-Identifier: MIT */
/*
 * The hash table without locks (<prudence/lockfree_hash.h>, ADR 72).
 *
 * A chain begins at its bucket; new nodes are pushed there, in front. A node is in the table from its push until its link gets
 * PRUDENCE_LOCKFREE_REMOVED, which is one atomic operation: so one thread removes it. From then on its link does not change, and
 * it is unlinked, by that thread or by another one that unlinks something behind it.
 *
 * Invariants:
 *  - Every node that is not removed is reached from its bucket, as is every removed one that is not unlinked yet.
 *  - Two nodes of a chain never change their order, and nothing enters a chain except at its bucket, or, replacing a node,
 *    right behind that node by the same operation that removes it. So of a key that is replaced, one node can always be found.
 *  - Only the first removed node behind one that is not removed is unlinked, by an atomic operation on the latter's link, which fails
 *    if that one has been removed meanwhile. So nothing is unlinked from, or linked to, a node that is not in the chain.
 *  - A link that has changed does not become what it was while a thread is in a section that has seen it, unless what stood there
 *    in between has come and gone: nodes are added again after a grace period only.
 *
 * Order: an operation that stores a link is a release, and every load of a link an acquire: so a thread that follows a link, whichever
 * thread stored it last, sees the node as it was when it was added.
 */
#include <errno.h>

#include "base/atomic.h"
#include "debug/annotate.h"
#include "debug/settings.h"
#include "heap/heap.h"
#include "os/os.h"
#include "race_detector.h"

/* What the header's functions find here, where its caller's program is the one that is built with ThreadSanitizer. */
#include <prudence/language.h>
#undef PRUDENCE_TELL_FOUND
#define PRUDENCE_TELL_FOUND(node) tell_acquire(node)
#include <prudence/lockfree_hash.h>

#include "structures/views.h"

#define REMOVED ((uintptr_t)PRUDENCE_LOCKFREE_REMOVED)

/* One allocation: this, and the buckets. Nobody writes it, so lines may be shared with nothing else. */
struct lockfree_table {
    struct prudence_lockfree_hash public; /* constant */
    uintptr_t buckets[] __attribute__((aligned(VIEW_ORDER_MASK + 1)));
};

/* --------------------------------------------------------------------------- making and destroying */

static size_t bytes_of(unsigned order)
{
    return sizeof(struct lockfree_table) + (sizeof(uintptr_t) << order);
}

struct prudence_lockfree_hash *prudence_lockfree_hash_create(uint64_t buckets)
{
    struct lockfree_table *table;
    unsigned order;

    if (buckets < 2 || buckets > UINT64_C(1) << VIEW_ORDER_MOST) {
        os_report(
            "prudence_lockfree_hash_create: buckets is %llu, not from 2 to 2 to the power of "
            "%u",
            (unsigned long long)buckets, VIEW_ORDER_MOST);
        errno = EINVAL;
        return NULL;
    }
    order = 64 - (unsigned)__builtin_clzll(buckets - 1);
    table = prudence_aligned_alloc(VIEW_ORDER_MASK + 1, bytes_of(order));
    if (!table)
        return NULL;
    __builtin_memset(table, 0, bytes_of(order));
    table->public.view = (uintptr_t)table->buckets | order;
    return &table->public;
}

int prudence_lockfree_hash_destroy(struct prudence_lockfree_hash *public)
{
    struct prudence_lockfree_walk walk;

    if (!public)
        return EINVAL;
    if (prudence_lockfree_hash_first(&walk, public))
        return EBUSY;
    prudence_free(public);
    return 0;
}

/* --------------------------------------------------------------------------------------- updates */

/* Whether the link was `expected`, and is `link` now; otherwise *expected is what it is. */
static bool swap_link(uintptr_t *place, uintptr_t *expected, uintptr_t link)
{
    return __atomic_compare_exchange_n(place, expected, link, false, __ATOMIC_RELEASE,
                                       __ATOMIC_ACQUIRE);
}

/*
 * From the beginning of the chain, unlinks what is removed, up to `node`, which is. False: another update has changed
 * the link in question. True: `node` is unlinked, by this thread or another one: as long as it is linked it is not in front of
 * `place`, because the node there was not removed when its link was loaded, so nothing was unlinked between that one and `at`.
 */
static bool unlink_up_to(uintptr_t *bucket, const struct prudence_hash_node *node)
{
    uintptr_t *place = bucket, link = load_acquire(place);

    while (link) {
        struct prudence_hash_node *at = prudence_lockfree_node_(link);
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
    uintptr_t *bucket = prudence_lockfree_bucket_(table, node->hash);

    while (!unlink_up_to(bucket, node)) {
    }
}

/* In the chain of the hash that it was given last. What was removed is not in the chain any more when that has returned. */
static bool is_in_table(const struct prudence_lockfree_hash *table,
                        const struct prudence_hash_node *node)
{
    uintptr_t link = load_acquire(prudence_lockfree_bucket_(table, node->hash));

    while (link && prudence_lockfree_node_(link) != node)
        link = load_acquire(&prudence_lockfree_node_(link)->next) & ~REMOVED;
    return link;
}

static bool is_misaligned(const struct prudence_hash_node *node)
{
    return (uintptr_t)node % sizeof(uintptr_t) != 0;
}

/* As its namesake of the hash table with locks (hash.c). */
static __attribute__((noinline, cold)) void
check_fresh_slow(const struct prudence_lockfree_hash *table, const struct prudence_hash_node *node,
                 const char *what, const void *caller)
{
    if (is_misaligned(node))
        os_panic(
            "%s, called from %p: node %p is not at an address that 8 divides: do not pack the "
            "structure that it stands in, and allocate it with its alignment",
            what, caller, (const void *)node);
    if (!annotate_on && is_in_table(table, node))
        os_panic(
            "%s, called from %p: node %p is in the table already: remove it first, and add it "
            "again after a grace period, or give the object a node for each table",
            what, caller, (const void *)node);
}

#define CHECK_FRESH(table, node)                                                                   \
    (unlikely(is_misaligned(node)) || unlikely(check_wanted)                                       \
         ? check_fresh_slow((table), (node), __func__, __builtin_return_address(0))                \
         : (void)0)

/* ThreadSanitizer is told of the node, which is about to be linked. Whoever finds it acquires it: PRUDENCE_TELL_FOUND. */
static uintptr_t link_to(const struct prudence_hash_node *node)
{
    tell_release(node);
    return (uintptr_t)node;
}

/* Pushes the node, if the bucket is still *first; otherwise *first is what it is. */
static bool push(uintptr_t *bucket, uintptr_t *first, struct prudence_hash_node *node)
{
    store_relaxed(&node->next, *first);
    return swap_link(bucket, first, link_to(node));
}

void prudence_lockfree_hash_add(struct prudence_lockfree_hash *table, uint64_t hash,
                                struct prudence_hash_node *node)
{
    uintptr_t *bucket, first;

    CHECK_FRESH(table, node);
    node->hash = prudence_hash_spread_(hash);
    bucket = prudence_lockfree_bucket_(table, node->hash);
    first = load_acquire(bucket);
    while (!push(bucket, &first, node)) {
    }
}

/* Puts `fresh` behind `old`, and removes that, in one operation. False: `old` was removed by another thread. */
static bool replace(struct prudence_hash_node *old, struct prudence_hash_node *fresh)
{
    uintptr_t next = load_acquire(&old->next);

    do {
        if (next & REMOVED)
            return false;
        fresh->hash = old->hash;
        store_relaxed(&fresh->next, next);
    } while (!swap_link(&old->next, &next, link_to(fresh) | REMOVED));
    return true;
}

/*
 * Adds the node, unless an object has the key: what stands in front of what was searched was added meanwhile, and would be
 * found in the bucket. With `replacing` the node takes that object's place. Returns it, or NULL.
 */
static struct prudence_hash_node *add_or_find(struct prudence_lockfree_hash *table, uint64_t hash,
                                              prudence_hash_match match, const void *key,
                                              struct prudence_hash_node *node, bool replacing)
{
    uintptr_t *bucket, first;

    node->hash = prudence_hash_spread_(hash);
    bucket = prudence_lockfree_bucket_(table, node->hash);
    first = load_acquire(bucket);
    for (;;) {
        struct prudence_hash_node *there = prudence_lockfree_search_(first, node->hash, match, key);

        if (there && (!replacing || replace(there, node)))
            return there;
        if (there)
            first = load_acquire(bucket);
        else if (push(bucket, &first, node))
            return NULL;
    }
}

struct prudence_hash_node *prudence_lockfree_hash_add_unique(struct prudence_lockfree_hash *table,
                                                             uint64_t hash,
                                                             prudence_hash_match match,
                                                             const void *key,
                                                             struct prudence_hash_node *node)
{
    CHECK_FRESH(table, node);
    return add_or_find(table, hash, match, key, node, false);
}

struct prudence_hash_node *prudence_lockfree_hash_add_replace(struct prudence_lockfree_hash *table,
                                                              uint64_t hash,
                                                              prudence_hash_match match,
                                                              const void *key,
                                                              struct prudence_hash_node *node)
{
    struct prudence_hash_node *old;

    CHECK_FRESH(table, node);
    old = add_or_find(table, hash, match, key, node, true);
    if (old)
        unlink_removed(table, old);
    return old;
}

int prudence_lockfree_hash_replace(struct prudence_lockfree_hash *table,
                                   struct prudence_hash_node *old, struct prudence_hash_node *fresh)
{
    CHECK_FRESH(table, fresh);
    if (!replace(old, fresh))
        return ENOENT;
    unlink_removed(table, old);
    return 0;
}

int prudence_lockfree_hash_remove(struct prudence_lockfree_hash *table,
                                  struct prudence_hash_node *node)
{
    uintptr_t next = load_acquire(&node->next);

    do {
        if (next & REMOVED)
            return ENOENT;
    } while (!swap_link(&node->next, &next, next | REMOVED));
    unlink_removed(table, node);
    return 0;
}

/* ----------------------------------------------------------------------------------------- walks */

struct prudence_hash_node *prudence_lockfree_hash_next(struct prudence_lockfree_walk *walk)
{
    for (;;) {
        while (walk->link & ~REMOVED) {
            struct prudence_hash_node *node = prudence_lockfree_node_(walk->link);

            walk->link = load_acquire(&node->next);
            if (!(walk->link & REMOVED))
                return node;
        }
        if (walk->bucket == view_size(walk->table->view))
            return NULL;
        walk->link = load_acquire(&view_words(walk->table->view)[walk->bucket++]);
    }
}

struct prudence_hash_node *prudence_lockfree_hash_first(struct prudence_lockfree_walk *walk,
                                                        const struct prudence_lockfree_hash *table)
{
    *walk = (struct prudence_lockfree_walk){.table = table};
    return prudence_lockfree_hash_next(walk);
}

static void collect(uintptr_t link, struct prudence_lockfree_hash_stats *stats)
{
    uint64_t objects = 0, removed = 0;

    while (link) {
        uintptr_t next = load_acquire(&prudence_lockfree_node_(link)->next);

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
        collect(load_acquire(&view_words(table->view)[i]), &all);
    give_sized(stats, size, &all, sizeof all);
    return 0;
}
