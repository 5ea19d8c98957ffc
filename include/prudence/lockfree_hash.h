/* SPDX-License-Identifier: MIT */
/*
 * A hash table of the caller's objects that readers and writers use without a lock. No thread ever
 * waits for another. The table is for writers that must not wait: signal handlers, threads of
 * real-time priority, threads that may be stopped or killed in the middle, children of a fork. The
 * table does not grow; a program whose writers may wait uses <prudence/hash.h>, which does.
 * docs/adr/0072 has the design and the proof. (P. McKenney, "Exploiting Deferred Destruction",
 * 2004, section 6.7, has the table of the K42 system, which takes a lock to remove from a chain of
 * more than one; this one does not.)
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
 * Conventions are those of <prudence/hash.h> about nodes, hashes and `match`, and these:
 *  - Sections: everything but creating and destroying is done inside a section of one domain, which
 *    the caller chooses. The objects that a function returns stay valid until that section ends.
 *  - Ownership: objects belong to the caller. A removed or replaced object may be freed, changed or
 *    added again only after a grace period of that domain. The proof needs that for writers as well
 *    as for readers, so writers are in sections, too.
 *  - Progress: updates are lock-free. An update must retry only when another update has changed the
 *    same bucket, and so succeeded. Lookups and walks are wait-free. They pass only the nodes that
 *    were in the bucket when they came, and replacements on the way. A thread that stops in the
 *    middle of an update stops no thread.
 *  - Signals: all functions but creating and destroying are async-signal-safe if `match` is, also
 *    in a handler that interrupts an update of the same bucket. Deferring is not
 *    (<prudence/prudence.h>). A handler hands removed objects to a thread, which defers them.
 *  - Fork: a child may read and update, whatever other threads were doing. If such a thread had
 *    just removed an object, and not deferred it yet, no thread in the child defers it.
 *  - Order: a reader that finds a node sees the node in the state in which it was added. Every
 *    function takes effect at one moment between call and return.
 */
#ifndef PRUDENCE_LOCKFREE_HASH_H
#define PRUDENCE_LOCKFREE_HASH_H

#include <prudence/hash.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The data that inlined readers need (private): the address of the buckets, with the logarithm of
 * their number in the lowest 6 bits.
 */
struct prudence_lockfree_hash {
    uintptr_t view;
};

/*
 * Links. A link is the address of a node, or 0 at the end. In a removed node the link also has this
 * bit, and does not change any more.
 */
#define PRUDENCE_LOCKFREE_HASH_REMOVED UINT64_C(1)

static inline struct prudence_hash_node *prudence_lockfree_hash_node_(uintptr_t link)
{
    struct prudence_hash_node *node =
        PRUDENCE_CAST(struct prudence_hash_node *, link & ~PRUDENCE_LOCKFREE_HASH_REMOVED);

    PRUDENCE_TELL_FOUND(node);
    return node;
}

static inline uintptr_t *prudence_lockfree_hash_bucket_(const struct prudence_lockfree_hash *table,
                                                        uint64_t spread)
{
    return PRUDENCE_CAST(uintptr_t *, table->view & ~PRUDENCE_HASH_ORDER_MASK) +
           (spread >> (-table->view & PRUDENCE_HASH_ORDER_MASK));
}

/*
 * Returns the first node from `link` on that has the (spread) hash and the key, and is not removed.
 */
static inline struct prudence_hash_node *prudence_lockfree_hash_search_(uintptr_t link,
                                                                        uint64_t hash,
                                                                        prudence_hash_match match,
                                                                        const void *key)
{
    while (link & ~PRUDENCE_LOCKFREE_HASH_REMOVED) {
        struct prudence_hash_node *node = prudence_lockfree_hash_node_(link);

        link = __atomic_load_n(&node->next, __ATOMIC_CONSUME);
        if (node->hash == hash && !(link & PRUDENCE_LOCKFREE_HASH_REMOVED) && match(node, key))
            return node;
    }
    return PRUDENCE_NULL;
}

/* ------------------------------------------------------------------------ making and destroying */

/* Attributes of a table, used as those of <prudence/hash.h>. */
struct prudence_lockfree_hash_attr {
    size_t size;      /* sizeof(struct prudence_lockfree_hash_attr) */
    uint64_t buckets; /* the expected number of objects; rounded up to a power of two; 0: 64 */
};

/*
 * Makes an empty table; attr may be NULL, which means defaults. `name` appears in messages. (There
 * is no domain: the table defers nothing, and the caller chooses the sections.) Returns NULL with
 * errno EINVAL (a message on standard error names the cause), or ENOMEM.
 */
PRUDENCE_API struct prudence_lockfree_hash *
prudence_lockfree_hash_create(const char *name, const struct prudence_lockfree_hash_attr *attr);

/*
 * Destroys a table that no thread uses any more, not even a reader in an old section. Calls
 * dispose(object, argument) for each object, in no order; the object may be freed at once there. If
 * `dispose` is NULL the table must be empty. Never waits. Returns 0, or an error number with the
 * table as usable as before: EBUSY while the table has objects and there is no `dispose`; EINVAL
 * for NULL. `dispose` must not use the table.
 * Destroy the table before the caches of its objects, and those before the domain.
 */
