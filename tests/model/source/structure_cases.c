/* SPDX-License-Identifier: MIT */
/*
 * Cases of the program's tables: readers and writers of a hash table while a group of its buckets
 * is split or joined, and while a new array replaces the old one; a table of ids that grows; fork
 * during both.
 *
 * Replaces tables/views.c: arrays come from the explorer, full of words that lead to no object.
 * A replaced one is freed if no reader is inside, which the cases' readers say in words of their
 * own.
 */
#include <prudence/hash.h>
#include <prudence/rcuhlist.h>
#include <prudence/rculist.h>
#include <prudence/ref.h>
#include <prudence/stack.h>

#include "explorer.h"
#include "os/os.h"
#include "tables/fork.h"
#include "tables/hash.h"
#include "tables/hash_bucket.h"
#include "tables/hash_move.h"
#include "tables/hash_resize.h"
#include "tables/id_table.h"
#include "tables/views.h"
#include "tables/writers.h"

/* ---------------------------------------------------------------------------- what stands below */

static uint64_t inside[EXPLORE_THREADS_MAX];

static void enter(void)
{
    __atomic_store_n(&inside[explore_self()], 1, __ATOMIC_SEQ_CST);
}

static void leave(void)
{
    store_release(&inside[explore_self()], 0u);
}

bool views_make(struct views *views, const char *name, struct prudence_domain *domain, void *first)
{
    (void)views, (void)name, (void)domain, (void)first;
    return true;
}

int views_may_end(const struct views *views, const char *what, void *caller)
{
    (void)views, (void)what, (void)caller;
    return 0;
}

void views_unmake(const struct views *views)
{
    (void)views;
}

unsigned views_order(uint64_t words)
{
    return words <= 64 ? VIEW_ORDER_SMALL : VIEW_ORDER_PAGE;
}

uintptr_t views_new(struct views *views, unsigned order, bool *zeroed)
{
    uintptr_t *array = explore_alloc_aligned(sizeof *array << order, 4096);

    (void)views;
    *zeroed = false;
    for (unsigned i = 0; i < 1u << order; i++)
        array[i] = PRUDENCE_HASH_END(0); /* it leads to no object */
    return (uintptr_t)array | order;
}

void views_free(struct views *views, uintptr_t view)
{
    (void)views;
    explore_free(view_words(view), view_bytes(view));
}

void views_defer(struct views *views, uintptr_t view)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < EXPLORE_THREADS_MAX; i++)
        if (load_acquire(&inside[i]))
            return;
    views_free(views, view);
    explore_note();
}

size_t views_bytes(const struct views *views, uintptr_t view)
{
    (void)views;
    return view_bytes(view);
}

struct views_left views_leave(const struct views *views, uintptr_t view)
{
    (void)views;
    return (struct views_left){.view = view};
}

bool views_may_defer(const struct views *views, const struct views_left *left)
{
    (void)views, (void)left;
    return true;
}

bool views_is_unread(const struct views *views, const struct views_left *left)
{
    (void)views, (void)left;
    return false;
}

uint64_t views_latent_bytes(const struct views *views)
{
    (void)views;
    return 0;
}

bool views_wait(const struct views *views, uint64_t bytes)
{
    (void)views, (void)bytes;
    return false;
}

void *prudence_malloc(size_t size)
{
    return explore_alloc(size);
}

void *prudence_aligned_alloc(size_t alignment, size_t size)
{
    (void)alignment;
    return explore_alloc(size);
}

void prudence_free(void *object)
{
    (void)object;
}

uint32_t process_started = 1;

void process_start_slow(void)
{
}

/* ---------------------------------------------------------------------------------- hash tables */

/* Uses the last bucket of 64 (whose words are cleared last), and the first, second, and
 * last of its 8 parts; the second has two items. FIRST becomes the first of another part. */
#define BUCKET 63
#define ITEMS  4
#define FIRST  (ITEMS + 2)
#define MADE   42

struct item {
    struct prudence_hash_node node;
    uint64_t key;
    unsigned value; /* plain: a thread that finds an item sees earlier writes to it */
};

static struct prudence_hash *table;
static struct item items[FIRST + 1];

static bool has_key(const struct prudence_hash_node *node, const void *key)
{
    return prudence_hash_entry(node, const struct item, node)->key == *(const uint64_t *)key;
}

