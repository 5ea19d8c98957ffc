/* SPDX-License-Identifier: MIT */
/*
 * Renaming (<prudence/hash_rename.h>, ADR 71): names that leave and names that enter are in their chains together, with the chains
 * locked, and one store decides for all of them. A rename has these steps:
 *   1. the fresh name is pending, and is linked into its chain: behind the one that it replaces, so that a reader that has
 *      passed that one, because it was gone, finds the fresh one;
 *   2. the names that leave are told whose store decides;
 *   3. the store;
 *   4. the names that left are unlinked.
 * Outside of the locks no name is pending, and none that leaves or left is in a chain. So no other update has to know.
 *
 * Locks: of the two chains the one that comes first in memory order of tables, then in the order of hashes, is locked first.
 * While a thread has one it waits for a bucket of the same array only, or one of a table that is later in the order. Threads
 * that move a group of buckets (hash_move.c) have no other, and take these in the same order. So no circle of threads can
 * wait for each other. If a resize has taken the second chain elsewhere, the first is unlocked, and both are looked for again.
 */
#include <prudence/hash_rename.h>

#include <errno.h>

#include "os/os.h"
#include "slab/cache.h"
#include "structures/hash_chain.h"

/* Where a name leaves, or enters: its table, and its spread hash; when its chain is locked, that, and a place in it. */
struct side {
    struct hash_table *table;
    uint64_t hash;
    uintptr_t *bucket;
    struct place place;
};

static struct side side_of(struct prudence_hash *table, uint64_t spread)
{
    return (struct side){.table = hash_of(table), .hash = spread};
}

/* ----------------------------------------------------------------------------------------- locks */

static bool is_before(const struct side *a, const struct side *b)
{
    return a->table == b->table ? a->hash < b->hash : a->table < b->table;
}

static void unlock_bucket(uintptr_t *bucket)
{
    hash_unlock(bucket, load_relaxed(bucket) & ~HASH_LOCKED);
}

/* In the array `view`. False, with nothing locked: the chain was not in it; the next attempt may find it. */
static bool lock_side(struct side *side, uintptr_t view, uintptr_t *locked)
{
    if (chain_try_lock(view, side->hash, &side->place)) {
        side->bucket = side->place.bucket;
        return true;
    }
    if (locked)
        unlock_bucket(locked);
    if (!side->place.first)
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
    if (second->table != first->table) /* in one table both are looked for in one array */
        other = load_acquire(&second->table->public.view);
    return lock_side(second, other, first->bucket);
}

static void lock_both(struct side *a, struct side *b)
{
    struct side *first = is_before(b, a) ? b : a, *second = first == a ? b : a;

    while (!try_lock_both(first, second)) {
    }
}

static void unlock_both(const struct side *a, const struct side *b)
{
    if (b->bucket != a->bucket)
        unlock_bucket(b->bucket);
    unlock_bucket(a->bucket);
}

/* ----------------------------------------------------------------------------------- locked chains */

/* To the first name whose hash is not lower; to the name: false if it is not there. */
static void go_to_hash(struct side *side)
{
    place_begin(&side->place, side->bucket, load_relaxed(side->bucket) & ~HASH_LOCKED);
    to_hash(&side->place, side->hash);
}

static bool go_to(struct side *side, const struct prudence_hash_name *name)
{
    go_to_hash(side);
    return to_node(&side->place, &name->node);
}

/* Release: a reader that finds a name sees what it holds. */
static void set_link(const struct place *place, uintptr_t link)
{
    store_release(place->link, place->link == place->bucket ? link | HASH_LOCKED : link);
}

static void link_in(const struct place *place, uint64_t hash, struct prudence_hash_name *fresh,
                    uintptr_t change)
{
    fresh->node.hash = hash;
    store_relaxed(&fresh->node.next, place->next);
    store_relaxed(&fresh->change, change);
    set_link(place, link_to(&fresh->node));
}

/* Behind the name at the place. */
static void link_behind(const struct side *side, struct prudence_hash_name *fresh, uintptr_t change)
{
    struct place place = side->place;

    pass(&place);
    link_in(&place, side->hash, fresh, change);
}

/* The name at the place. */
static void unlink_at(const struct side *side)
{
    set_link(&side->place, load_relaxed(&prudence_hash_node_(side->place.next)->next));
}

/* Release: a reader that is sent to the name that decides finds it pending, or decided, but not as it was before. */
static void leave_with(struct prudence_hash_name *name, const struct prudence_hash_name *decides)
{
    store_release(&name->change, (uintptr_t)decides);
}

/* Release: a reader that sees it sees the names that leave told, and the fresh ones linked. */
static void decide(struct prudence_hash_name *fresh)
{
    store_release(&fresh->change, (uintptr_t)0);
}

/* ------------------------------------------------------------------------------------------ renames */

static int refuse(const struct hash_table *a, const struct hash_table *b, bool twice,
                  const char *what)
{
    if (twice) {
        os_report("%s: a fresh name is one of the old ones, or a name is given twice", what);
        return EINVAL;
    }
    if (a->views.small->domain != b->views.small->domain) {
        os_report("%s: the tables '%s' and '%s' have different domains", what, a->views.small->name,
                  b->views.small->name);
        return EXDEV;
    }
    return 0;
}

struct rename {
    struct side from, to;
    struct prudence_hash_name *old, *fresh;
    struct prudence_hash_name *there; /* that has the key, and is not `old`; NULL: none */
    unsigned passed;
};

