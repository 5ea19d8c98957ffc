/* SPDX-License-Identifier: MIT */
/*
 * A hash table of the caller's objects that readers search while writers change and resize it. Readers write nothing
 * shared, take no lock, and do not wait, whatever writers do. It grows and shrinks by itself, some buckets at each
 * update; no thread is needed, and no call waits for a grace period except prudence_hash_destroy. How it works and
 * why: docs/adr/0067. (P. McKenney, "Exploiting Deferred Destruction", 2004, section 6.7 and chapter 8, has the
 * problem: a hash table with many readers.)
 *
 *     struct route { struct prudence_hash_node node; uint32_t address; int next_hop; };
 *
 *     static bool is_address(const struct prudence_hash_node *node, const void *key)
 *     {
 *         return prudence_hash_entry(node, const struct route, node)->address == *(const uint32_t *)key;
 *     }
 *     ...
 *     prudence_read_lock();
 *     node = prudence_hash_lookup(table, prudence_hash_mix(address), is_address, &address);
 *     ...
 *     prudence_read_unlock();
 *
 * Conventions of <prudence/prudence.h>, and these:
 *  - Sections: every function from "readers" on is called inside a read-side section of the table's domain, or
 *    online in it. What a function returns stays valid until that section ends. After a removal, leave the section
 *    before you defer the object: then the deferral can keep latent memory below its limit.
 *  - Ownership: objects are the caller's. One that was removed or replaced may be freed, changed or added again after a
 *    grace period only (prudence_free_deferred does that). The table allocates arrays of buckets, nothing else. (To store
 *    pointers without objects of your own, and without a hash function: <prudence/hash_values.h>.)
 *  - Hashes: up to 64 bits. The table multiplies them and takes the highest bits, so small numbers and addresses may be
 *    their own hashes; otherwise use prudence_hash_mix. Objects with equal keys have equal hashes. Against keys that an
 *    attacker chooses use a keyed hash.
 *  - match(node, key) says whether a node whose hash is that of the key has this key. It must not change the table. An
 *    update may call it while its bucket is locked: it must not block.
 *  - Signals: the functions of readers are async-signal-safe if `match` is; no other is.
 *  - Fork: a child may read and update. fork() waits until no thread is inside an update, looks at all buckets in the
 *    parent and in the child, and holds updates up meanwhile. A child of _Fork or clone may only read.
 *  - Order: a node that a reader finds is seen as it was when it was added. A lookup takes effect at one moment between
 *    its call and its return: once an update has returned, every lookup that begins afterwards sees it. The exception are
 *    duplicates (prudence_hash_add) of keys whose hash other keys have as well: a lookup that stands at an object of such another
 *    key misses duplicates that are added meanwhile in front of it, also if those behind it are removed.
 */
#ifndef PRUDENCE_HASH_H
#define PRUDENCE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <prudence/language.h>
#include <prudence/prudence.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Stands in the caller's object, at an address that 8 divides; needs no preparation. The table's while it is in it,
 * and for readers a grace period longer. */
struct prudence_hash_node {
    uintptr_t next; /* private: see "links" below */
    uint64_t hash;
};

#define prudence_hash_entry(place, type, member) PRUDENCE_CONTAINER_OF(place, type, member)

typedef bool (*prudence_hash_match)(const struct prudence_hash_node *node, const void *key);

/* ------------------------------------------------------- what inlined readers need (private) */

/* The first word of a table: the address of its array of buckets, and in the lowest 6 bits the logarithm of how
 * many these are, the order. One word, so that a reader always has an array and its size. */
struct prudence_hash {
    uintptr_t view;
};

#define PRUDENCE_HASH_ORDER_MASK UINT64_C(63)

/*
 * Links: a node's address + 1, or the end of a chain: 8 × (order + 1), where the chain ends there for 1 << order buckets
 * or more. 0, in a bucket: its nodes are still in the array before. Bits 1
 * and 2 are used in buckets only: a writer has the bucket; the bucket's nodes are in the next array.
 */
#define PRUDENCE_HASH_NODE        UINT64_C(1)
#define PRUDENCE_HASH_BUCKET_BITS UINT64_C(6)
#define PRUDENCE_HASH_END(order)  (UINT64_C(8) * ((order) + 1))

PRUDENCE_API struct prudence_hash_node *prudence_hash_lookup_slow(const struct prudence_hash *table,
                                                                  uint64_t hash,
                                                                  prudence_hash_match match,
                                                                  const void *key);

/* What nodes hold: its highest bits are the number of the bucket. Odd, so different hashes stay different. */
static inline uint64_t prudence_hash_spread_(uint64_t hash)
{
    return hash * UINT64_C(0x9e3779b97f4a7c15);
}

static inline struct prudence_hash_node *prudence_hash_node_(uintptr_t link)
{
    struct prudence_hash_node *node =
        PRUDENCE_CAST(struct prudence_hash_node *, link - PRUDENCE_HASH_NODE);

    PRUDENCE_TELL_FOUND(node);
    return node;
}

