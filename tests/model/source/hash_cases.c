/* SPDX-License-Identifier: MIT */
/*
 * Cases of the hash tables: updates without locks at the same time, with readers, whose
 * objects are freed after a grace period; and renames with readers, another rename, and a resize.
 */
#include <prudence/hash_rename.h>
#include <prudence/lockfree_hash.h>

#include "explorer.h"
#include "gp/user/domain.h"
#include "gp/user/process_life.h"
#include "posix.h"
#include "slab/cache_type.h"
#include "tables/hash.h"
#include "tables/hash_move.h"

/* ------------------------------------------------------------------------ a table without locks */

struct object {
    struct prudence_hash_node node;
    uint64_t
        /* plain, so an access that is not ordered with the object's initialization or end is a
         * race */
        key;
};

static struct prudence_lockfree_hash *lockfree;
static struct object *objects[6];
static struct object *gone[6]; /* by thread: the object that it has removed */
static int results[6];

static bool has_key(const struct prudence_hash_node *node, const void *key)
{
    return prudence_hash_entry(node, const struct object, node)->key == *(const uint64_t *)key;
}

static struct object *object_of(struct prudence_hash_node *node)
{
    return node ? prudence_hash_entry(node, struct object, node) : NULL;
}

static struct object *make_object(unsigned number, uint64_t key)
{
    objects[number] = explore_alloc(sizeof *objects[number]);
    objects[number]->key = key;
    return objects[number];
}

/* Makes two buckets; objects of these keys are in the first, the last one in front. */
static void make_lockfree(unsigned count)
{
    uintptr_t *buckets = explore_alloc_aligned(2 * sizeof *buckets, 64);

    lockfree = explore_alloc(sizeof *lockfree);
    lockfree->view = (uintptr_t)buckets | 1;
    for (unsigned i = 0; i < count; i++)
        prudence_lockfree_hash_add_duplicate(lockfree, 0, &make_object(i, i)->node);
    for (unsigned i = 0; i < 6; i++) {
        gone[i] = NULL;
        results[i] = -1;
    }
}

static bool is_linked(const struct object *object)
{
    uintptr_t link = *prudence_lockfree_hash_bucket_(lockfree, 0);

    while (link && prudence_lockfree_hash_node_(link) != &object->node)
        link = prudence_lockfree_hash_node_(link)->next & ~PRUDENCE_LOCKFREE_HASH_REMOVED;
    return link;
}

static unsigned count_of(uint64_t key)
{
    struct prudence_lockfree_hash_walk walk;
    struct prudence_hash_node *node;
    unsigned count = 0;

    prudence_lockfree_hash_for_each(&walk, lockfree, node) count += has_key(node, &key);
    return count;
}

static void removes(void *of)
{
    struct object *object = of;

    results[explore_self()] = prudence_lockfree_hash_remove(lockfree, &object->node);
    if (!results[explore_self()])
        gone[explore_self()] = object;
}

static void replaces(void *of)
{
    struct object *old = of, *fresh = make_object(5, old->key);

    results[explore_self()] = prudence_lockfree_hash_replace(lockfree, &old->node, &fresh->node);
    if (!results[explore_self()])
        gone[explore_self()] = old;
}

static void adds_unique(void *of)
{
    struct object *object = of;
    uint64_t key = object->key;

    results[explore_self()] =
        prudence_lockfree_hash_add(lockfree, 0, has_key, &key, &object->node, NULL) == 0;
}

static void adds_replacing(void *of)
{
    struct object *object = of;
    uint64_t key = object->key;
    struct prudence_hash_node *old;

    prudence_lockfree_hash_put(lockfree, 0, has_key, &key, &object->node, &old);
    gone[explore_self()] = object_of(old);
    results[explore_self()] = gone[explore_self()] == NULL;
}

/* Checks that every removed object is unlinked. */
static void what_is_gone_is_unlinked(void)
{
    for (unsigned i = 0; i < 6; i++)
        explore_assert(!gone[i] || !is_linked(gone[i]));
    explore_note();
}

CASE_THEN("lockfree-neighbours", neighbours_are_removed, one_is_left, 8, 10)
{
    make_lockfree(3);
    explore_thread(removes, objects[1]);
    explore_thread(removes, objects[2]);
}

CASE_THEN("lockfree-three-removals", all_are_removed, the_chain_is_empty, 3, 5)
{
    make_lockfree(3);
    for (unsigned i = 0; i < 3; i++)
        explore_thread(removes, objects[i]);
}

