/* SPDX-License-Identifier: MIT */
/*
 * Renaming (<prudence/hash_rename.h>, ADR 67). Names that leave and names that enter are in their
 * chains together, with the chains locked, and one store decides for all of them. A rename has
 * these steps:
 *   1. The fresh name is marked pending and linked into the chain, after the name that it replaces.
 *      A reader that has passed the old name, because that one no longer counted, finds the fresh
 *      name.
 *   2. The names that leave store which name's store decides.
 *   3. The store decides.
 *   4. The names that have gone are unlinked.
 *
 * Outside of the locks, no name is pending and no name that goes or has gone is in a chain. So
 * other updates need not know of renames.
 *
 * Locks. A rename first locks the chain that comes first in the order of the tables' addresses,
 * then of hashes. While a thread holds one chain, it waits only for a bucket of the same array, or
 * of a table later in that order. A thread that moves a group of buckets (hash_move.c) holds no
 * other lock on buckets, and takes the buckets of the group in the same order. So no circle of
 * threads can wait for each other. If a resize has moved the second chain, the first is unlocked,
 * and the thread searches for both again.
 */
#include <prudence/hash_rename.h>

#include <errno.h>

#include <prudence/stats.h>

#include "os/os.h"
#include "tables/hash.h"
#include "tables/hash_bucket.h"
#include "tables/own_successor.h"

/*
 * The place where a name leaves or enters: the table, the spread hash and, once locked, the bucket
 * of the chain. If the number of objects in the table has changed, `count` is the result of
 * hash_change_count.
 */
struct side {
    struct hash_table *table;
    uint64_t hash;
    uintptr_t *bucket;
    int64_t count;
};

#define NOT_COUNTED 1 /* hash_counted then only does the work of hash_replaced */

/* ---------------------------------------------------------------------------------------- locks */

static bool is_before(const struct side *a, const struct side *b)
{
    return a->table == b->table ? a->hash < b->hash : a->table < b->table;
}

static void unlock_bucket(uintptr_t *bucket)
{
    hash_bucket_unlock(bucket, load_relaxed(bucket) & ~HASH_LOCKED);
}

/* Locks the chain in the array `view`. If it is not there, returns false with nothing locked; the
 * next attempt may find it. */
static bool lock_side(struct side *side, uintptr_t view, uintptr_t *locked)
{
    uintptr_t link;

    side->bucket = &view_words(view)[hash_index(side->hash, view_order(view))];
    link = locked ? hash_bucket_lock(side->bucket) : hash_bucket_lock_first(side->bucket);
    if (likely(link && !(link & HASH_MOVED)))
        return true;
    if (locked)
        unlock_bucket(locked);
    if (!link)
        hash_move_first(side->table, view, side->hash);
    return false;
}

static bool try_lock_both(struct side *first, struct side *second)
{
    uintptr_t view = load_acquire(&first->table->public.view);
    uintptr_t other = view;

    if (!lock_side(first, view, NULL))
        return false;
    if (second->table == first->table &&
        hash_index(second->hash, view_order(view)) == hash_index(first->hash, view_order(view))) {
        second->bucket = first->bucket;
        return true;
    }
    if (second->table != first->table) /* chains of one table share an array */
        other = load_acquire(&second->table->public.view);
    return lock_side(second, other, first->bucket);
}

static void lock_both(struct side *a, struct side *b)
{
    struct side *first = is_before(b, a) ? b : a, *second = first == a ? b : a;

    os_busy_enter();
    while (!try_lock_both(first, second)) {
    }
}

static void unlock_both(const struct side *a, const struct side *b)
{
    if (b->bucket != a->bucket)
        unlock_bucket(b->bucket);
    unlock_bucket(a->bucket);
    os_busy_leave();
}

/* -------------------------------------------------------------- locked chains: places are links */

static uintptr_t link_at(const uintptr_t *place)
{
    return load_relaxed(place) & ~HASH_LOCKED;
}

static struct prudence_hash_node *node_at(const uintptr_t *place)
{
    return prudence_hash_node_(link_at(place));
}

/* Returns the first place that is followed by no lower hash. */
static uintptr_t *place_of_hash(const struct side *side)
{
    uintptr_t *place = side->bucket;

    while (is_node(link_at(place)) && node_at(place)->hash < side->hash)
        place = &node_at(place)->next;
    return place;
}

