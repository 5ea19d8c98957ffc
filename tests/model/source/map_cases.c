/* SPDX-License-Identifier: MIT */
/*
 * Cases of the ordered map: a node that gets a link, and nodes that are replaced by a larger one, a smaller one, one with a shorter
 * or a longer prefix, beside lookups and walks; two writers of one node; fork beside updates. And of the hash table of values, whose entries
 * are of the same memory: values that are put, exchanged and erased, beside lookups.
 *
 * In the place of slab caches: memory from the explorer. A node that is deferred is freed if no thread is inside, which
 * the cases' threads say in words of their own.
 */
#include "explorer.h"
#include "os/os.h"
#include "structures/fork.h"
#include "structures/hash_values.h"
#include "structures/map.h"
#include "structures/writers.h"

/* ------------------------------------------------------------------------------- what stands below */

static uint64_t inside[EXPLORE_THREADS_MAX];

static void enter(void)
{
    __atomic_store_n(&inside[explore_self()], 1, __ATOMIC_SEQ_CST);
}

static void leave(void)
{
    store_release(&inside[explore_self()], 0u);
}

/* A cache is known by its kind of nodes. */
static struct prudence_cache *cache_of(unsigned kind)
{
    return (struct prudence_cache *)(uintptr_t)(kind + 1);
}

void *prudence_cache_alloc(struct prudence_cache *cache)
{
    return explore_alloc_aligned(map_node_bytes((unsigned)(uintptr_t)cache - 1), CACHE_LINE);
}

void prudence_cache_free(struct prudence_cache *cache, void *object)
{
    explore_free(object, map_node_bytes((unsigned)(uintptr_t)cache - 1));
}

void prudence_cache_free_deferred(struct prudence_cache *cache, void *object)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < EXPLORE_THREADS_MAX; i++)
        if (i != explore_self() && load_acquire(&inside[i]))
            return;
    prudence_cache_free(cache, object);
    explore_note();
}

/* ------------------------------------------------------------------------------------- maps, and threads */

#define ITEMS 8
#define MADE  42

/* Objects have the numbers of their bytes, which are not 0: that is what a slot has before it has its byte. */
static struct item {
    struct prudence_map_node node;
    unsigned value; /* plain: a thread that finds an item sees what was written before */
} items[ITEMS];

static struct prudence_map *map;
static uint64_t key_of_item[ITEMS];
static unsigned staying; /* bit by bit: those that no thread removes */

/* The byte at the first place. */
static uint64_t at_first(uint64_t byte)
{
    return byte << 56;
}

/* The byte at the third place, behind two that all of these have. */
static uint64_t at_third(uint64_t byte)
{
    return UINT64_C(0x0107) << 48 | byte << 40;
}

static void add(unsigned number)
{
    struct item *item = &items[number];

    item->node.key = key_of_item[number];
    item->value = MADE;
    explore_assert(prudence_map_add_unique(map, &item->node, NULL) == 0);
}

static void remove_item(unsigned number)
{
    explore_assert(prudence_map_remove(map, key_of_item[number]) == &items[number].node);
}

static struct item *find(unsigned number)
{
    struct prudence_map_node *node = prudence_map_lookup(map, key_of_item[number]);

    if (!node)
        return NULL;
    explore_assert(prudence_map_entry(node, struct item, node)->value == MADE);
    return prudence_map_entry(node, struct item, node);
}

/* With objects 1 to `count`, of which those in `stay` stay. Callers are inside in words of their own, not in sections. */
static void make_map(uint64_t (*key_of)(uint64_t byte), unsigned count, unsigned stay)
{
    map = explore_alloc_aligned(sizeof *map + 2 * sizeof map->writers[0], CACHE_LINES_APART);
    map->writers_mask = 1;
    for (unsigned kind = 0; kind < MAP_KINDS; kind++)
        map->caches[kind] = cache_of(kind);
    staying = stay;
    for (unsigned i = 1; i < ITEMS; i++)
        key_of_item[i] = key_of(i);
    for (unsigned i = 1; i <= count; i++)
        add(i);
}

static void adds(void *number)
{
    enter();
    add((unsigned)(uintptr_t)number);
    leave();
}

static void removes(void *number)
{
    enter();
    remove_item((unsigned)(uintptr_t)number);
    leave();
}

/* The object that comes or goes, and all that stay. */
static void looks_up(void *number)
{
    enter();
    if (find((unsigned)(uintptr_t)number))
        explore_note();
    for (unsigned i = 1; i < ITEMS; i++)
        if (staying & 1u << i && find(i) != &items[i])
            explore_fail("object %u is not found", i);
    leave();
}