PRUDENCE_API int prudence_lockfree_hash_destroy(struct prudence_lockfree_hash *table,
                                                void (*dispose)(struct prudence_hash_node *object,
                                                                void *argument),
                                                void *argument);

/* ------------------------------------------------------------------------------------- readers */

/*
 * Returns the object with this key, the last added of several, or NULL if there is none. Cost: a
 * load for the table, the bucket and each node on the way.
 */
PRUDENCE_INLINE struct prudence_hash_node *
prudence_lockfree_hash_lookup(const struct prudence_lockfree_hash *table, uint64_t hash,
                              prudence_hash_match match, const void *key)
{
    const uint64_t spread = prudence_hash_spread_(hash);

    return prudence_lockfree_hash_search_(
        __atomic_load_n(prudence_lockfree_hash_bucket_(table, spread), __ATOMIC_CONSUME), spread,
        match, key);
}

/*
 * Returns the next object with the key of `node`, which was found in the same section, from the
 * last added to the first, or NULL if there are no more.
 */
PRUDENCE_INLINE struct prudence_hash_node *
prudence_lockfree_hash_next_duplicate(const struct prudence_hash_node *node,
                                      prudence_hash_match match, const void *key)
{
    return prudence_lockfree_hash_search_(__atomic_load_n(&node->next, __ATOMIC_CONSUME),
                                          node->hash, match, key);
}

/*
 * Walks over all objects, in no order, all in one section, as prudence_hash_for_each does. The walk
 * finds an object exactly once if the object is in the table during the whole walk. Of an object
 * and those that replace it during the walk, it finds exactly one. Objects that are added or
 * removed during the walk are found at most once. The body may remove and replace any object.
 */
struct prudence_lockfree_hash_walk { /* private */
    const struct prudence_lockfree_hash *table;
    uint64_t bucket; /* next bucket */
    uintptr_t link;  /* next link of the chain */
};

PRUDENCE_API struct prudence_hash_node *
prudence_lockfree_hash_first(struct prudence_lockfree_hash_walk *walk,
                             const struct prudence_lockfree_hash *table);
PRUDENCE_API struct prudence_hash_node *
prudence_lockfree_hash_next(struct prudence_lockfree_hash_walk *walk);

#define prudence_lockfree_hash_for_each(walk, table, place)                                        \
    for ((place) = prudence_lockfree_hash_first(walk, table); (place);                             \
         (place) = prudence_lockfree_hash_next(walk))

/* ------------------------------------------------------------------------------------- writers */

/*
 * Work like the functions of these names in <prudence/hash.h>. None needs memory, waits, or fails
 * for any other reason than those listed there; nor do they find a node that is in another table,
 * because they may not wait. So remove or replace only a node that this table, and no other since,
 * was to add: the result is ENOENT if add or replace refused the node, or it was removed or
 * replaced. Cost: add and add_duplicate take an atomic operation; replacing and removing take two,
 * and a pass through the bucket up to the object. Sections that begin after the return cannot find
 * the removed or replaced object.
 */
PRUDENCE_API int prudence_lockfree_hash_add(struct prudence_lockfree_hash *table, uint64_t hash,
                                            prudence_hash_match match, const void *key,
                                            struct prudence_hash_node *node,
                                            struct prudence_hash_node **there);
PRUDENCE_API int prudence_lockfree_hash_add_duplicate(struct prudence_lockfree_hash *table,
                                                      uint64_t hash,
                                                      struct prudence_hash_node *node);
PRUDENCE_API int prudence_lockfree_hash_put(struct prudence_lockfree_hash *table, uint64_t hash,
                                            prudence_hash_match match, const void *key,
                                            struct prudence_hash_node *node,
                                            struct prudence_hash_node **old);
PRUDENCE_API int prudence_lockfree_hash_replace(struct prudence_lockfree_hash *table,
                                                struct prudence_hash_node *old,
                                                struct prudence_hash_node *fresh);
PRUDENCE_API int prudence_lockfree_hash_remove(struct prudence_lockfree_hash *table,
                                               struct prudence_hash_node *node);

/* ---------------------------------------------------------------------------------- statistics */

/* Figures of one table. */
struct prudence_lockfree_hash_stats {
    uint64_t objects;
    /*
     * Removed objects that are still linked. Their threads are about to unlink them, or were in
     * this process's parent.
     */
    uint64_t removed;
    uint64_t longest; /* most objects in a bucket, including removed ones */
    uint64_t buckets;
    uint64_t bytes_live; /* bytes of the table; it defers nothing, so none are latent */
};

/*
 * Fills `stats`, of which the caller was compiled with `size` bytes. Exact if no thread updates the
 * table. Returns 0, or EINVAL for NULL. Cost: a walk, because a table that counted objects would
 * write to a word that all writers share.
 */
PRUDENCE_API int prudence_lockfree_hash_stats_sized(const struct prudence_lockfree_hash *table,
                                                    struct prudence_lockfree_hash_stats *stats,
                                                    size_t size);

#define prudence_lockfree_hash_stats(table, stats)                                                 \
    prudence_lockfree_hash_stats_sized(table, stats, sizeof *(stats))

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_LOCKFREE_HASH_H */
