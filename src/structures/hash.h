/* SPDX-License-Identifier: MIT */
/*
 * The hash table (<prudence/hash.h>, ADR 67).
 *
 * Chains. Each bucket has a chain of nodes, sorted by their hashes; the highest bits of a hash are the number of its
 * bucket. So all chains, one behind the other, are all nodes in the order of their hashes, whatever the number of buckets: what
 * is one chain for n buckets is two runs side by side for 2n. A chain is split by one store (an end behind the first run),
 * and two chains are joined by one. No node is moved or copied.
 *
 * Ends. The end of a chain says for which number of buckets, or more, it ends there (PRUDENCE_HASH_END). A reader that
 * came by an array with fewer buckets, and meets that end, may miss what was cut off there. It begins again, with the
 * array that the table has by now, which was published before the cut. When two chains are joined, the end of the
 * second is the end of both.
 *
 * Arrays. While the table is resized it has two: `view`, the new one, and `from`. A bucket of the new one is 0 until its
 * group was moved. A group is what belongs together for the smaller number of buckets: one bucket of the smaller array,
 * several of the larger. Readers that find 0 search the old array; writers move the group first. So all writers
 * of a chain meet at one bucket at any time: the old one until it is HASH_MOVED, then the new one.
 *
 * Invariants:
 *  - view, or a bucket of it, is 0 only while `from` is not; every bucket of `from` is not 0.
 *  - A chain that begins at a bucket of an array of order o, and that is not moved, ends with an end of order <= o: the
 *    smallest order for which this chain and the next one are two. (The chains that the table
 *    was made with have ends of order 0, because there never are fewer.)
 *  - A bucket with HASH_MOVED does not change any more. Its link is where the chain began when it was moved. Only
 *    readers that entered their sections before that follow it, so what it leads to is still there for them.
 *  - `next` of a removed node does not change any more, with the same argument.
 *
 * Locks: HASH_LOCKED in a bucket; its holder alone changes the links of the chain. A thread that moves a group
 * holds all of its buckets; they are taken in the order of the chain. Behind `stepping` one thread at
 * a time takes a step of a resize; updates only try it. A thread that has a bucket, or `stepping`, allocates nothing, and waits for
 * nobody but the holder of another bucket of the same group. It counts as inside the library (os_busy), and fork waits for it.
 */
#ifndef STRUCTURES_HASH_H
#define STRUCTURES_HASH_H

#include <prudence/hash.h>

#include "base/atomic.h"
#include "base/list.h"
#include "debug/settings.h"
#include "os/os.h"
#include "structures/object_count.h"
#include "structures/views.h"

#define HASH_LOCKED ((uintptr_t)2)
#define HASH_MOVED  ((uintptr_t)4)

enum hash_phase {
    HASH_IDLE,
    HASH_CLEARING, /* the new array is zeroed */
    HASH_MOVING,   /* it is the table's view, and groups are moved to it */
    HASH_LEAVING,  /* the array before waits until latent_limit has room for it */
};

struct hash_table {
    struct prudence_hash public;   /* its view: atomic, stored by the thread that has `stepping` */
    uintptr_t from;                /* the array before; 0: no resize is under way; as the view */
    struct views views;            /* constant */
    unsigned order_min, order_max; /* constant */
    unsigned flags;                /* constant */
    bool leaves_outside;           /* constant: arrays are deferred by hash_leave_array alone */
    unsigned counter_mask;         /* constant */
    struct list link;              /* under tables_lock */

    uint32_t stepping __attribute__((aligned(CACHE_LINES_APART)));
    uint32_t preparing; /* a thread allocates an array for the next resize: others need not */
    uint32_t phase;     /* this and the rest: written under stepping, read by all */
    uintptr_t fresh;    /* the array that is being zeroed */
    uint64_t cursor;    /* words zeroed; groups moved */
    struct views_left left;
    uint64_t grows, shrinks;
    uint64_t refused; /* atomic */

    struct object_counter counters[];
};

