/* SPDX-License-Identifier: MIT */
/*
 * Cases of the ordered map: a node that gets a link, and nodes that are replaced by a larger one, a
 * smaller one, one with a shorter or a longer prefix, during lookups and walks; two writers of one
 * node; fork during updates.
 */
#include "caches.h"
#include "explorer.h"
#include "os/os.h"
#include "tables/fork.h"
#include "tables/map.h"
#include "tables/writers.h"

/* ---------------------------------------------------------------------------- maps, and threads */

#define ITEMS 8
#define MADE  42

/* Objects have the numbers of their bytes, which are not 0, because 0 is the value of a slot
 * without a byte. */
static struct item {
    struct prudence_map_node node;
    unsigned value; /* plain: a thread that finds an item sees earlier writes to it */
} items[ITEMS];

static struct prudence_map *map;
static uint64_t key_of_item[ITEMS];
static unsigned staying; /* bit by bit: objects that no thread removes */

/* Puts the byte at the first place. */
static uint64_t at_first(uint64_t byte)
{
    return byte << 56;
}

/* Puts the byte at the third place, after two constant bytes. */
static uint64_t at_third(uint64_t byte)
{
    return UINT64_C(0x0107) << 48 | byte << 40;
}

static void add(unsigned number)
{
    struct item *item = &items[number];

    item->node.key = key_of_item[number];
    item->value = MADE;
    explore_assert(prudence_map_add(map, &item->node, NULL) == 0);
}

static void remove_item(unsigned number)
{
    struct prudence_map_node *node;

    explore_assert(prudence_map_erase(map, key_of_item[number], &node) == 0 &&
                   node == &items[number].node);
}

static struct item *find(unsigned number)
{
    struct prudence_map_node *node = prudence_map_lookup(map, key_of_item[number]);

    if (!node)
        return NULL;
    explore_assert(prudence_map_entry(node, struct item, node)->value == MADE);
    return prudence_map_entry(node, struct item, node);
}

/* Makes a map of objects 1 to `count`; those in `stay` stay. Callers mark themselves as inside
 * in words of their own, not by sections. */
