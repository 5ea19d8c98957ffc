/* SPDX-License-Identifier: MIT */
/*
 * A hash table of the caller's objects that readers and writers use without a lock: no thread ever waits for another. For
 * writers that must not wait: signal handlers, threads of real-time priority, threads that may be stopped or killed in the
 * middle, children of a fork. It does not grow; a program whose writers may wait takes <prudence/hash.h>, which does. How it
 * works, and the proof: docs/adr/0072. (P. McKenney, "Exploiting Deferred Destruction", 2004, section 6.7, has the table of
 * the K42 system, which takes a lock to remove from a chain of more than one; this one does not.)
 *
 *     static struct prudence_lockfree_hash *timers;
 *
 *     static void expire(int signal)
 *     {
 *         prudence_read_lock();
 *         node = prudence_lockfree_hash_lookup(timers, prudence_hash_mix(due), is_due, &due);
 *         if (node && !prudence_lockfree_hash_remove(timers, node))
 *             ...                     it is this handler's now: see "Signals"
 *         prudence_read_unlock();
 *     }
 *
 * Conventions of <prudence/hash.h> about nodes, hashes and `match`, and these:
 *  - Sections: all but creating and destroying is done inside a section of one domain, which the caller chooses. What a
 *    function returns stays valid until that section ends.
 *  - Ownership: objects are the caller's. One that was removed or replaced may be freed, changed or added again after a grace period
 *    of that domain. The proof needs that for writers as well as for readers: so writers are in sections, too.
 *  - Progress: updates are lock-free: one has to try again only when another update has changed the same bucket, and so
 *    succeeded. Lookups and walks are wait-free: they pass what was in the bucket when they came, and what replaced it on the way.
 *    A thread that stops in the middle of an update stops nobody.
 *  - Signals: all functions but creating and destroying are async-signal-safe if `match` is, also in a handler that interrupts an
 *    update of the same bucket. Deferring is not (<prudence/prudence.h>): a handler hands what it has removed to a thread, which defers it.
 *  - Fork: a child may read and update, whatever other threads were doing. What such a thread had just removed, and
 *    had not deferred yet, nobody in the child defers.
 *  - Order: a node that a reader finds is seen as it was when it was added. Every function takes effect at one moment between
 *    its call and its return.
 */
#ifndef PRUDENCE_LOCKFREE_HASH_H
#define PRUDENCE_LOCKFREE_HASH_H

#include <prudence/hash.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What inlined readers need (private): the address of the buckets, and in the lowest 6 bits the logarithm of their number. */
struct prudence_lockfree_hash {
    uintptr_t view;
};

/* Links: the address of a node; 0: the end. In a node also this bit: the node is removed, and its link does not change any more. */
#define PRUDENCE_LOCKFREE_REMOVED UINT64_C(1)

static inline struct prudence_hash_node *prudence_lockfree_node_(uintptr_t link)
{
    struct prudence_hash_node *node =
        PRUDENCE_CAST(struct prudence_hash_node *, link & ~PRUDENCE_LOCKFREE_REMOVED);

    PRUDENCE_TELL_FOUND(node);
    return node;
}

static inline uintptr_t *prudence_lockfree_bucket_(const struct prudence_lockfree_hash *table,
                                                   uint64_t spread)
{
    return PRUDENCE_CAST(uintptr_t *, table->view & ~PRUDENCE_HASH_ORDER_MASK) +
           (spread >> (-table->view & PRUDENCE_HASH_ORDER_MASK));
}

/* The first node from `link` on that has the (spread) hash and the key, and is not removed. */
static inline struct prudence_hash_node *
prudence_lockfree_search_(uintptr_t link, uint64_t hash, prudence_hash_match match, const void *key)
{
    while (link & ~PRUDENCE_LOCKFREE_REMOVED) {
        struct prudence_hash_node *node = prudence_lockfree_node_(link);

        link = __atomic_load_n(&node->next, __ATOMIC_CONSUME);
        if (node->hash == hash && !(link & PRUDENCE_LOCKFREE_REMOVED) && match(node, key))
            return node;
    }
    return PRUDENCE_NULL;
}

/* ------------------------------------------------------------------------ making and destroying */

/* Makes an empty table with so many buckets, from 2 to 2^40, rounded up to a power of two: as many as there will be objects.
 * NULL with errno EINVAL (a message on standard error says why) or ENOMEM. */
PRUDENCE_API struct prudence_lockfree_hash *prudence_lockfree_hash_create(uint64_t buckets);

/* Destroys an empty table that nobody uses any more, no reader in an old section either. Waits for nothing. Returns 0, or an
 * error number with the table as usable as before: EBUSY while objects are in it; EINVAL for NULL. */