/* Returns the hash that the table's multiplication turns into `spread`. */
static uint64_t hash_for(uint64_t spread)
{
    uint64_t factor = prudence_hash_spread_(1), inverse = factor;

    for (unsigned i = 0; i < 6; i++)
        inverse *= 2 - factor * inverse;
    return spread * inverse;
}

static uint64_t hash_of_key(uint64_t key)
{
    static const uint64_t parts[] = {0, 1, 1, 7, 0, 1, 3};

    return hash_for(((uint64_t)BUCKET << 3 | parts[key]) << 55 | key << 20);
}

static struct item *make_item(unsigned number)
{
    items[number].key = number;
    items[number].value = MADE;
    return &items[number];
}

static void add(unsigned number)
{
    struct item *item = make_item(number);

    prudence_hash_add_duplicate(table, hash_of_key(number), &item->node);
}

static bool find(uint64_t key)
{
    struct prudence_hash_node *node = prudence_hash_lookup(table, hash_of_key(key), has_key, &key);

    if (!node)
        return false;
    explore_assert(prudence_hash_entry(node, struct item, node)->value == MADE);
    explore_assert(prudence_hash_entry(node, struct item, node)->key == key);
    explore_note();
    return true;
}

static void make_table(unsigned order)
{
    struct prudence_hash_attr attr = {
        .size = sizeof attr, .buckets = (uint64_t)1 << order, .flags = PRUDENCE_HASH_FIXED};

    table = prudence_hash_create("explored", &attr);
    hash_of(table)->order_min = VIEW_ORDER_SMALL;
    for (unsigned i = 0; i < ITEMS; i++)
        add(i);
}

/* Begins a resize that has moved no group. */
static void make_resized(unsigned from, unsigned to)
{
    make_table(from);
    explore_assert(hash_resize_begin(hash_of(table), table->view, to));
    while (!hash_of(table)->from)
        hash_resize_step(hash_of(table));
}

static void looks_up(void *argument)
{
    enter();
    for (uint64_t key = 0; key < ITEMS; key++)
        if (!find(key))
            explore_fail("key %u is not found", (unsigned)key);
    (void)argument;
    leave();
}

static void looks_up_one(void *argument)
{
    enter();
    if (!find((uintptr_t)argument))
        explore_fail("key %u is not found", (unsigned)(uintptr_t)argument);
    leave();
}

static void walks(void *argument)
{
    struct prudence_hash_walk walk;
    struct prudence_hash_node *node;
    unsigned seen = 0;

    (void)argument;
    enter();
    prudence_hash_for_each(&walk, table, node)
    {
        unsigned bit = 1u << prudence_hash_entry(node, struct item, node)->key;

        explore_assert(!(seen & bit));
        seen |= bit;
    }
    explore_assert((seen & ((1u << ITEMS) - 1)) == (1u << ITEMS) - 1);
    leave();
}

static void finds_what_is_added(void *argument)
{
    enter();
    find((uintptr_t)argument);
    leave();
}

/* Adds a node: the first update that finds the group not moved moves it, and then adds to its
 * second part. */
static void adds(void *argument)
{
    add((unsigned)(uintptr_t)argument);
}

/* Moves all groups, to the end: the old array is freed. */
static void finishes(void *argument)
{
    (void)argument;
    while (hash_of(table)->phase != HASH_IDLE)
        hash_resize_step(hash_of(table));
}

CASE_THEN("hash-publication", publication, none_is_lost, 3, 4)
{
    make_table(VIEW_ORDER_SMALL);
    explore_thread(adds, (void *)ITEMS);
    explore_thread(finds_what_is_added, (void *)ITEMS);
}

/* A node that the thread that moves its group has added is found by the new buckets. */
CASE_THEN("hash-split-during-lookups", split_during_lookups, none_is_lost, 1, 3)
{
    make_resized(VIEW_ORDER_SMALL, VIEW_ORDER_PAGE);
    explore_thread(adds, (void *)(ITEMS + 1));
    explore_thread(looks_up, NULL);
}

CASE_THEN("hash-joined-during-lookups", joined_during_lookups, none_is_lost, 1, 3)
{
    make_resized(VIEW_ORDER_PAGE, VIEW_ORDER_SMALL);
    explore_thread(adds, (void *)(ITEMS + 1));
    explore_thread(looks_up, NULL);
}