/* Return the place of the key or of the name, or NULL. */
static uintptr_t *place_of_key(const struct side *side, prudence_hash_match match, const void *key)
{
    uintptr_t *place = place_of_hash(side);

    for (; is_node(link_at(place)) && node_at(place)->hash == side->hash;
         place = &node_at(place)->next)
        if (match(found_node(link_at(place)), key))
            return place;
    return NULL;
}

static uintptr_t *hash_rename_place(const struct side *side, const struct prudence_hash_name *name)
{
    uintptr_t *place = side->bucket;

    while (link_at(place) != link_to(&name->node)) {
        if (!is_node(link_at(place)))
            return NULL;
        place = &node_at(place)->next;
    }
    return place;
}

/* Sets a link; a bucket stays locked. Release: a reader that finds a name sees its content. */
static void set_link(uintptr_t *place, uintptr_t link)
{
    store_release(place, link | (load_relaxed(place) & HASH_LOCKED));
}

static void link_in(uintptr_t *place, uint64_t hash, struct prudence_hash_name *fresh,
                    uintptr_t change)
{
    fresh->node.hash = hash;
    store_relaxed(&fresh->node.next, link_at(place));
    store_relaxed(&fresh->change, change);
    set_link(place, link_to(&fresh->node));
}

static void unlink_from(const struct side *side, const struct prudence_hash_name *name)
{
    set_link(hash_rename_place(side, name), load_relaxed(&name->node.next));
}

/* Release: a reader that is sent to the deciding name finds it pending or decided, never as it was
 * before. */
static void leave_with(struct prudence_hash_name *name, const struct prudence_hash_name *decides)
{
    store_release(&name->change, (uintptr_t)decides);
}

/* Release: a reader that sees the decision also sees which names leave, and the links of the fresh
 * ones. */
static void decide(struct prudence_hash_name *fresh)
{
    store_release(&fresh->change, (uintptr_t)0);
}

/* -------------------------------------------------------------------------------------- renames */

static int refuse(const struct hash_table *a, const struct hash_table *b, bool twice,
                  const char *what)
{
    if (twice) {
        os_report("%s: a fresh name is one of the old ones, or a name is given twice", what);
        return EINVAL;
    }
    if (a->views.owner.domain != b->views.owner.domain) {
        os_report("%s: the tables '%s' and '%s' have different domains", what, a->views.owner.name,
                  b->views.owner.name);
        return EXDEV;
    }
    return 0;
}

static void check_fresh(const struct hash_table *table, const struct prudence_hash_name *fresh,
                        const char *what, const void *caller)
{
    if (unlikely(is_misaligned(&fresh->node)) || unlikely(check_wanted))
        hash_check_fresh_slow(table, &fresh->node, what, caller);
}

static struct prudence_hash_name *name_of(struct prudence_hash_node *node)
{
    return prudence_hash_entry(node, struct prudence_hash_name, node);
}

/* Renames in locked chains. *there is the name that has the key, unless that is `old`, or NULL.
 * With `replaces`, this name leaves. */
static int rename_locked(const struct side *from, struct prudence_hash_name *old,
                         const struct side *to, prudence_hash_match match, const void *key,
                         struct prudence_hash_name *fresh, bool replaces,
                         struct prudence_hash_name **there)
{
    uintptr_t *place;

    if (!hash_rename_place(from, old))
        return ENOENT;
    place = place_of_key(to, match, key);
    *there = place && node_at(place) != &old->node ? name_of(node_at(place)) : NULL;
    if (*there && !replaces)
        return EEXIST;
    if (unlikely(*there == fresh)) {
        *there = NULL;
        return EINVAL;
    }
    link_in(place ? &node_at(place)->next : place_of_hash(to), to->hash, fresh,
            PRUDENCE_HASH_NAME_PENDING);
    leave_with(old, fresh);
    if (*there)
        leave_with(*there, fresh);
    decide(fresh);
    unlink_from(from, old);
    if (*there)
        unlink_from(to, *there);
    return 0;
}

/* Counts while both chains are locked. */
static void count_renamed(struct side *from, struct side *to, bool replaced)
{
    if (from->table != to->table)
        from->count = hash_change_count(from->table, -1);
    if (from->table != to->table && !replaced)
        to->count = hash_change_count(to->table, 1);
    else if (from->table == to->table && replaced)
        to->count = hash_change_count(to->table, -1);
}