static void the_chain_is_empty(void)
{
    what_is_gone_is_unlinked();
    explore_assert(*prudence_lockfree_hash_bucket_(lockfree, 0) == 0);
}

static void one_is_left(void)
{
    what_is_gone_is_unlinked();
    explore_assert(is_linked(objects[0]) && count_of(0) == 1 && !count_of(1) && !count_of(2));
}

CASE_THEN("lockfree-first-and-push", the_first_is_removed_during_an_addition, added_and_removed, 8,
          10)
{
    make_lockfree(2);
    explore_thread(removes, objects[1]);
    explore_thread(adds_unique, make_object(2, 2));
}

static void added_and_removed(void)
{
    what_is_gone_is_unlinked();
    explore_assert(count_of(0) == 1 && !count_of(1) && count_of(2) == 1);
}

CASE_THEN("lockfree-add-unique-twice", one_key_is_added_twice, the_key_is_there_once, 8, 10)
{
    make_lockfree(1);
    explore_thread(adds_unique, make_object(1, 7));
    explore_thread(adds_unique, make_object(2, 7));
}

CASE_THEN("lockfree-add-and-replace", one_key_is_added_and_replaced, the_key_is_there_once, 3, 5)
{
    make_lockfree(1);
    explore_thread(adds_replacing, make_object(1, 7));
    explore_thread(adds_replacing, make_object(2, 7));
    explore_thread(adds_unique, make_object(3, 7));
}

static void the_key_is_there_once(void)
{
    what_is_gone_is_unlinked();
    explore_assert(count_of(7) == 1);
    explore_assert((results[1] == 1) + (results[2] == 1) + (results[3] == 1) == 1);
}

CASE_THEN("lockfree-removed-twice", one_is_removed_twice_and_replaced, one_thread_has_it, 4, 5)
{
    make_lockfree(2);
    explore_thread(removes, objects[0]);
    explore_thread(removes, objects[0]);
    explore_thread(replaces, objects[0]);
}

static void one_thread_has_it(void)
{
    what_is_gone_is_unlinked();
    explore_assert((results[1] == 0) + (results[2] == 0) + (results[3] == 0) == 1);
    explore_assert(count_of(0) == (results[3] == 0));
}

/* Always finds the object or its replacement, also with a thread that unlinks the old one on
 * its way. */
static void finds_one(void *unused)
{
    static const uint64_t key = 1;

    (void)unused;
    explore_assert(prudence_lockfree_hash_lookup(lockfree, 0, has_key, &key));
    explore_assert(count_of(1) == 1);
    explore_note();
}

CASE_THEN("lockfree-replaced-and-found", a_replacement_is_looked_for, what_is_gone_is_unlinked, 3,
          4)
{
    make_lockfree(2);
    explore_thread(replaces, objects[1]);
    explore_thread(finds_one, NULL);
    explore_thread(removes, objects[0]);
}

/* ------------------------------------------------------------------------ ... and grace periods */

static void start_gp(void)
{
    posix_membarrier_start(true);
    gp_start();
    prudence_default.chosen_at = explore_clock();
}

static void removes_and_frees(void *of)
{
    struct object *object = of;

    prudence_read_lock();
    removes(object);
    prudence_read_unlock();
    gp_wait(&prudence_default, gp_snapshot(&prudence_default), 0);
    explore_note();
    explore_free(object, sizeof *object);
}

static void reads_all(void *unused)
{
    (void)unused;
    prudence_read_lock();
    explore_assert(count_of(0) == 1);
    prudence_read_unlock();
}

static void removes_in_section(void *of)
{
    prudence_read_lock();
    removes(of);
    prudence_read_unlock();
}

static void adds_in_section(void *of)
{
    prudence_read_lock();
    adds_unique(of);
    prudence_read_unlock();
}

CASE("lockfree-reader", a_reader_during_a_removal, 2, 4)
{
    start_gp();
    make_lockfree(3);
    explore_thread(reads_all, NULL);
    explore_thread(removes_and_frees, objects[1]);
}

/* One update passes an object that another removes and frees; it unlinks that object, or its
 * link says so. */
CASE("lockfree-two-removals", a_removal_during_a_removal, 2, 4)
{
    start_gp();
    make_lockfree(3);
    explore_thread(removes_in_section, objects[1]);
    explore_thread(removes_and_frees, objects[2]);
}