static unsigned walk_all(void)
{
    struct prudence_map_walk walk;
    struct prudence_map_node *node;
    uint64_t last = 0;
    unsigned seen = 0, count = 0;

    prudence_map_for_each(&walk, map, node)
    {
        struct item *item = prudence_map_entry(node, struct item, node);

        explore_assert(node->key > last && item->value == MADE);
        last = node->key;
        seen |= 1u << (item - items);
        count++;
    }
    explore_assert((seen & staying) == staying);
    return count;
}

static void walks(void *unused)
{
    (void)unused;
    enter();
    walk_all();
    leave();
}

/* The highest object, which comes, and the one below it, which stays. */
static void seeks(void *number)
{
    uint64_t key = key_of_item[(uintptr_t)number], below = key_of_item[(uintptr_t)number - 1];
    struct prudence_map_node *node;

    enter();
    node = prudence_map_ceiling(map, key - 1);
    if (node) {
        explore_assert(node->key == key &&
                       prudence_map_entry(node, struct item, node)->value == MADE);
        explore_note();
    }
    node = prudence_map_floor(map, key + 1);
    explore_assert(node && (node->key == below || node->key == key) &&
                   prudence_map_entry(node, struct item, node)->value == MADE);
    leave();
}

/* What is there is found, and counted; so many nodes are on the way to the lowest object. */
static void check_map(unsigned objects, unsigned depth)
{
    uintptr_t link = map->top.root;
    unsigned byte;

    explore_assert(prudence_map_count(map) == objects && walk_all() == objects);
    for (unsigned i = 1; i < ITEMS; i++)
        explore_assert(!(staying & 1u << i) || find(i) == &items[i]);
    for (; link && !map_is_object(link); depth--)
        link = map_only_link(map_inner(link), &byte);
    explore_assert(depth == 0);
}

static const unsigned one_two_three = 0xe, one_to_four = 0x1e;

/* -------------------------------------------------------------------------- a link more in its node */

static void addition_beside_a_lookup(void)
{
    make_map(at_first, 3, one_two_three);
    explore_thread(adds, (void *)4);
    explore_thread(looks_up, (void *)4);
}

static void addition_beside_a_walk(void)
{
    make_map(at_first, 3, one_two_three);
    explore_thread(adds, (void *)4);
    explore_thread(walks, NULL);
    explore_note();
}

static void addition_beside_a_search(void)
{
    make_map(at_first, 3, one_two_three);
    explore_thread(adds, (void *)4);
    explore_thread(seeks, (void *)4);
}

static void four_in_one_node(void)
{
    check_map(4, 1);
}

/* The root node as one of this kind. */
static void become(unsigned kind)
{
    struct map_node *old = map_inner(map->top.root), *node = prudence_cache_alloc(cache_of(kind));

    map_node_init(node, kind, old->prefix);
    map_copy_links(node, old);
    map->top.root = (uintptr_t)node;
}

static void addition_to_a_table(void)
{
    make_map(at_first, 3, one_two_three);
    become(MAP_NINETY);
    explore_thread(adds, (void *)4);
    explore_thread(looks_up, (void *)4);
}

/* The slot of an object that went is filled again. */
static void make_with_a_free_slot(void)
{
    make_map(at_first, 4, one_two_three);
    remove_item(4);
}

static void filled_beside_a_lookup(void)
{
    make_with_a_free_slot();
    explore_thread(adds, (void *)4);
    explore_thread(looks_up, (void *)4);
}

static void filled_beside_a_walk(void)
{
    make_with_a_free_slot();
    explore_thread(adds, (void *)4);
    explore_thread(walks, NULL);
    explore_note();
}

static void filled_beside_a_search(void)
{
    make_with_a_free_slot();
    explore_thread(adds, (void *)4);
    explore_thread(seeks, (void *)4);
}

/* Object 7 takes the place of 3, whose key it has. */
static void replaces(void *unused)
{
    (void)unused;
    enter();
    items[7].node.key = items[3].node.key;
    items[7].value = MADE;
    explore_assert(prudence_map_replace(map, &items[3].node, &items[7].node) == 0);
    leave();
}

static void looks_for_either(void *unused)
{
    struct item *item;

    (void)unused;
    enter();
    item = find(3);
    explore_assert(item == &items[3] || item == &items[7]);
    if (item == &items[7])
        explore_note();
    leave();
}

static void replaced_beside_a_lookup(void)
{
    make_map(at_first, 3, 0x6);
    explore_thread(replaces, NULL);
    explore_thread(looks_for_either, NULL);
}

static void three_are_left(void)
{
    check_map(3, 1);
}

/* A node for an object and another. */
static void branch_beside_a_lookup(void)
{
    make_map(at_third, 1, 2);
    explore_thread(adds, (void *)2);
    explore_thread(looks_up, (void *)2);
}

static void two_in_one_node(void)
{
    check_map(2, 1);
}

