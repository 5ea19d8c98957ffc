/* SPDX-License-Identifier: MIT */
/*
 * A hash table of the caller's objects that readers search while writers change and resize it.
 * Readers write nothing shared, take no lock, and do not wait, whatever writers do. The table grows
 * and shrinks by itself, some buckets at each update. There is no thread for this, and no call
 * waits for a grace period except prudence_hash_destroy. docs/adr/0067 has the design and the
 * reasons. (P. McKenney, "Exploiting Deferred Destruction", 2004, section 6.7 and chapter 8, has
 * the problem: a hash table with many readers.)
 *
 *     struct route { struct prudence_hash_node node; uint32_t address; int next_hop; };
 *
 *     static bool is_address(const struct prudence_hash_node *node, const void *key)
 *     {
 *         const uint32_t *address = key;
 *
 *         return prudence_hash_entry(node, const struct route, node)->address == *address;
 *     }
 *     ...
 *     prudence_read_lock();
 *     node = prudence_hash_lookup(table, prudence_hash_mix(address), is_address, &address);
 *     ...
 *     prudence_read_unlock();
 *
 * Conventions are those of <prudence/prudence.h>, and these:
 *  - Sections: every function from "readers" on is called inside a read-side section of the table's
 *    domain, or online there. The objects that a function returns stay valid until that section
 *    ends. After a removal, leave the section before you defer the object. Then the deferral can
 *    keep latent memory below its limit.
 *  - Ownership: objects belong to the caller. A removed or replaced object may be freed, changed or
 *    added again only after a grace period (prudence_free_deferred does that). The table allocates
 *    arrays of buckets, nothing else. (To store pointers without objects of your own, and without a
 *    hash function, use <prudence/hash_values.h>.)
 *  - Hashes: up to 64 bits. The table multiplies them and takes the highest bits, so small numbers
 *    and addresses may be their own hashes. Otherwise use prudence_hash_mix. Objects with equal
 *    keys have equal hashes. For strings, and for numbers that an attacker may choose, use
 *    prudence_hash_bytes and prudence_hash_number of <prudence/hash_bytes.h>.
 *  - match(node, key) says whether a node that has the key's hash has this key. `match` must not
 *    change the table, nor block, because an update may call `match` with a locked bucket.
 *  - Signals: the functions of readers are async-signal-safe if `match` is; no other is.
 *  - Fork: a child may read and update. fork() waits until no thread is inside an update, reads
 *    all buckets in the parent and in the child, and holds updates up during that time. A child of
 *    _Fork or clone may only read.
 *  - Order: a reader that finds a node sees the node in the state in which it was added. A lookup
 *    takes effect at one moment between call and return, so every lookup that begins after an
 *    update has returned sees that update. The exception is duplicates, by
 *    prudence_hash_add_duplicate, of keys whose hash other keys have as well. A lookup that stands
 *    at an object of such another key misses duplicates that are added in front of that object in
 *    that time, also if those after it are removed.
 */
#ifndef PRUDENCE_HASH_H
#define PRUDENCE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <prudence/hash_bytes.h>
#include <prudence/language.h>
#include <prudence/prudence.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Member of the caller's object, at an address that 8 divides; needs no preparation. The node
 * belongs to the table while it is in the table, and for readers a grace period longer.
 */
struct prudence_hash_node {
    uintptr_t next; /* private: see "Links" below */
    uint64_t hash;
};

#define prudence_hash_entry(place, type, member) PRUDENCE_CONTAINER_OF(place, type, member)

typedef bool (*prudence_hash_match)(const struct prudence_hash_node *node, const void *key);

/* ------------------------------------------------------- what inlined readers need (private) */

/*
 * The first word of a table: the address of the array of buckets, with the order in the lowest 6
 * bits. The order is the logarithm of the number of buckets. One word, so that a reader always has
 * an array and the size.
 */
struct prudence_hash {
    uintptr_t view;
};

#define PRUDENCE_HASH_ORDER_MASK UINT64_C(63)

/*
 * Links. A link is a node's address + 1, or 8 × (order + 1) at the end of a chain, if the chain
 * ends there for 1 << order buckets or more. A bucket with 0 has its nodes still in the previous
 * array. Only buckets use bits 1 and 2: a writer has the bucket; the bucket's nodes are in the next
 * array.
 */
#define PRUDENCE_HASH_NODE        UINT64_C(1)
#define PRUDENCE_HASH_BUCKET_BITS UINT64_C(6)
#define PRUDENCE_HASH_END(order)  (UINT64_C(8) * ((order) + 1))

PRUDENCE_API struct prudence_hash_node *prudence_hash_lookup_slow(const struct prudence_hash *table,
                                                                  uint64_t hash,
                                                                  prudence_hash_match match,
                                                                  const void *key);

/*
 * Returns the hash that nodes hold; its highest bits are the bucket's number. The factor is odd, so
 * different hashes stay different.
 */
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

/*
 * Returns the first node from *link on that has the (spread) hash and the key. Returns NULL if
 * there is none; *link is then the end of the chain.
 */
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