CASE_THEN("hash-split-during-a-walk", split_during_a_walk, none_is_lost, 1, 2)
{
    make_resized(VIEW_ORDER_SMALL, VIEW_ORDER_PAGE);
    explore_thread(adds, (void *)(ITEMS + 1));
    explore_thread(walks, NULL);
}

CASE_THEN("hash-joined-during-a-walk", joined_during_a_walk, none_is_lost, 1, 2)
{
    make_resized(VIEW_ORDER_PAGE, VIEW_ORDER_SMALL);
    explore_thread(adds, (void *)(ITEMS + 1));
    explore_thread(walks, NULL);
}

/* Acts as a writer that reached the old bucket before the resize: puts a node after item 2, and
 * then moves the group. */
static void adds_and_moves(void *argument)
{
    uintptr_t from = hash_of(table)->from, *bucket = &view_words(from)[BUCKET];
    struct prudence_hash_node *node = &make_item(FIRST)->node;
    uintptr_t link = hash_bucket_lock(bucket);

    (void)argument;
    node->hash = prudence_hash_spread_(hash_of_key(FIRST));
    node->next = items[2].node.next;
    store_release(&items[2].node.next, link_to(node));
    hash_bucket_unlock(bucket, link);
    hash_move(from, table->view, BUCKET, false);
}

CASE("hash-split-behind-an-addition", split_behind_an_addition, 2, 3)
{
    make_resized(VIEW_ORDER_SMALL, VIEW_ORDER_PAGE);
    explore_thread(adds_and_moves, NULL);
    explore_thread(finds_what_is_added, (void *)FIRST);
}

/* Clears and publishes the new array. */
static void publishes(void *argument)
{
    (void)argument;
    hash_resize_step(hash_of(table));
}

CASE_THEN("hash-array-during-a-lookup", array_during_a_lookup, none_is_lost, 2, 3)
{
    make_table(VIEW_ORDER_SMALL);
    explore_assert(hash_resize_begin(hash_of(table), table->view, VIEW_ORDER_PAGE));
    explore_thread(publishes, NULL);
    explore_thread(looks_up_one, (void *)3);
}

/* Moves the last groups and frees the old array. */
CASE_THEN("hash-old-array-during-a-lookup", old_array_during_a_lookup, none_is_lost, 2, 3)
{
    make_resized(VIEW_ORDER_SMALL, VIEW_ORDER_PAGE);
    hash_of(table)->cursor = 63;
    for (unsigned group = 0; group < 63; group++)
        hash_move(hash_of(table)->from, table->view, group, false);
    explore_thread(finishes, NULL);
    explore_thread(looks_up_one, (void *)1);
}

static unsigned added;

static void adds_unique(void *argument)
{
    struct item *item = &items[ITEMS + (uintptr_t)argument];
    uint64_t key = ITEMS;

    item->key = key;
    item->value = MADE;
    if (!prudence_hash_add(table, hash_of_key(key), has_key, &key, &item->node, NULL))
        add_relaxed(&added, 1);
    explore_note();
}

CASE_THEN("hash-two-writers", two_writers, one_was_added, 1, 2)
{
    added = 0;
    make_resized(VIEW_ORDER_SMALL, VIEW_ORDER_PAGE);
    explore_thread(adds_unique, (void *)0);
    explore_thread(adds_unique, (void *)1);
}

CASE_THEN("hash-two-writers-joined", two_writers_joined, one_was_added, 1, 2)
{
    added = 0;
    make_resized(VIEW_ORDER_PAGE, VIEW_ORDER_SMALL);
    explore_thread(adds_unique, (void *)0);
    explore_thread(adds_unique, (void *)1);
}

static unsigned count_nodes(void)
{
    struct prudence_hash_walk walk;
    struct prudence_hash_node *node;
    unsigned nodes = 0;

    prudence_hash_for_each(&walk, table, node) nodes++;
    return nodes;
}

static void one_was_added(void)
{
    explore_assert(added == 1);
    explore_assert(count_nodes() == ITEMS + 1);
    explore_assert(prudence_hash_count(table) == ITEMS + 1);
}

static void none_is_lost(void)
{
    for (uint64_t key = 0; key < ITEMS; key++)
        explore_assert(find(key));
    explore_assert(count_nodes() == prudence_hash_count(table));
}

/* -------------------------------------------------------------------------------- tables of ids */

#define SLOTS 64

static struct prudence_id_table *ids;
static unsigned values[SLOTS + 1];