/* ---------------------------------------------------------------------- another node in its place */

static void larger_beside_a_lookup(void)
{
    make_map(at_first, 4, one_to_four);
    explore_thread(adds, (void *)5);
    explore_thread(looks_up, (void *)5);
}

static void larger_beside_a_walk(void)
{
    make_map(at_first, 4, one_to_four);
    explore_thread(adds, (void *)5);
    explore_thread(walks, NULL);
}

static void five_in_one_node(void)
{
    check_map(5, 1);
}

/* Of eighteen slots, with four links; three fit into four. */
static void make_large(void)
{
    make_map(at_first, 5, one_two_three);
    remove_item(5);
}

static void smaller_beside_a_lookup(void)
{
    make_large();
    explore_thread(removes, (void *)4);
    explore_thread(looks_up, (void *)4);
}

static void smaller_beside_a_walk(void)
{
    make_large();
    explore_thread(removes, (void *)4);
    explore_thread(walks, NULL);
}

static void three_in_one_node(void)
{
    check_map(3, 1);
    explore_assert(map_inner(map->top.root)->kind == MAP_FOUR);
}

/* A prefix of two bytes is cut; the object that cuts it is 4, and is the highest. */
static void make_prefix(void)
{
    make_map(at_third, 2, 0x6);
    key_of_item[4] = UINT64_C(0x0109) << 48;
}

static void cut_beside_a_lookup(void)
{
    make_prefix();
    explore_thread(adds, (void *)4);
    explore_thread(looks_up, (void *)4);
}

static void cut_beside_a_walk(void)
{
    make_prefix();
    explore_thread(adds, (void *)4);
    explore_thread(walks, NULL);
}

static void three_in_two_nodes(void)
{
    check_map(3, 2);
}

/* And joined again, when that object goes. */
static void joined_beside_a_lookup(void)
{
    make_prefix();
    add(4);
    explore_thread(removes, (void *)4);
    explore_thread(looks_up, (void *)4);
}

static void joined_beside_a_walk(void)
{
    make_prefix();
    add(4);
    explore_thread(removes, (void *)4);
    explore_thread(walks, NULL);
}

/* --------------------------------------------------------------------------------------- two writers */

static void larger_beside_a_removal(void)
{
    make_map(at_first, 4, one_two_three);
    explore_thread(adds, (void *)5);
    explore_thread(removes, (void *)4);
}

/* Both have the last slot in mind. */
static void two_additions(void)
{
    make_map(at_first, 3, one_two_three);
    explore_thread(adds, (void *)4);
    explore_thread(adds, (void *)5);
}

/* A node loses both of its objects, and goes; the one above has another. */
static void two_removals(void)
{
    make_prefix();
    add(4);
    staying = 1u << 4;
    explore_thread(removes, (void *)1);
    explore_thread(removes, (void *)2);
}

/* The other thread makes a node for its object and for the one that goes. */
static void removal_beside_an_addition(void)
{
    make_prefix();
    add(4);
    remove_item(2);
    staying = 1u << 4;
    explore_thread(removes, (void *)1);
    explore_thread(adds, (void *)2);
}

static void only_the_last_is_left(void)
{
    check_map(1, 0);
}

/* ------------------------------------------------------------------------------ values in a hash table */

#define KEY 7

static struct prudence_hash_values *values;
static void *left[EXPLORE_THREADS_MAX]; /* by thread: what its update took out */

/* Without sections: the cases' threads are inside in words of their own. */
static void make_values(void)
{
    values = explore_alloc_aligned(sizeof *values, CACHE_LINES_APART);
    values->table = hash_of(prudence_hash_create("explored", NULL));
    values->entries.classes = 1;
    values->entries.caches[0] = cache_of(0);
    for (unsigned i = 0; i < EXPLORE_THREADS_MAX; i++)
        left[i] = NULL;
    items[0].value = MADE;
    explore_assert(!prudence_hash_values_put(values, KEY, &items[0], NULL));
}

static struct item *made_item(void *number)
{
    struct item *item = &items[(uintptr_t)number];

    item->value = MADE;
    return item;
}

static void puts_value(void *number)
{
    explore_assert(
        !prudence_hash_values_put(values, KEY, made_item(number), &left[explore_self()]));
}

static void exchanges_value(void *number)
{
    if (!prudence_hash_values_exchange(values, KEY, &items[0], made_item(number)))
        left[explore_self()] = &items[0];
}

static void erases_value(void *unused)
{
    (void)unused;
    left[explore_self()] = prudence_hash_values_erase(values, KEY);
}

/* A value that is always there; or that may be gone. */
static void gets_value(void *may_be_gone)
{
    const struct item *item;

    enter();
    item = prudence_hash_values_get(values, KEY);
    explore_assert(item ? item->value == MADE : may_be_gone != NULL);
    if (item != &items[0])
        explore_note();
    leave();
}