PRUDENCE_API int prudence_lockfree_hash_destroy(struct prudence_lockfree_hash *table);

/* ------------------------------------------------------------------------------------- readers */

/* The object with this key; of several, the one that was added last. NULL: there is none. Cost: a load of the table, the bucket
 * and each node on the way. */
static inline struct prudence_hash_node *
prudence_lockfree_hash_lookup(const struct prudence_lockfree_hash *table, uint64_t hash,
                              prudence_hash_match match, const void *key)
{
    const uint64_t spread = prudence_hash_spread_(hash);

    return prudence_lockfree_search_(
        __atomic_load_n(prudence_lockfree_bucket_(table, spread), __ATOMIC_CONSUME), spread, match,
        key);
}

/* The next object with the key of `node`, which was found in the same section; from the one that was added last to the first. */
static inline struct prudence_hash_node *
prudence_lockfree_hash_next_duplicate(const struct prudence_hash_node *node,
                                      prudence_hash_match match, const void *key)
{
    return prudence_lockfree_search_(__atomic_load_n(&node->next, __ATOMIC_CONSUME), node->hash,
                                     match, key);
}

/*
 * All objects, in no order, all in one section, as with prudence_hash_for_each. An object that is in the table during the whole
 * walk is found exactly once; of an object and those that replace it during the walk, exactly one; one that is added or
 * removed meanwhile, at most once. The body may remove and replace any object.
 */
struct prudence_lockfree_walk { /* private */
    const struct prudence_lockfree_hash *table;
    uint64_t bucket; /* that comes next */
    uintptr_t link;  /* what comes next in the chain */
};

PRUDENCE_API struct prudence_hash_node *
prudence_lockfree_hash_first(struct prudence_lockfree_walk *walk,
                             const struct prudence_lockfree_hash *table);
PRUDENCE_API struct prudence_hash_node *
prudence_lockfree_hash_next(struct prudence_lockfree_walk *walk);

#define prudence_lockfree_hash_for_each(walk, table, place)                                        \
    for ((place) = prudence_lockfree_hash_first(walk, table); (place);                             \
         (place) = prudence_lockfree_hash_next(walk))

/* ------------------------------------------------------------------------------------- writers */

/*
 * As their namesakes in <prudence/hash.h>. None needs memory, waits, or fails for any other reason than those said there. Cost: add and
 * add_unique an atomic operation; replace and remove two, and a pass through the bucket up to the object.
 * What is removed or replaced is out of reach for sections that begin after the return.
 */
PRUDENCE_API void prudence_lockfree_hash_add(struct prudence_lockfree_hash *table, uint64_t hash,
                                             struct prudence_hash_node *node);
PRUDENCE_API struct prudence_hash_node *
prudence_lockfree_hash_add_unique(struct prudence_lockfree_hash *table, uint64_t hash,
                                  prudence_hash_match match, const void *key,
                                  struct prudence_hash_node *node);
PRUDENCE_API struct prudence_hash_node *
prudence_lockfree_hash_add_replace(struct prudence_lockfree_hash *table, uint64_t hash,
                                   prudence_hash_match match, const void *key,
                                   struct prudence_hash_node *node);
PRUDENCE_API int prudence_lockfree_hash_replace(struct prudence_lockfree_hash *table,
                                                struct prudence_hash_node *old,
                                                struct prudence_hash_node *fresh);
PRUDENCE_API int prudence_lockfree_hash_remove(struct prudence_lockfree_hash *table,
                                               struct prudence_hash_node *node);

/* ---------------------------------------------------------------------------------- statistics */

/* Of one table. */
struct prudence_lockfree_hash_stats {
    uint64_t objects;
    uint64_t
        removed; /* that are still linked: their threads are about to unlink them, or were in the parent of this process */
    uint64_t longest; /* the most objects in a bucket, with those */
    uint64_t buckets;
    uint64_t bytes_live; /* of the table. It defers nothing, so there are no latent ones. */
};

/* Fills `stats`, of which the caller was compiled with `size` bytes. Exact when no thread updates the table. Returns 0, or EINVAL
 * for NULL. Cost: a walk, because a table that counted its objects would write what all its writers share. */
PRUDENCE_API int prudence_lockfree_hash_stats_sized(const struct prudence_lockfree_hash *table,
                                                    struct prudence_lockfree_hash_stats *stats,
                                                    size_t size);

#define prudence_lockfree_hash_stats(table, stats)                                                 \
    prudence_lockfree_hash_stats_sized(table, stats, sizeof *(stats))

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_LOCKFREE_HASH_H */
