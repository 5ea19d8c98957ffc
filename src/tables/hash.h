/* SPDX-License-Identifier: MIT */
/*
 * The hash table (<prudence/hash.h>, ADR 67).
 *
 * Chains. Each bucket has a chain of nodes, sorted by their hashes; the highest bits of a hash are
 * the number of the bucket. So the chains, one after the other, hold all nodes in the order of
 * their hashes, whatever the number of buckets. One chain for n buckets is two adjacent runs for
 * 2n. One store splits a chain (by putting an end after the first run), and one store joins two
 * chains. No node is moved or copied.
 *
 * Ends. The end of a chain holds an order: the chain ends there in every array of at least that
 * order (PRUDENCE_HASH_END). A reader that came through a smaller array and meets this end may miss
 * nodes that were cut off there. The reader begins again with the table's current array, which was
 * published before the cut. When two chains are joined, the end of the second becomes the end of
 * both.
 *
 * Arrays. While a table is resized it has two arrays: `view`, the new one, and `from`, the old one.
 * A bucket of the new array is 0 until its group is moved. A group is one bucket of the smaller
 * array and the buckets of the larger array for the same hashes. Readers that find 0 search the old
 * array; writers move the group first. So all writers of a chain meet at one bucket at any time: at
 * the old bucket until it is HASH_MOVED, then at the new one.
 *
 * Invariants:
 *  - A bucket of `view` is 0 only while `from` is not 0. No bucket of `from` is 0.
 *  - A chain that begins at a bucket of an array of order o, and that is not moved, ends with an
 *    end of order <= o, the smallest order for which this chain and the next one are two. (The
 *    first chains of a table have ends of order 0, because no array has fewer buckets.)
 *  - A bucket with HASH_MOVED no longer changes, and links to where the chain began when the bucket
 *    was moved. Only readers that entered their sections before that follow this link, so the nodes
 *    there still exist for them.
 *  - `next` of a removed node no longer changes, by the same argument.
 *
 * Locks. The holder of HASH_LOCKED in a bucket is the only thread that changes the links of the
 * chain. A thread that moves a group locks all buckets of the group, in the order of the chain. The
 * holder of `stepping` is the only thread that takes steps of a resize; updates only try to get it.
 * A thread that holds a bucket or `stepping` allocates nothing, and waits only for a bucket of the
 * group that it moves or, in a rename, for the bucket of the second name (hash_rename.c). The
 * thread counts as inside the library (os_busy), and fork waits for it.
 */
#ifndef TABLES_HASH_H
#define TABLES_HASH_H

#include <prudence/hash.h>

#include "base/atomic.h"
#include "base/list.h"
#include "bug_search.h"
#include "os/os.h"
#include "tables/object_count.h"
#include "tables/views.h"

#define HASH_LOCKED ((uintptr_t)2)
#define HASH_MOVED  ((uintptr_t)4)

enum hash_phase {
    HASH_IDLE,
    HASH_CLEARING, /* the new array is being zeroed */
    HASH_MOVING,   /* the new array is the view, and groups are moved there */
    HASH_LEAVING,  /* the old array waits until latent_limit has room */
};

struct hash_table {
    struct prudence_hash public; /* the view: atomic, stored by the holder of `stepping` */
    uintptr_t from;              /* the old array, or 0 if no resize is under way; like the view */
    unsigned order_min, order_max; /* constant */
    unsigned flags;                /* constant */
    bool leaves_outside;           /* constant: only hash_resize_leave_array defers arrays */
    unsigned counter_mask;         /* constant */
    struct views views;

    uint32_t stepping __attribute__((aligned(CACHE_LINES_APART)));
    uint32_t preparing; /* a thread is allocating an array for the next resize */
    uint32_t phase;     /* written, like the rest, under `stepping`; read by all */
    uintptr_t fresh;    /* array being zeroed */
    uint64_t cursor;    /* number of words zeroed, or of groups moved */
    struct views_left left;
    uint64_t grows, shrinks;
    uint64_t refused; /* atomic */
    struct list link; /* protected by tables_lock */

    struct object_counter counters[];
};