static inline struct hash_table *hash_of(const struct prudence_hash *public)
{
    return (struct hash_table *)public;
}

/* The bucket of a hash, and the lowest hash of a bucket, in an array of this order, which is not 0. */
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

/* ThreadSanitizer is told of the node, which is about to be linked. A reader in the program acquires it in prudence_hash_node_, a thread in the
 * library by found_node, before it gives the node to the program. */
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

/* Before a node is added, while this thread has no bucket. A node that is in a table already would make a circle of its chain, and one
 * that is misaligned a link that is none: then the process is stopped, with the caller's place. The former under check=1 alone. */
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

/* An end that a chain of an array of this order may have. */
static inline bool is_end_of(uintptr_t link, unsigned order)
{
    return link - PRUDENCE_HASH_END(0) <= 8 * (uintptr_t)order;
}

/*
 * hash_bucket.c: locks the bucket unless it is moved, or not there yet (0). Returns what it held, without the lock. `first`: for a
 * thread that has no other bucket, and not `stepping`; it waits while a fork is under way (writers.h).
 */
uintptr_t hash_lock(uintptr_t *bucket);
uintptr_t hash_lock_first(uintptr_t *bucket);

static inline void hash_unlock(uintptr_t *bucket, uintptr_t link)
{
    store_release(bucket, link);
}

/* hash_move.c: moves a group, which has the number of its bucket in the smaller array, from one array to the other; does
 * nothing when it was moved. `stepping`: the caller has that, and else nothing. */
void hash_move(uintptr_t from, uintptr_t to, uint64_t group, bool stepping);

/* hash_resize.c: the right to take steps. */
bool hash_try_stepping(struct hash_table *table);
void hash_take_stepping(struct hash_table *table);
void hash_end_stepping(struct hash_table *table);

/* By a thread that has neither it nor a bucket: begins a resize, unless one is under way or the table does not have this view any
 * more. False: there is no memory. */
bool hash_begin(struct hash_table *table, uintptr_t view, unsigned order);

/* Behind an update of a table that leaves_outside, in no section: there a deferral may wait, so latent_limit is kept without fail. */
void hash_leave_array(struct hash_table *table);

/* A step of a resize, if one is under way; begins one, if the number of objects says so. */
void hash_step(struct hash_table *table);
void hash_follow_count(struct hash_table *table);

/* hash.c: prudence_hash_create on behalf of `what`, with these flags; and the end of a table for which views_may_end said 0, whose objects are
 * the caller's. */
struct hash_table *hash_make(const char *what, const char *name,
                             const struct prudence_hash_attr *attr, unsigned flags);
void hash_unmake(struct hash_table *table);

/* Removes the object with the key, of several the one that was added last; NULL: there is none. In a section, as the next one. */
struct prudence_hash_node *hash_remove_key(struct hash_table *table, uint64_t hash,
                                           prudence_hash_match match, const void *key);

/* Whether there is one. `match` may change it: its chain is locked, so no other update of its key is under way. */
bool hash_visit_key(struct hash_table *table, uint64_t hash, prudence_hash_match match,
                    const void *key);

/* Counts objects, while their chain is locked: a forked child has both or neither. Returns what this CPU's counter is then. */
int64_t hash_change_count(struct hash_table *table, int64_t objects);

/* With nothing locked: moves the group of a bucket of the view that is 0; does what is due behind an update that changed the number of
 * objects (`count`: the counter then; an addition has passed so many), and behind one that did not. */
void hash_move_first(const struct hash_table *table, uintptr_t view, uint64_t hash);
void hash_counted(struct hash_table *table, int64_t count, unsigned passed);
void hash_replaced(struct hash_table *table);

/* hash_count.c */
uint64_t hash_count(const struct hash_table *table);

/* hash_fork.c: waits until no thread is inside an update, when none may begin one; and, in the child, takes away what threads
 * left behind that were just about to. */
void hash_wait_for_writers(struct hash_table *table);
void hash_forget_writers(struct hash_table *table);

#endif /* STRUCTURES_HASH_H */