static int do_rename(const char *what, struct prudence_hash *from, struct prudence_hash_name *old,
                     struct prudence_hash *to, uint64_t hash, prudence_hash_match match,
                     const void *key, struct prudence_hash_name *fresh, bool replaces,
                     struct prudence_hash_name **there, const void *caller)
{
    struct side at = {.table = hash_of(from), .count = NOT_COUNTED};
    struct side then = {
        .table = hash_of(to), .hash = prudence_hash_spread_(hash), .count = NOT_COUNTED};
    int error;

    *there = NULL;
    if (!from || !old || !to || !fresh)
        return EINVAL;
    error = refuse(at.table, then.table, fresh == old, what);
    if (error)
        return error;
    at.hash = old->node.hash;
    check_fresh(then.table, fresh, what, caller);
    lock_both(&at, &then);
    error = rename_locked(&at, old, &then, match, key, fresh, replaces, there);
    if (!error)
        count_renamed(&at, &then, *there);
    unlock_both(&at, &then);
    if (unlikely(error == EINVAL))
        return refuse_own_successor(what);
    if (!error) {
        hash_counted(at.table, at.count, 0);
        hash_counted(then.table, then.count, 0);
    }
    return error;
}

int prudence_hash_rename(struct prudence_hash *from, struct prudence_hash_name *old,
                         struct prudence_hash *to, uint64_t hash, prudence_hash_match match,
                         const void *key, struct prudence_hash_name *fresh)
{
    struct prudence_hash_name *there;

    return do_rename("prudence_hash_rename", from, old, to, hash, match, key, fresh, false, &there,
                     __builtin_return_address(0));
}

int prudence_hash_rename_replace(struct prudence_hash *from, struct prudence_hash_name *old,
                                 struct prudence_hash *to, uint64_t hash, prudence_hash_match match,
                                 const void *key, struct prudence_hash_name *fresh,
                                 struct prudence_hash_name **old_there)
{
    struct prudence_hash_name *unwanted;

    return do_rename("prudence_hash_rename_replace", from, old, to, hash, match, key, fresh, true,
                     old_there ? old_there : &unwanted, __builtin_return_address(0));
}

static int exchange_locked(const struct side *of_a, struct prudence_hash_name *a,
                           struct prudence_hash_name *fresh_a, const struct side *of_b,
                           struct prudence_hash_name *b, struct prudence_hash_name *fresh_b)
{
    if (!hash_rename_place(of_a, a) || !hash_rename_place(of_b, b))
        return ENOENT;
    link_in(&a->node.next, of_a->hash, fresh_a, PRUDENCE_HASH_NAME_PENDING);
    link_in(&b->node.next, of_b->hash, fresh_b,
            0); /* no reader goes past `b` as long as `b` counts */
    leave_with(a, fresh_a);
    leave_with(b, fresh_a);
    decide(fresh_a);
    unlink_from(of_a, a);
    unlink_from(of_b, b);
    return 0;
}

int prudence_hash_exchange(struct prudence_hash *of_a, struct prudence_hash_name *a,
                           struct prudence_hash_name *fresh_a, struct prudence_hash *of_b,
                           struct prudence_hash_name *b, struct prudence_hash_name *fresh_b)
{
    struct side at_a = {.table = hash_of(of_a)}, at_b = {.table = hash_of(of_b)};
    bool twice = a == b || fresh_a == fresh_b || fresh_a == a || fresh_a == b || fresh_b == a ||
                 fresh_b == b;
    int error;

    if (!of_a || !a || !fresh_a || !of_b || !b || !fresh_b)
        return EINVAL;
    error = refuse(at_a.table, at_b.table, twice, "prudence_hash_exchange");
    if (error)
        return error;
    at_a.hash = a->node.hash;
    at_b.hash = b->node.hash;
    check_fresh(at_a.table, fresh_a, "prudence_hash_exchange", __builtin_return_address(0));
    check_fresh(at_b.table, fresh_b, "prudence_hash_exchange", __builtin_return_address(0));
    lock_both(&at_a, &at_b);
    error = exchange_locked(&at_a, a, fresh_a, &at_b, b, fresh_b);
    unlock_both(&at_a, &at_b);
    if (!error) {
        hash_replaced(at_a.table);
        hash_replaced(at_b.table);
    }
    return error;
}