static void make_ids(unsigned count)
{
    uint32_t id;

    ids = prudence_id_table_create("explored", NULL);
    for (unsigned i = 0; i < count; i++) {
        values[i] = MADE;
        explore_assert(prudence_id_table_add(ids, &values[i], &id) == 0);
    }
}

static void inserts(void *argument)
{
    unsigned number = (unsigned)(uintptr_t)argument;
    uint32_t id;

    values[number] = MADE;
    explore_assert(prudence_id_table_add(ids, &values[number], &id) == 0);
    explore_assert(id == number);
}

static void looks_ids_up(void *argument)
{
    uint32_t last = (uint32_t)(uintptr_t)argument;
    unsigned *found;

    enter();
    explore_assert(prudence_id_table_lookup(ids, 7) == &values[7]);
    found = prudence_id_table_lookup(ids, last);
    explore_assert(!found || *found == MADE);
    explore_assert(prudence_id_table_lookup(ids, 9) == &values[9]);
    if (found)
        explore_note();
    leave();
}

CASE("ids-publication", id_publication, 3, 4)
{
    make_ids(10);
    explore_thread(inserts, (void *)10);
    explore_thread(looks_ids_up, (void *)10);
}

CASE("ids-grow", ids_grow, 2, 3)
{
    make_ids(SLOTS);
    explore_thread(inserts, (void *)SLOTS);
    explore_thread(looks_ids_up, (void *)SLOTS);
}

/* ----------------------------------------------------------------------------------------- fork */

/* Between preparation and end nothing changes, and everything is whole, so the child
 * gets a whole copy. */
static void forks(void *argument)
{
    uint64_t nodes, cursor;

    (void)argument;
    tables_fork_prepare();
    nodes = prudence_hash_count(table);
    cursor = load_relaxed(&hash_of(table)->cursor);
    for (unsigned look = 0; look < 2; look++) {
        explore_assert(count_nodes() == nodes);
        explore_assert(prudence_hash_count(table) == nodes);
        explore_assert(load_relaxed(&hash_of(table)->cursor) == cursor);
    }
    explore_assert(prudence_id_table_count(ids) == (prudence_id_table_lookup(ids, 10) ? 11 : 10));
    tables_fork_done();
    explore_note();
}

static void adds_to_both(void *argument)
{
    (void)argument;
    add(ITEMS + 1);
    inserts((void *)10);
}

CASE_THEN("tables-fork", fork_during_updates, none_is_lost, 1, 2)
{
    make_resized(VIEW_ORDER_SMALL, VIEW_ORDER_PAGE);
    make_ids(10);
    explore_thread(adds_to_both, NULL);
    explore_thread(forks, NULL);
}

/* -------------------------------------------------------------------------- removals from lists */

/* A thread that removes an element passes on the next one, which another thread has added:
 * readers reach it by the remover's store. */
static struct element {
    struct prudence_list link;
    struct prudence_hlist_node node;
    unsigned value; /* plain */
} elements[2];
static struct prudence_list list;
static struct prudence_hlist_head hlist;
static struct os_lock list_lock = OS_LOCK_INIT(OS_RANK_STRUCTURES);

static void make_list(void)
{
    prudence_list_init(&list);
    hlist.first = NULL;
    elements[0].value = MADE;
    elements[1].value = 0;
    prudence_list_add_tail_rcu(&elements[0].link, &list);
    prudence_hlist_add_head_rcu(&elements[0].node, &hlist);
}

static void adds_element(void *of_hlist)
{
    elements[1].value = MADE;
    os_lock_take(&list_lock);
    if (of_hlist)
        prudence_hlist_add_behind_rcu(&elements[1].node, &elements[0].node);
    else
        prudence_list_add_tail_rcu(&elements[1].link, &list);
    os_lock_release(&list_lock);
}

static void removes_first(void *of_hlist)
{
    os_lock_take(&list_lock);
    if (of_hlist)
        prudence_hlist_del_rcu(&elements[0].node);
    else
        prudence_list_del_rcu(&elements[0].link);
    os_lock_release(&list_lock);
}

static void looks_at_first(void *of_hlist)
{
    const struct element *element;

    if (of_hlist) {
        prudence_hlist_for_each_entry_rcu(element, &hlist, node)
        {
            explore_assert(element->value == MADE);
            if (element == &elements[1])
                explore_note();
            break;
        }
        return;
    }
    prudence_list_for_each_entry_rcu(element, &list, link)
    {
        explore_assert(element->value == MADE);
        if (element == &elements[1])
            explore_note();
        break;
    }
}