CASE("lockfree-addition-and-removal", an_addition_during_a_removal, 2, 4)
{
    start_gp();
    make_lockfree(2);
    explore_thread(adds_in_section, make_object(2, 9));
    explore_thread(removes_and_frees, objects[1]);
}

/* ---------------------------------------------------------------------------------------- names */

struct entry {
    struct prudence_hash_name name;
    uint64_t key;
    unsigned object;
};

static struct prudence_hash *tables[2];
static struct entry *names[4];
static uint64_t old_hash, new_hash;

static bool name_has_key(const struct prudence_hash_node *node, const void *key)
{
    return prudence_hash_entry(node, const struct entry, name.node)->key == *(const uint64_t *)key;
}

/* Returns a hash of bucket `index` of two. */
static uint64_t hash_of_bucket(uint64_t index, uint64_t rest)
{
    uint64_t inverse = prudence_hash_spread_(1);

    for (unsigned i = 0; i < 6; i++)
        inverse *= 2 - prudence_hash_spread_(inverse);
    return ((index << 63) + rest) * inverse;
}

static uintptr_t make_view(unsigned order, uintptr_t link)
{
    uintptr_t *words = explore_alloc_aligned(sizeof *words << order, 64);

    for (unsigned i = 0; i < 1u << order; i++)
        words[i] = link;
    return (uintptr_t)words | order;
}

/* Makes a table of two buckets without any step of a resize, so that only the renames themselves
 * are explored. */
static struct prudence_hash *make_table(void)
{
    struct hash_table *table =
        explore_alloc_aligned(sizeof *table + sizeof table->counters[0], CACHE_LINES_APART);

    table->order_min = table->order_max = 1;
    table->flags = PRUDENCE_HASH_FIXED;
    table->stepping = 1;
    table->public.view = make_view(1, PRUDENCE_HASH_END(0));
    return &table->public;
}

static struct entry *make_name(unsigned number, uint64_t key, unsigned object)
{
    struct entry *name = names[number] = explore_alloc(sizeof *name);

    name->key = key;
    name->object = object;
    return name;
}

#define OLD 1
#define NEW 2

static void make_names(unsigned count_of_tables, unsigned old_bucket, unsigned new_bucket)
{
    tables[0] = make_table();
    tables[1] = count_of_tables == 2 ? make_table() : tables[0];
    old_hash = hash_of_bucket(old_bucket, 5);
    new_hash = hash_of_bucket(new_bucket, 6);
    prudence_hash_add_duplicate(tables[0], old_hash, &make_name(0, OLD, 1)->name.node);
}

static unsigned object_under(unsigned table, uint64_t hash, uint64_t key)
{
    struct prudence_hash_name *name =
        prudence_hash_lookup_name(tables[table], hash, name_has_key, &key);

    return name ? prudence_hash_entry(name, const struct entry, name)->object : 0;
}

static void renames(void *unused)
{
    static const uint64_t key = NEW;
    struct entry *fresh = make_name(2, NEW, 1);
    struct prudence_hash_name *replaced;

    (void)unused;
    explore_assert(!prudence_hash_rename_replace(tables[0], &names[0]->name, tables[1], new_hash,
                                                 name_has_key, &key, &fresh->name, &replaced));
}

/* Checks that the object is under the new name once it is not under the old one, and never under
 * the old one again. */
static void looks_for_both(void *unused)
{
    unsigned before = object_under(0, old_hash, OLD), found = object_under(1, new_hash, NEW),
             behind = object_under(0, old_hash, OLD);

    (void)unused;
    explore_assert(before == 1 || found == 1);
    explore_assert(found != 1 || !behind);
    if (found == 1 && before == 1)
        explore_note();
}

CASE_THEN("rename", a_rename, it_has_the_new_name, 4, 5)
{
    make_names(1, 0, 1);
    explore_thread(looks_for_both, NULL);
    explore_thread(renames, NULL);
}

CASE_THEN("rename-in-a-chain", a_rename_in_one_chain, it_has_the_new_name, 4, 5)
{
    make_names(1, 0, 0);
    explore_thread(looks_for_both, NULL);
    explore_thread(renames, NULL);
}