/* The first node from *link on that has the (spread) hash and the key; NULL: none, and *link is the end of the chain. */
static inline struct prudence_hash_node *
prudence_hash_search_(uintptr_t *link, uint64_t hash, prudence_hash_match match, const void *key)
{
    while (*link & PRUDENCE_HASH_NODE) {
        struct prudence_hash_node *node = prudence_hash_node_(*link);

        if (node->hash == hash && match(node, key))
            return node;
        *link = __atomic_load_n(&node->next, __ATOMIC_CONSUME);
    }
    return PRUDENCE_NULL;
}

/* ------------------------------------------------------------------------ making and destroying */

/* How a table is made. */
struct prudence_hash_attr {
    size_t size;           /* sizeof(struct prudence_hash_attr), so that it can grow */
    uint64_t buckets;      /* at first, and never fewer; rounded up to a power of two; 0: 64 */
    uint64_t buckets_most; /* never more; rounded up; 0: no bound but memory */
    unsigned flags;        /* of enum prudence_hash_flags */
    unsigned reserved;     /* 0 */
    struct prudence_domain *domain; /* whose readers search the table; NULL: the default domain */
};

/* For prudence_hash_attr.flags. */
enum prudence_hash_flags {
    PRUDENCE_HASH_FIXED = 1 << 0, /* resized by prudence_hash_resize only */
    PRUDENCE_HASH_BYTES = 1 << 1, /* of <prudence/hash_values.h> only: keys are byte strings */
};

/*
 * Makes an empty table; attr may be NULL. `name` stands in the statistics of its caches of arrays. NULL with errno
 * EINVAL (a message on standard error names the cause) or ENOMEM.
 */
PRUDENCE_API struct prudence_hash *prudence_hash_create(const char *name,
                                                        const struct prudence_hash_attr *attr);

/*
 * Destroys an empty table that nobody uses any more. Waits for the grace period of arrays that were replaced. Returns
 * 0, or an error number with the table as usable as before: EBUSY while objects are in it, or
 * in a handler of pthread_atfork; EDEADLK, with a report, where prudence_domain_synchronize of its domain gives it (inside
 * a section); EINVAL for NULL.
 */
PRUDENCE_API int prudence_hash_destroy(struct prudence_hash *table);

/* A hash of a 64-bit key, each bit of which depends on most of the key's. Not secret. */
static inline uint64_t prudence_hash_mix(uint64_t key)
{
    key ^= key >> 32;
    key *= UINT64_C(0xd6e8feb86659fd93);
    return key ^ key >> 29;
}

/* ------------------------------------------------------------------------------------- readers */

/* The beginning of the hash's chain in the table's array, which is *view then. */
static inline uintptr_t prudence_hash_begin_(const struct prudence_hash *table, uint64_t spread,
                                             uintptr_t *view)
{
    const uintptr_t *buckets;

    *view = __atomic_load_n(&table->view, __ATOMIC_CONSUME);
    buckets = PRUDENCE_CAST(const uintptr_t *, *view & ~PRUDENCE_HASH_ORDER_MASK);
    /* By 64 less the order, which is not 0. */
    return __atomic_load_n(&buckets[spread >> (-*view & PRUDENCE_HASH_ORDER_MASK)],
                           __ATOMIC_CONSUME) &
           ~PRUDENCE_HASH_BUCKET_BITS;
}

/* Whether it is the end of a chain of this array, or of an array with fewer buckets: there is nothing behind it. */
static inline bool prudence_hash_is_end_(uintptr_t link, uintptr_t view)
{
    return link - PRUDENCE_HASH_END(0) <= 8 * (view & PRUDENCE_HASH_ORDER_MASK);
}

/*
 * The object with this key; of several, the one that was added last. NULL: there is none. Lock-free, and wait-free except
 * for objects with the same bucket that are added during the search. Cost: a load of the table, the bucket and each node on
 * the way, one on average; with `match` inlined no call. While the table is being resized, up to twice that.
 */
static inline struct prudence_hash_node *prudence_hash_lookup(const struct prudence_hash *table,
                                                              uint64_t hash,
                                                              prudence_hash_match match,
                                                              const void *key)
{
    const uint64_t spread = prudence_hash_spread_(hash);
    uintptr_t view, link = prudence_hash_begin_(table, spread, &view);
    struct prudence_hash_node *node = prudence_hash_search_(&link, spread, match, key);

    if (node || __builtin_expect(prudence_hash_is_end_(link, view), 1))
        return node;
    return prudence_hash_lookup_slow(table, hash, match, key);
}

/* The next object with the key of `node`, which was found in the same section; from the one that was added last to the
 * first. NULL: no more. Objects that are added meanwhile are not found. */
static inline struct prudence_hash_node *
prudence_hash_next_duplicate(const struct prudence_hash_node *node, prudence_hash_match match,
                             const void *key)
{
    uint64_t hash = node->hash; /* nodes of one hash stand side by side */
    uintptr_t link = __atomic_load_n(&node->next, __ATOMIC_CONSUME);

    while (link & PRUDENCE_HASH_NODE) {
        struct prudence_hash_node *next = prudence_hash_node_(link);

        if (next->hash != hash)
            break;
        if (match(next, key))
            return next;
        link = __atomic_load_n(&next->next, __ATOMIC_CONSUME);
    }
    return PRUDENCE_NULL;
}