/* Goes to the name that has the key. Returns the place of the fresh one: behind it, or where the key's hash belongs. */
static struct place find_key(struct rename *rename, prudence_hash_match match, const void *key)
{
    struct place place;

    go_to_hash(&rename->to);
    place = rename->to.place;
    if (to_key(&rename->to.place, rename->to.hash, match, key)) {
        place = rename->to.place;
        if (place.next != link_to(&rename->old->node))
            rename->there = prudence_hash_entry(prudence_hash_node_(place.next),
                                                struct prudence_hash_name, node);
        pass(&place);
    }
    return place;
}

static void unlink_old(struct rename *rename)
{
    bool one_chain = rename->from.bucket == rename->to.bucket;

    if (one_chain)
        go_to(&rename->from, rename->old);
    unlink_at(&rename->from);
    if (rename->there) {
        if (one_chain)
            go_to(&rename->to, rename->there);
        unlink_at(&rename->to);
    }
}

static int rename_locked(struct rename *rename, prudence_hash_match match, const void *key,
                         bool replaces)
{
    struct place place;

    if (!go_to(&rename->from, rename->old))
        return ENOENT;
    place = find_key(rename, match, key);
    if (rename->there && !replaces)
        return EEXIST;
    rename->passed = place.passed;
    link_in(&place, rename->to.hash, rename->fresh, PRUDENCE_HASH_NAME_PENDING);
    leave_with(rename->old, rename->fresh);
    if (rename->there)
        leave_with(rename->there, rename->fresh);
    decide(rename->fresh);
    unlink_old(rename);
    return 0;
}

static void count_renamed(const struct rename *rename)
{
    if (rename->from.table != rename->to.table)
        hash_counted(rename->from.table, -1, 0);
    else if (rename->there)
        hash_counted(rename->to.table, -1, 0);
    else
        hash_replaced(rename->to.table);
    if (rename->from.table != rename->to.table && !rename->there)
        hash_counted(rename->to.table, 1, rename->passed);
}

static int do_rename(struct rename *rename, prudence_hash_match match, const void *key,
                     bool replaces, const char *what)
{
    int error =
        refuse(rename->from.table, rename->to.table, rename->fresh == rename->old, what);

    if (error)
        return error;
    lock_both(&rename->from, &rename->to);
    error = rename_locked(rename, match, key, replaces);
    unlock_both(&rename->from, &rename->to);
    if (!error)
        count_renamed(rename);
    return error;
}

static struct rename rename_of(struct prudence_hash *from, struct prudence_hash_name *old,
                               struct prudence_hash *to, uint64_t hash,
                               struct prudence_hash_name *fresh)
{
    return (struct rename){.from = side_of(from, old->node.hash),
                           .to = side_of(to, prudence_hash_spread_(hash)),
                           .old = old,
                           .fresh = fresh};
}

int prudence_hash_rename(struct prudence_hash *from, struct prudence_hash_name *old,
                         struct prudence_hash *to, uint64_t hash, prudence_hash_match match,
                         const void *key, struct prudence_hash_name *fresh)
{
    struct rename rename = rename_of(from, old, to, hash, fresh);

    return do_rename(&rename, match, key, false, "prudence_hash_rename");
}

int prudence_hash_rename_replace(struct prudence_hash *from, struct prudence_hash_name *old,
                                 struct prudence_hash *to, uint64_t hash, prudence_hash_match match,
                                 const void *key, struct prudence_hash_name *fresh,
                                 struct prudence_hash_name **replaced)
{
    struct rename rename = rename_of(from, old, to, hash, fresh);
    int error = do_rename(&rename, match, key, true, "prudence_hash_rename_replace");

    if (!error)
        *replaced = rename.there;
    return error;
}

/* In one chain the places are looked for again after each change. */
static int exchange_locked(struct side *of_a, struct prudence_hash_name *a,
                           struct prudence_hash_name *fresh_a, struct side *of_b,
                           struct prudence_hash_name *b, struct prudence_hash_name *fresh_b)
{
    if (!go_to(of_a, a) || !go_to(of_b, b))
        return ENOENT;
    link_behind(of_a, fresh_a, PRUDENCE_HASH_NAME_PENDING);
    go_to(of_b, b);
    link_behind(of_b, fresh_b, 0); /* nobody looks behind `b` as long as that is there */
    leave_with(a, fresh_a);
    leave_with(b, fresh_a);
    decide(fresh_a);
    go_to(of_a, a);
    unlink_at(of_a);
    go_to(of_b, b);
    unlink_at(of_b);
    return 0;
}

int prudence_hash_exchange(struct prudence_hash *of_a, struct prudence_hash_name *a,
                           struct prudence_hash_name *fresh_a, struct prudence_hash *of_b,
                           struct prudence_hash_name *b, struct prudence_hash_name *fresh_b)
{
    struct side at_a = side_of(of_a, a->node.hash), at_b = side_of(of_b, b->node.hash);
    bool twice = a == b || fresh_a == fresh_b || fresh_a == a || fresh_a == b || fresh_b == a ||
                 fresh_b == b;
    int error = refuse(at_a.table, at_b.table, twice, "prudence_hash_exchange");

    if (error)
        return error;
    lock_both(&at_a, &at_b);
    error = exchange_locked(&at_a, a, fresh_a, &at_b, b, fresh_b);
    unlock_both(&at_a, &at_b);
    if (!error) {
        hash_replaced(at_a.table);
        hash_replaced(at_b.table);
    }
    return error;
}