static void make_map(uint64_t (*key_of)(uint64_t byte), unsigned count, unsigned stay)
{
    map = explore_alloc_aligned(sizeof *map + 2 * sizeof map->writers[0], CACHE_LINES_APART);
    map->writers_mask = 1;
    for (unsigned kind = 0; kind < MAP_KINDS; kind++)
        map->caches[kind] = explored_cache(map_node_bytes(kind));
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

/* Looks up the object that comes or goes, and all that stay. */
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

/* Searches for the highest object, which comes, and for the one below it, which stays. */
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

/* Checks that all objects are found and counted, and that `depth` nodes are on the way to the
 * lowest object. */
static void check_map(unsigned objects, unsigned depth)
{
    uintptr_t link = map->top.root;
    unsigned byte;

    explore_assert(prudence_map_count(map) == objects && walk_all() == objects);
    for (unsigned i = 1; i < ITEMS; i++)
        explore_assert(!(staying & 1u << i) || find(i) == &items[i]);
    for (; link && !map_is_object(link); depth--)
        link = map_node_only_link(map_inner(link), &byte);
    explore_assert(depth == 0);
}

static const unsigned one_two_three = 0xe, one_to_four = 0x1e;

/* ---------------------------------------------------------------------- a link more in its node */

CASE_THEN("map-addition-during-a-lookup", addition_during_a_lookup, four_in_one_node, 3, 4)
{
    make_map(at_first, 3, one_two_three);
    explore_thread(adds, (void *)4);
    explore_thread(looks_up, (void *)4);
}

CASE_THEN("map-addition-during-a-walk", addition_during_a_walk, four_in_one_node, 3, 4)
{
    make_map(at_first, 3, one_two_three);
    explore_thread(adds, (void *)4);
    explore_thread(walks, NULL);
    explore_note();
}

CASE_THEN("map-addition-during-a-search", addition_during_a_search, four_in_one_node, 3, 4)
{
    make_map(at_first, 3, one_two_three);
    explore_thread(adds, (void *)4);
    explore_thread(seeks, (void *)4);
}

static void four_in_one_node(void)
{
    check_map(4, 1);
}

/* The same with strings, whose first slots are read one by one. */
static struct {
    struct prudence_map_bytes node;
    unsigned value; /* plain, like that of an item */
} strings[3];

static void add_string(unsigned number)
{
    static const char *const texts[] = {"p", "pa", "pb"};

    prudence_map_set_bytes(&strings[number].node, texts[number], number ? 2 : 1);
    strings[number].value = MADE;
    explore_assert(prudence_map_add(map, &strings[number].node.node, NULL) == 0);
}

static void adds_string(void *number)
{
    enter();
    add_string((unsigned)(uintptr_t)number);
    leave();
}

static bool finds_string(const char *text, unsigned number)
{
    struct prudence_map_node *node = prudence_map_lookup_bytes(map, text, 2);

    explore_assert(!node || (node == &strings[number].node.node && strings[number].value == MADE));
    return node;
}

static void looks_up_strings(void *unused)
{
    (void)unused;
    enter();
    if (finds_string("pb", 2))
        explore_note();
    explore_assert(finds_string("pa", 1));
    leave();
}

CASE_THEN("map-string-during-a-lookup", string_during_a_lookup, three_strings, 3, 4)
{
    make_map(at_first, 0, 0);
    map->bytes = true;
    add_string(0);
    add_string(1);
    explore_thread(adds_string, (void *)2);
    explore_thread(looks_up_strings, NULL);
}

static void three_strings(void)
{
    explore_assert(prudence_map_count(map) == 3 && finds_string("pb", 2));
}

/* Replaces the root node by one of this kind. */
static void become(unsigned kind)
{
    struct map_node *old = map_inner(map->top.root),
                    *node = prudence_cache_alloc(map->caches[kind]);

    map_node_init(node, kind, old->prefix);
    map_node_copy_links(node, old);
    map->top.root = (uintptr_t)node;
}

CASE_THEN("map-addition-to-a-table", addition_to_a_table, four_in_one_node, 3, 4)
{
    make_map(at_first, 3, one_two_three);
    become(MAP_NINETY);
    explore_thread(adds, (void *)4);
    explore_thread(looks_up, (void *)4);
}

/* The slot of a removed object is filled again. */
static void make_with_a_free_slot(void)
{
    make_map(at_first, 4, one_two_three);
    remove_item(4);
}

CASE_THEN("map-filled-during-a-lookup", filled_during_a_lookup, four_in_one_node, 3, 4)
{
    make_with_a_free_slot();
    explore_thread(adds, (void *)4);
    explore_thread(looks_up, (void *)4);
}

CASE_THEN("map-filled-during-a-walk", filled_during_a_walk, four_in_one_node, 3, 4)
{
    make_with_a_free_slot();
    explore_thread(adds, (void *)4);
    explore_thread(walks, NULL);
    explore_note();
}

CASE_THEN("map-filled-during-a-search", filled_during_a_search, four_in_one_node, 3, 4)
{
    make_with_a_free_slot();
    explore_thread(adds, (void *)4);
    explore_thread(seeks, (void *)4);
}

/* Object 7 replaces 3, and has the same key. */
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

CASE_THEN("map-replaced-during-a-lookup", replaced_during_a_lookup, three_are_left, 3, 4)
{
    make_map(at_first, 3, 0x6);
    explore_thread(replaces, NULL);
    explore_thread(looks_for_either, NULL);
}

static void three_are_left(void)
{
    check_map(3, 1);
}

/* Makes a node for two objects. */
CASE_THEN("map-branch-during-a-lookup", branch_during_a_lookup, two_in_one_node, 3, 4)
{
    make_map(at_third, 1, 2);
    explore_thread(adds, (void *)2);
    explore_thread(looks_up, (void *)2);
}

static void two_in_one_node(void)
{
    check_map(2, 1);
}

/* -------------------------------------------------------------------- another node in its place */

CASE_THEN("map-larger-during-a-lookup", larger_during_a_lookup, five_in_one_node, 2, 4)
{
    make_map(at_first, 4, one_to_four);
    explore_thread(adds, (void *)5);
    explore_thread(looks_up, (void *)5);
}

CASE_THEN("map-larger-during-a-walk", larger_during_a_walk, five_in_one_node, 3, 4)
{
    make_map(at_first, 4, one_to_four);
    explore_thread(adds, (void *)5);
    explore_thread(walks, NULL);
}

static void five_in_one_node(void)
{
    check_map(5, 1);
}

/* Makes a node of eighteen slots with four links; three fit into four. */
static void make_large(void)
{
    make_map(at_first, 5, one_two_three);
    remove_item(5);
}

CASE_THEN("map-smaller-during-a-lookup", smaller_during_a_lookup, three_in_one_node, 2, 4)
{
    make_large();
    explore_thread(removes, (void *)4);
    explore_thread(looks_up, (void *)4);
}

CASE_THEN("map-smaller-during-a-walk", smaller_during_a_walk, three_in_one_node, 2, 4)
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

/* Makes a prefix of two bytes, which object 4, the highest, will cut. */
static void make_prefix(void)
{
    make_map(at_third, 2, 0x6);
    key_of_item[4] = UINT64_C(0x0109) << 48;
}

CASE_THEN("map-cut-during-a-lookup", cut_during_a_lookup, three_in_two_nodes, 3, 4)
{
    make_prefix();
    explore_thread(adds, (void *)4);
    explore_thread(looks_up, (void *)4);
}

CASE_THEN("map-cut-during-a-walk", cut_during_a_walk, three_in_two_nodes, 3, 4)
{
    make_prefix();
    explore_thread(adds, (void *)4);
    explore_thread(walks, NULL);
}

static void three_in_two_nodes(void)
{
    check_map(3, 2);
}

/* The prefix is joined again when that object goes. */
CASE_THEN("map-joined-during-a-lookup", joined_during_a_lookup, two_in_one_node, 3, 4)
{
    make_prefix();
    add(4);
    explore_thread(removes, (void *)4);
    explore_thread(looks_up, (void *)4);
}

CASE_THEN("map-joined-during-a-walk", joined_during_a_walk, two_in_one_node, 3, 4)
{
    make_prefix();
    add(4);
    explore_thread(removes, (void *)4);
    explore_thread(walks, NULL);
}

/* ---------------------------------------------------------------------------------- two writers */

CASE_THEN("map-larger-during-a-removal", larger_during_a_removal, four_in_one_node, 2, 4)
{
    make_map(at_first, 4, one_two_three);
    explore_thread(adds, (void *)5);
    explore_thread(removes, (void *)4);
}

/* Both want the last slot. */
CASE_THEN("map-two-additions", two_additions, five_in_one_node, 2, 4)
{
    make_map(at_first, 3, one_two_three);
    explore_thread(adds, (void *)4);
    explore_thread(adds, (void *)5);
}

/* A node loses both of its objects, and goes; the node above has another one. */
CASE_THEN("map-two-removals", two_removals, only_the_last_is_left, 2, 3)
{
    make_prefix();
    add(4);
    staying = 1u << 4;
    explore_thread(removes, (void *)1);
    explore_thread(removes, (void *)2);
}

/* The other thread makes a node for its own object and the one that goes. */
CASE_THEN("map-removal-during-an-addition", removal_during_an_addition, two_in_one_node, 2, 4)
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

/* ----------------------------------------------------------------------------------------- fork */

/* Between preparation and end nothing changes, and everything is whole, so the child
 * gets a whole copy. */
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

CASE_THEN("map-fork", fork_during_an_addition, five_in_one_node, 2, 4)
{
    make_map(at_first, 4, one_to_four);
    list_append(&ordered_maps, &map->link);
    explore_thread(adds, (void *)5);
    explore_thread(forks, NULL);
}