/*
 * Attributes of a table. Set `size`, and what shall not be 0; 0 is the default of every member:
 *
 *     struct prudence_hash_attr attr = {.size = sizeof attr, .buckets = 1000};
 *
 * A later library may know more members. They are 0 for a program that was compiled without them.
 * An earlier library refuses the attributes (EINVAL) if a member that it does not know is not 0.
 */
struct prudence_hash_attr {
    size_t size;           /* sizeof(struct prudence_hash_attr) */
    uint64_t buckets;      /* initial and smallest number; rounded up to a power of two; 0: 64 */
    uint64_t buckets_most; /* largest number; rounded up; 0: no bound but memory */
    unsigned flags;        /* of enum prudence_hash_flags */
    unsigned reserved;     /* 0 */
    struct prudence_domain *domain; /* whose readers search the table; NULL: the default domain */
};

/* Flags of prudence_hash_attr.flags. */
enum prudence_hash_flags {
    PRUDENCE_HASH_FIXED = 1 << 0, /* only prudence_hash_resize resizes the table */
};

/*
 * Makes an empty table; attr may be NULL, which means defaults. `name` appears in the statistics of
 * the caches of arrays, made when they are needed. Returns NULL with errno EINVAL (a message on
 * standard error names the cause), or ENOMEM.
 */
PRUDENCE_API struct prudence_hash *prudence_hash_create(const char *name,
                                                        const struct prudence_hash_attr *attr);

/*
 * Destroys a table that no thread uses any more. Calls dispose(object, argument) for each object,
 * in no order; the object may be freed at once there. If `dispose` is NULL the table must be empty.
 * Waits for the grace period of arrays that were replaced. Returns 0, or an error number with the
 * table as usable as before: EBUSY while the table has objects and there is no `dispose`, or in a
 * handler of pthread_atfork; EDEADLK, with a report, where prudence_domain_synchronize of the
 * domain fails (inside a section), and online in any qsbr domain; EINVAL for NULL. `dispose` must
 * not use the table. The order at the end of a program: tables first, then the caches of their
 * objects, then the domain.
 */
PRUDENCE_API int prudence_hash_destroy(struct prudence_hash *table,
                                       void (*dispose)(struct prudence_hash_node *object,
                                                       void *argument),
                                       void *argument);

/*
 * Hashes a 64-bit key; each bit of the hash depends on most bits of the key. Not secret. (Strings:
 * prudence_hash_bytes.)
 */
PRUDENCE_INLINE uint64_t prudence_hash_mix(uint64_t key)
{
    key ^= key >> 32;
    key *= UINT64_C(0xd6e8feb86659fd93);
    return key ^ key >> 29;
}

/* ------------------------------------------------------------------------------------- readers */

/* Returns the beginning of the hash's chain in the table's array, and the array in *view. */
static inline uintptr_t prudence_hash_begin_(const struct prudence_hash *table, uint64_t spread,
                                             uintptr_t *view)
{
    const uintptr_t *buckets;

    *view = __atomic_load_n(&table->view, __ATOMIC_CONSUME);
    buckets = PRUDENCE_CAST(const uintptr_t *, *view & ~PRUDENCE_HASH_ORDER_MASK);
    /* Shifts by 64 - order; the order is not 0. */
    return __atomic_load_n(&buckets[spread >> (-*view & PRUDENCE_HASH_ORDER_MASK)],
                           __ATOMIC_CONSUME) &
           ~PRUDENCE_HASH_BUCKET_BITS;
}

/*
 * Returns whether the link is the end of a chain of this array, or of an array with fewer buckets,
 * so nothing follows.
 */
static inline bool prudence_hash_is_end_(uintptr_t link, uintptr_t view)
{
    return link - PRUDENCE_HASH_END(0) <= 8 * (view & PRUDENCE_HASH_ORDER_MASK);
}

/*
 * Returns the object with this key, the last added of several, or NULL if there is none. Lock-free,
 * and wait-free except for objects in the same bucket that are added during the search. Cost: a
 * load for the table, the bucket and each node on the way, one on average; no call if `match` is
 * inlined. Up to twice that during a resize.
 */