static void finds_the_new_name(void *unused)
{
    unsigned before = object_under(0, old_hash, OLD), first = object_under(1, new_hash, NEW),
             then = object_under(1, new_hash, NEW);

    (void)unused;
    explore_assert(before == 1 || first == 1);
    explore_assert(first && then && (first == 2 || then == 1));
    explore_assert(then == 2 || !object_under(0, old_hash, OLD));
    if (first == 2 && then == 1)
        explore_note();
}

CASE_THEN("rename-replaces", a_name_is_replaced, it_has_the_new_name, 3, 5)
{
    make_names(2, 0, 1);
    prudence_hash_add_duplicate(tables[1], new_hash, &make_name(1, NEW, 2)->name.node);
    explore_thread(finds_the_new_name, NULL);
    explore_thread(renames, NULL);
}

static void exchanges(void *unused)
{
    struct entry *fresh_a = make_name(3, OLD, 2), *fresh_b = make_name(2, NEW, 1);

    (void)unused;
    explore_assert(!prudence_hash_exchange(tables[0], &names[0]->name, &fresh_a->name, tables[1],
                                           &names[1]->name, &fresh_b->name));
}

static void looks_for_exchanged(void *unused)
{
    unsigned first = object_under(0, old_hash, OLD), then = object_under(1, new_hash, NEW),
             last = object_under(0, old_hash, OLD);

    (void)unused;
    explore_assert(first && then && last);
    explore_assert(first == 1 || then == 1);
    explore_assert(then == 2 || last == 2);
    if (first == 1 && last == 2)
        explore_note();
}

CASE("rename-exchange", an_exchange, 3, 4)
{
    make_names(1, 0, 1);
    prudence_hash_add_duplicate(tables[1], new_hash, &make_name(1, NEW, 2)->name.node);
    explore_thread(looks_for_exchanged, NULL);
    explore_thread(exchanges, NULL);
}

/* Two renames in opposite directions, under keys of their own. */
static void renames_there(void *unused)
{
    static const uint64_t key = 11;
    struct entry *fresh = make_name(2, key, 1);

    (void)unused;
    explore_assert(!prudence_hash_rename(tables[0], &names[0]->name, tables[1], new_hash,
                                         name_has_key, &key, &fresh->name));
}

static void renames_back(void *unused)
{
    static const uint64_t key = 12;
    struct entry *fresh = make_name(3, key, 2);

    (void)unused;
    explore_assert(!prudence_hash_rename(tables[1], &names[1]->name, tables[0], old_hash,
                                         name_has_key, &key, &fresh->name));
}

CASE_THEN("rename-opposite", renames_in_opposite_directions, both_are_renamed, 3, 4)
{
    make_names(1, 0, 1);
    prudence_hash_add_duplicate(tables[1], new_hash, &make_name(1, NEW, 2)->name.node);
    explore_thread(renames_there, NULL);
    explore_thread(renames_back, NULL);
}

static void both_are_renamed(void)
{
    explore_assert(object_under(0, new_hash, 11) == 1 && object_under(0, old_hash, 12) == 2);
    explore_assert(prudence_hash_count(tables[0]) == 2);
    explore_note();
}

/* A rename between chains that a resize moves to a larger or smaller array. */
static void moves_a_group(void *of)
{
    struct hash_table *table = hash_of(tables[0]);
    uint64_t groups = of ? 2 : 1;

    for (uint64_t i = 0; i < groups; i++)
        hash_move(table->from, table->public.view, i, false);
}

static void begin_resize(unsigned order)
{
    struct hash_table *table = hash_of(tables[0]);

    table->from = table->public.view;
    table->public.view = make_view(order, 0);
    table->phase = HASH_MOVING;
}

CASE_THEN("rename-during-a-resize", a_rename_during_a_larger_array, it_has_the_new_name, 3, 4)
{
    make_names(1, 0, 1);
    begin_resize(2);
    explore_thread(moves_a_group, tables);
    explore_thread(renames, NULL);
}

CASE_THEN("rename-in-a-cut-chain", a_rename_in_a_chain_that_is_cut, it_has_the_new_name, 3, 4)
{
    make_names(1, 0, 0);
    prudence_hash_add_duplicate(tables[0], old_hash, &make_name(3, 5, 5)->name.node);
    begin_resize(2);
    explore_thread(moves_a_group, tables);
    explore_thread(renames, NULL);
}

static void it_has_the_new_name(void)
{
    explore_assert(!object_under(0, old_hash, OLD) && object_under(1, new_hash, NEW) == 1);
    explore_note();
}