CASE("list-removal", list_removal, 3, 4)
{
    make_list();
    explore_thread(adds_element, NULL);
    explore_thread(removes_first, NULL);
    explore_thread(looks_at_first, NULL);
}

CASE("hlist-removal", hlist_removal, 3, 4)
{
    make_list();
    explore_thread(adds_element, &hlist);
    explore_thread(removes_first, &hlist);
    explore_thread(looks_at_first, &hlist);
}

/* -------------------------------------------------------------- the stack, and reference counts */

#define NODES 3

static struct message {
    struct prudence_stack_node node;
    unsigned value; /* plain */
    unsigned popped;
} messages[NODES];
static struct prudence_stack stack;
static bool deferral;

static struct message *pop(void)
{
    struct prudence_stack_node *node = prudence_stack_pop(&stack);

    return node ? prudence_stack_entry(node, struct message, node) : NULL;
}

static void pops_one(void *argument)
{
    struct message *message;

    (void)argument;
    enter();
    message = pop();
    if (message) {
        explore_assert(message->value == MADE);
        add_relaxed(&message->popped, 1);
    }
    leave();
}

static bool readers_have_left(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < EXPLORE_THREADS_MAX; i++)
        if (i != explore_self() && load_acquire(&inside[i]))
            return false;
    return true;
}

/* Pushes the first popped node again; with deferral, only if a grace period has passed since the
 * pop. */
static void pops_two(void *argument)
{
    struct message *first, *second;

    (void)argument;
    enter();
    first = pop();
    second = pop();
    leave();
    if (second)
        add_relaxed(&second->popped, 1);
    if (!first)
        return;
    if (deferral && !readers_have_left()) {
        add_relaxed(&first->popped, 1);
        return;
    }
    if (deferral) {
        first->value = 0;
        first->value = MADE;
        explore_note();
    }
    prudence_stack_push(&stack, &first->node);
}

static void make_stack(void)
{
    stack.top = NULL;
    for (unsigned i = 0; i < NODES; i++) {
        messages[i].value = MADE;
        messages[i].popped = 0;
        prudence_stack_push(&stack, &messages[i].node);
    }
    explore_thread(pops_one, NULL);
    explore_thread(pops_two, NULL);
}

CASE_THEN("stack", stack_with_deferral, each_is_once, 3, 4)
{
    deferral = true;
    make_stack();
}

CASE_THEN("breaks-stack-aba", stack_without, each_is_once, 3, 4)
{
    deferral = false;
    make_stack();
}

/* Checks that each node is on the stack, or was popped, once. */
static void each_is_once(void)
{
    struct message *message;
    unsigned nodes = 0;

    while ((message = pop())) {
        add_relaxed(&message->popped, 1);
        explore_assert(++nodes <= NODES);
    }
    for (unsigned i = 0; i < NODES; i++)
        explore_assert(messages[i].popped == 1);
}

static struct prudence_ref references;
static unsigned used[2]; /* plain */
static unsigned ends;

static void puts_reference(void *argument)
{
    used[(uintptr_t)argument] = MADE;
    if (prudence_ref_put(&references)) {
        explore_assert(used[0] == MADE && used[1] == MADE);
        ends++;
        explore_note();
    }
}

CASE_THEN("references", two_references, one_was_last, 3, 4)
{
    ends = 0;
    prudence_ref_init(&references, 2);
    explore_thread(puts_reference, (void *)0);
    explore_thread(puts_reference, (void *)1);
}

static void takes_reference(void *argument)
{
    (void)argument;
    if (prudence_ref_get_unless_zero(&references)) {
        explore_assert(ends == 0);
        explore_note();
        puts_reference((void *)1);
    }
}

/* Another thread puts a reference: a reader gets one, and is then the last, or gets none. */
CASE_THEN("reference-or-none", reference_or_none, one_was_last, 3, 4)
{
    ends = 0;
    used[1] = MADE;
    prudence_ref_init(&references, 1);
    explore_thread(puts_reference, (void *)0);
    explore_thread(takes_reference, NULL);
}

static void one_was_last(void)
{
    explore_assert(ends == 1 && prudence_ref_count(&references) == 0);
}