PRUDENCE_INLINE struct prudence_hash_node *prudence_hash_lookup(const struct prudence_hash *table,
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

/*
 * Returns the next object with the key of `node`, which was found in the same section, from the
 * last added to the first, or NULL if there are no more. Objects that are added in between are not
 * found.
 */
PRUDENCE_INLINE struct prudence_hash_node *
prudence_hash_next_duplicate(const struct prudence_hash_node *node, prudence_hash_match match,
                             const void *key)
{
    uint64_t hash = node->hash; /* nodes of one hash are next to each other */
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
 * Walks over all objects, in no order, all in one section:
 *
 *     prudence_hash_for_each(&walk, table, node) { ... }     break ends it early; may remove `node`
 *
 * The walk finds an object exactly once if the object is in the table during the whole walk, even
 * if the table is resized. Objects that are added or removed during the walk are found at most
 * once.
 */
struct prudence_hash_walk { /* private */
    const struct prudence_hash *table;
    uint64_t from;                         /* all (spread) hashes below this are passed */
    const struct prudence_hash_node *node; /* last node found in this chain; NULL: none */
    uintptr_t link;                        /* next link of the chain; 0: none */
    unsigned order;                        /* order of the array whose chain this is */
    bool over;
};

PRUDENCE_API struct prudence_hash_node *prudence_hash_first(struct prudence_hash_walk *walk,
                                                            const struct prudence_hash *table);
PRUDENCE_API struct prudence_hash_node *prudence_hash_next(struct prudence_hash_walk *walk);

#define prudence_hash_for_each(walk, table, place)                                                 \
    for ((place) = prudence_hash_first(walk, table); (place); (place) = prudence_hash_next(walk))

/* ------------------------------------------------------------------------------------- writers */

/*
 * Each of these locks one bucket while searching there. A thread that finds the bucket locked
 * spins, then sleeps briefly. Updates never fail for lack of memory. If the table cannot grow,
 * chains get longer, and the statistics say so. Cost: an atomic operation for the lock and one for
 * the count, and at times a step of a resize, which moves some buckets.
 *
 * They return 0 or an error number with the table as it was; EINVAL for NULL instead of the table
 * or a node. `there` and `old` may be NULL; otherwise the object that had the key is stored there,
 * or NULL if there was none or an argument is wrong.
 *
 *  - add adds the node only if there is no object with this key. Otherwise EEXIST, and that object
 *    in *there.
 *  - add_duplicate always adds the node, before others with this key.
 *  - put replaces an object with this key (the last added), if there is one, and adds the node
 *    otherwise. The replaced object, in *old, belongs to the caller. EINVAL, with a report: `node`
 *    is the object that has the key.
 *  - replace puts `fresh`, which has the same key, in the place of `old` in one step; a lookup
 *    finds one of the two. ENOENT: `old` is not in the table (any more); EINVAL, with a report:
 *    `fresh` is `old`.
 *  - remove takes the node out. ENOENT: the node is not in the table (any more). So if several
 *    threads remove one object, one gets 0, and defers it.
 *
 * Add a node only while it is in no table, and give the object a node for each table that the
 * object is in at a time. A node at a wrong address stops the process and names the caller's place.
 * With check=1, so does a node that is in this table, or in another one of this kind.
 */
PRUDENCE_API int prudence_hash_add(struct prudence_hash *table, uint64_t hash,
                                   prudence_hash_match match, const void *key,
                                   struct prudence_hash_node *node,
                                   struct prudence_hash_node **there);
PRUDENCE_API int prudence_hash_add_duplicate(struct prudence_hash *table, uint64_t hash,
                                             struct prudence_hash_node *node);
PRUDENCE_API int prudence_hash_put(struct prudence_hash *table, uint64_t hash,
                                   prudence_hash_match match, const void *key,
                                   struct prudence_hash_node *node,
                                   struct prudence_hash_node **old);
PRUDENCE_API int prudence_hash_replace(struct prudence_hash *table, struct prudence_hash_node *old,
                                       struct prudence_hash_node *fresh);
PRUDENCE_API int prudence_hash_remove(struct prudence_hash *table, struct prudence_hash_node *node);

/*
 * Resizes the table to `buckets`, rounded up to a power of two and within the bounds given at
 * creation. Finishes a resize that is under way first, and then this one. Returns 0, or an error
 * number with the table as it was: EINVAL for NULL; ENOMEM; or EAGAIN while latent_limit has no
 * room for the array that the previous resize replaced, until readers have ended. Without the flag
 * PRUDENCE_HASH_FIXED, the table continues to follow the number of objects. Cost: moves all
 * buckets; allocates.
 */
PRUDENCE_API int prudence_hash_resize(struct prudence_hash *table, uint64_t buckets);

/* ---------------------------------------------------------------------------------- statistics */

/*
 * Returns the number of objects. Exact if no thread updates the table, otherwise off by the updates
 * under way. Need not be in a section. Cost: a load for each of up to 16 counters.
 */
PRUDENCE_API uint64_t prudence_hash_count(const struct prudence_hash *table);

struct prudence_hash_stats {
    uint64_t objects;
    uint64_t buckets;
    uint64_t grows, shrinks; /* completed resizes of the array of buckets */
    uint64_t refused;        /* resizes not begun because there was no memory */
    uint64_t moving;         /* buckets of the previous array that still have to move */
    /* Bytes of the table and its arrays, also of an array kept until latent_limit has room. */
    uint64_t bytes_live;
    uint64_t bytes_latent; /* bytes of replaced arrays that wait for readers */
};

/*
 * Fills `stats`, of which the caller was compiled with `size` bytes. Returns 0, or EINVAL for NULL.
 */
PRUDENCE_API int prudence_hash_stats_sized(struct prudence_hash *table,
                                           struct prudence_hash_stats *stats, size_t size);

#define prudence_hash_stats(table, stats) prudence_hash_stats_sized(table, stats, sizeof *(stats))

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_HASH_H */