static void values_put(void)
{
    make_values();
    explore_thread(puts_value, (void *)1);
    explore_thread(gets_value, NULL);
}

static void values_erased(void)
{
    make_values();
    explore_thread(erases_value, NULL);
    explore_thread(gets_value, (void *)1);
}

static void values_put_and_exchanged(void)
{
    make_values();
    explore_thread(puts_value, (void *)1);
    explore_thread(exchanges_value, (void *)2);
}

static void values_put_and_erased(void)
{
    make_values();
    explore_thread(puts_value, (void *)1);
    explore_thread(erases_value, NULL);
}

/* Each value that was put was taken out by one thread, or is there. */
static void no_value_is_lost(void)
{
    const void *there = prudence_hash_values_get(values, KEY);

    for (unsigned i = 0; i < 3; i++) {
        unsigned seen = there == &items[i];

        for (unsigned thread = 0; thread < EXPLORE_THREADS_MAX; thread++)
            seen += left[thread] == &items[i];
        explore_assert(seen <= 1 && (i > 0 || seen == 1));
    }
    explore_assert(prudence_hash_values_count(values) == (there != NULL));
    if (there != &items[0])
        explore_note();
}

/* ---------------------------------------------------------------------------------------------- fork */

/* Between its preparation and its end nothing changes, and all is whole: the child has that. */
static void forks(void *unused)
{
    uint64_t objects;

    (void)unused;
    tables_fork_prepare();
    enter();
    objects = prudence_map_count(map);
    explore_assert(walk_all() == objects);
    explore_assert(prudence_map_count(map) == objects && walk_all() == objects);
    leave();
    tables_fork_done();
    explore_note();
}

static void fork_beside_an_addition(void)
{
    make_map(at_first, 4, one_to_four);
    list_append(&ordered_maps, &map->link);
    explore_thread(adds, (void *)5);
    explore_thread(forks, NULL);
}

const struct explore_case map_cases[] = {
    {"map-addition-beside-a-lookup", addition_beside_a_lookup, four_in_one_node, 3, 4},
    {"map-addition-beside-a-walk", addition_beside_a_walk, four_in_one_node, 3, 4},
    {"map-addition-beside-a-search", addition_beside_a_search, four_in_one_node, 3, 4},
    {"map-addition-to-a-table", addition_to_a_table, four_in_one_node, 3, 4},
    {"map-filled-beside-a-lookup", filled_beside_a_lookup, four_in_one_node, 3, 4},
    {"map-filled-beside-a-walk", filled_beside_a_walk, four_in_one_node, 3, 4},
    {"map-filled-beside-a-search", filled_beside_a_search, four_in_one_node, 3, 4},
    {"map-replaced-beside-a-lookup", replaced_beside_a_lookup, three_are_left, 3, 4},
    {"map-branch-beside-a-lookup", branch_beside_a_lookup, two_in_one_node, 3, 4},
    {"map-larger-beside-a-lookup", larger_beside_a_lookup, five_in_one_node, 3, 4},
    {"map-larger-beside-a-walk", larger_beside_a_walk, five_in_one_node, 3, 4},
    {"map-smaller-beside-a-lookup", smaller_beside_a_lookup, three_in_one_node, 3, 4},
    {"map-smaller-beside-a-walk", smaller_beside_a_walk, three_in_one_node, 3, 4},
    {"map-cut-beside-a-lookup", cut_beside_a_lookup, three_in_two_nodes, 3, 4},
    {"map-cut-beside-a-walk", cut_beside_a_walk, three_in_two_nodes, 3, 4},
    {"map-joined-beside-a-lookup", joined_beside_a_lookup, two_in_one_node, 3, 4},
    {"map-joined-beside-a-walk", joined_beside_a_walk, two_in_one_node, 3, 4},
    {"map-larger-beside-a-removal", larger_beside_a_removal, four_in_one_node, 3, 4},
    {"map-two-additions", two_additions, five_in_one_node, 3, 4},
    {"map-two-removals", two_removals, only_the_last_is_left, 2, 3},
    {"map-removal-beside-an-addition", removal_beside_an_addition, two_in_one_node, 3, 4},
    {"map-fork", fork_beside_an_addition, five_in_one_node, 3, 4},
    {"values-put", values_put, no_value_is_lost, 3, 4},
    {"values-erased", values_erased, no_value_is_lost, 3, 4},
    {"values-put-and-exchanged", values_put_and_exchanged, no_value_is_lost, 3, 4},
    {"values-put-and-erased", values_put_and_erased, no_value_is_lost, 3, 4},
    {NULL, NULL, NULL, 0, 0},
};