static inline struct hash_table *hash_of(const struct prudence_hash *public)
{
    return (struct hash_table *)public;
}

/* Convert a hash to its bucket, and a bucket to its lowest hash. `order` is not 0. */
static inline uint64_t hash_index(uint64_t hash, unsigned order)
{
    return hash >> (64 - order);
}

static inline uint64_t hash_first_of(uint64_t index, unsigned order)
{
    return index << (64 - order);
}

static inline uintptr_t hash_link_of(uintptr_t bucket)
{
    return bucket & ~PRUDENCE_HASH_BUCKET_BITS;
}

static inline bool is_node(uintptr_t link)
{
    return link & PRUDENCE_HASH_NODE;
}

/* Informs ThreadSanitizer about a node that is about to be linked. A reader in the program acquires
 * the node in prudence_hash_node_, the library in found_node. */
static inline uintptr_t link_to(const struct prudence_hash_node *node)
{
    tell_release(node);
    return (uintptr_t)node | PRUDENCE_HASH_NODE;
}

static inline struct prudence_hash_node *found_node(uintptr_t link)
{
    tell_acquire(prudence_hash_node_(link));
    return prudence_hash_node_(link);
}

/*
 * Checks a node before it is added, while this thread holds no bucket. Stops the process, naming
 * the caller, if the node is misaligned, because the link would not be one to a node. Under check=1
 * the same happens if the node is in this table already, because the chain would become a circle,
 * or in another one, whose chain would go on in this one.
 */
void hash_check_fresh_slow(const struct hash_table *table, const struct prudence_hash_node *node,
                           const char *what, const void *caller);

static inline bool is_misaligned(const struct prudence_hash_node *node)
{
    return (uintptr_t)node % PRUDENCE_HASH_END(0) != 0;
}

#define HASH_CHECK_FRESH(table, node)                                                              \
    (unlikely(is_misaligned(node)) || unlikely(check_wanted)                                       \
         ? hash_check_fresh_slow((table), (node), __func__, __builtin_return_address(0))           \
         : (void)0)

/* Returns whether a chain of an array of this order may have this end. */
static inline bool is_end_of(uintptr_t link, unsigned order)
{
    return link - PRUDENCE_HASH_END(0) <= 8 * (uintptr_t)order;
}

static inline uint64_t hash_count(const struct hash_table *table)
{
    return object_count_sum(table->counters, table->counter_mask);
}

/*
 * hash.c: hash_make is prudence_hash_create on behalf of another public function, which has read
 * the attributes. hash_end ends a table for which views_may_end returned 0, and calls `dispose`, if
 * not NULL, for each object; then hash_unmake destroys the table.
 */
struct hash_table *hash_make(const char *what, const char *name,
                             const struct prudence_hash_attr *attr);
void hash_end(struct hash_table *table,
              void (*dispose)(struct prudence_hash_node *object, void *argument), void *argument);
void hash_unmake(struct hash_table *table);

/* Removes the object with the key, the last added of several. Returns NULL if there is none. The
 * caller of this and the next function is in a section. */
struct prudence_hash_node *hash_remove_key(struct hash_table *table, uint64_t hash,
                                           prudence_hash_match match, const void *key);

/* Returns whether an object has the key. `match` may change the object, because its chain is locked
 * and no other update of the key is under way. */
bool hash_visit_key(struct hash_table *table, uint64_t hash, prudence_hash_match match,
                    const void *key);

/* Adds to the number of objects while their chain is locked, so that a forked child has both the
 * change and the count, or neither. Returns this CPU's new counter. */
int64_t hash_change_count(struct hash_table *table, int64_t objects);

/*
 * Called with nothing locked. hash_move_first moves the group of a bucket that is 0 in the view.
 * hash_counted does the work due after an update that changed the number of objects: `count` is
 * this CPU's new counter, `passed` the nodes that an addition passed. hash_replaced does the work
 * due after other updates.
 */
void hash_move_first(const struct hash_table *table, uintptr_t view, uint64_t hash);
void hash_counted(struct hash_table *table, int64_t count, unsigned passed);
void hash_replaced(struct hash_table *table);

#endif /* TABLES_HASH_H */