/*
 * All objects, in no order, all in one section:
 *
 *     prudence_hash_for_each(&walk, table, node) { ... }      break ends it early; the body may remove `node`
 *
 * An object that is in the table during the whole walk is found exactly once, also while the table is resized; one
 * that is added or removed meanwhile, at most once.
 */
struct prudence_hash_walk { /* private */
    const struct prudence_hash *table;
    uint64_t from;                         /* all (spread) hashes below have been passed */
    const struct prudence_hash_node *node; /* the last that was found in this chain; NULL: none */
    uintptr_t link;                        /* what comes next in the chain; 0: nothing */
    unsigned order;                        /* of the array whose chain this is */
    bool over;
};

PRUDENCE_API struct prudence_hash_node *prudence_hash_first(struct prudence_hash_walk *walk,
                                                            const struct prudence_hash *table);
PRUDENCE_API struct prudence_hash_node *prudence_hash_next(struct prudence_hash_walk *walk);

#define prudence_hash_for_each(walk, table, place)                                                 \
    for ((place) = prudence_hash_first(walk, table); (place); (place) = prudence_hash_next(walk))

/* ------------------------------------------------------------------------------------- writers */

/*
 * Each locks one bucket, for as long as it takes to search it; a thread that finds it locked spins, then sleeps
 * briefly. None needs memory: where there is none for more buckets, the chains become longer, and the statistics
 * say so. Cost: an atomic operation each for the lock and for the count, and at times a step of a resize, which moves
 * some buckets.
 *
 * add:         in any case, before others with this key.
 * add_unique:  only if there is no object with this key. Returns the one that is there; NULL: added.
 * add_replace: takes the place of an object with this key (the one that was added last), if there is one. Returns the one
 *              that was replaced, which is now the caller's; NULL: there was none.
 * replace:     `fresh`, which has the same key, takes the place of `old` in one step: a lookup finds one of the two.
 *              ENOENT: `old` is not in the table (any more), and nothing is done.
 * remove:      ENOENT: it is not in the table (any more). So of several threads that remove one object, one gets 0, and
 *              defers it.
 *
 * A node is added only if it is in no table, and its object has a node for each table that it is in at a time. A node at a wrong
 * address, and with check=1 one that is in this table, stops the process, with the caller's place.
 */
PRUDENCE_API void prudence_hash_add(struct prudence_hash *table, uint64_t hash,
                                    struct prudence_hash_node *node);
PRUDENCE_API struct prudence_hash_node *
prudence_hash_add_unique(struct prudence_hash *table, uint64_t hash, prudence_hash_match match,
                         const void *key, struct prudence_hash_node *node);
PRUDENCE_API struct prudence_hash_node *
prudence_hash_add_replace(struct prudence_hash *table, uint64_t hash, prudence_hash_match match,
                          const void *key, struct prudence_hash_node *node);
PRUDENCE_API int prudence_hash_replace(struct prudence_hash *table, struct prudence_hash_node *old,
                                       struct prudence_hash_node *fresh);
PRUDENCE_API int prudence_hash_remove(struct prudence_hash *table, struct prudence_hash_node *node);

/*
 * Resizes the table to `buckets`, rounded up to a power of two and within the bounds it was made with, and finishes: a
 * resize that is under way first, and then this one. Returns 0, or an error number with the table as it was: ENOMEM, or
 * EAGAIN, while latent_limit has no room for the array that the resize before replaced: until readers have left. Without the flag PRUDENCE_HASH_FIXED, the table goes on following the
 * number of its objects. Cost: that of all buckets; allocates.
 */
PRUDENCE_API int prudence_hash_resize(struct prudence_hash *table, uint64_t buckets);

/* ---------------------------------------------------------------------------------- statistics */

/* How many objects there are. Exact when no thread updates the table, otherwise off by updates under way. In no section
 * necessarily; cost: a load for each of up to 16 counters. */
PRUDENCE_API uint64_t prudence_hash_count(const struct prudence_hash *table);

struct prudence_hash_stats {
    uint64_t objects;
    uint64_t buckets;
    uint64_t grows, shrinks; /* of the array of buckets, completed */
    uint64_t refused;        /* of these, not begun because there was no memory */
    uint64_t moving;         /* buckets of the array before that are still to be moved */
    uint64_t
        bytes_live; /* of the table and its arrays; also of one that is kept until latent_limit has room */
    uint64_t bytes_latent; /* of arrays that were replaced and wait for readers */
};

/* Fills `stats`, of which the caller was compiled with `size` bytes. Returns 0, or EINVAL for NULL. */
PRUDENCE_API int prudence_hash_stats_sized(struct prudence_hash *table,
                                           struct prudence_hash_stats *stats, size_t size);

#define prudence_hash_stats(table, stats) prudence_hash_stats_sized(table, stats, sizeof *(stats))

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_HASH_H */
