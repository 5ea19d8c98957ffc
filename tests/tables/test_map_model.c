/* SPDX-License-Identifier: MIT */
/*
 * Random operations on an ordered map and on a model, an array with the object of each key in the
 * order of keys: after each one the map answers as the model does. Uses keys of both kinds, among
 * them 0, 2^64 - 1, the empty string, strings that begin others, and long common beginnings.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "support/map_test.h"
#include "support/test_seed.h"

#define OPERATIONS 60000
#define ITEMS      6000

static struct item items[ITEMS], **model; /* the object of each key; NULL: none */
static struct prudence_map *map;
static uint64_t random_state;
static unsigned count;

static unsigned below(unsigned bound)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)((random_state >> 33) % bound);
}

static struct item *unused_item(unsigned index)
{
    struct item *item = &items[below(ITEMS)];

    while (model[item->index] == item)
        item = &items[(unsigned)(item - items + 1) % ITEMS];
    set_key(item, index);
    return item;
}

static struct item *nearest(unsigned index, int step)
{
    while (index < map_key_count && !model[index])
        index += (unsigned)step;
    return index < map_key_count ? model[index] : NULL;
}

/* ----------------------------------------------------------------------------------- operations */

static void add_unique(unsigned index)
{
    struct item *item = unused_item(index);
    struct prudence_map_node *there = NULL;
    int error = prudence_map_add(map, &item->node.node, &there);

    assert_int_equal(error, model[index] ? EEXIST : 0);
    assert_ptr_equal(item_of(there), error ? model[index] : NULL);
    if (error)
        return;
    model[index] = item;
    count++;
}

static void add_replace(unsigned index)
{
    struct item *item = unused_item(index);
    struct prudence_map_node *replaced;

    assert_int_equal(prudence_map_put(map, &item->node.node, &replaced), 0);
    assert_ptr_equal(item_of(replaced), model[index]);
    count += !model[index];
    model[index] = item;
}

static void replace(unsigned index)
{
    struct item *item = unused_item(index), *old = model[index], *other;

    if (!old) {
        other = &(struct item){.node = item->node}; /* with the same key */
        assert_int_equal(prudence_map_replace(map, &other->node.node, &item->node.node), ENOENT);
        assert_int_equal(prudence_map_replace(map, &item->node.node, &item->node.node), EINVAL);
        return;
    }
    assert_int_equal(prudence_map_replace(map, &old->node.node, &item->node.node), 0);
    model[index] = item;
    assert_int_equal(prudence_map_replace(map, &old->node.node, &item->node.node), ENOENT);
    other = unused_item((index + 1) % map_key_count);
    assert_int_equal(prudence_map_replace(map, &item->node.node, &other->node.node), EINVAL);
}

static void take_away(unsigned index, bool by_node)
{
    struct item *old = model[index], *other;

    if (old && by_node) {
        other = unused_item(index);
        assert_int_equal(prudence_map_remove(map, &other->node.node), ENOENT);
        assert_int_equal(prudence_map_remove(map, &old->node.node), 0);
        assert_int_equal(prudence_map_remove(map, &old->node.node), ENOENT);
    } else {
        assert_ptr_equal(remove_index(map, index), old);
    }
    count -= old != NULL;
    model[index] = NULL;
}

/* --------------------------------------------------------------------------------------- checks */

static void check_key(unsigned index)
{
    struct prudence_map_walk walk;
    struct item probe, *first = nearest(index, 1);

    assert_ptr_equal(first_from(&walk, map, index), first);
    assert_ptr_equal(item_of(prudence_map_next(&walk)),
                     first ? nearest(first->index + 1, 1) : NULL);
    set_key(&probe, index);
    assert_ptr_equal(look_up(map, index), model[index]);
    assert_ptr_equal(ceiling_of(map, index), nearest(index, 1));
    assert_ptr_equal(floor_of(map, index), nearest(index, -1));
    assert_ptr_equal(item_of(prudence_map_after(map, &probe.node.node)), nearest(index + 1, 1));
    assert_ptr_equal(item_of(prudence_map_before(map, &probe.node.node)), nearest(index - 1, -1));
}

static void check_walk(struct item *found, struct prudence_map_walk *walk, unsigned from)
{
    for (unsigned i = from; i < map_key_count; i++) {
        if (!model[i])
            continue;
        assert_ptr_equal(found, model[i]);
        found = item_of(prudence_map_next(walk));
    }
    assert_null(found);
    assert_null(prudence_map_next(walk));
}

static void check_all(void)
{
    struct prudence_map_walk walk;
    unsigned from = below(map_key_count);

    check_walk(item_of(prudence_map_first(&walk, map)), &walk, 0);
    check_walk(first_from(&walk, map, from), &walk, from);
    assert_ptr_equal(item_of(prudence_map_lowest(map)), nearest(0, 1));
    assert_ptr_equal(item_of(prudence_map_highest(map)), nearest(map_key_count - 1, -1));
    assert_int_equal(prudence_map_count(map), count);
    check_map(map, true);
}

static void operate(unsigned step)
{
    /* The map fills and empties several times; in between, a run of steps uses only a few
     * adjacent keys. */
    unsigned index = step % 9000 < 2000 ? step / 9000 * 97 + below(60) : below(map_key_count);
    unsigned what = below(100), more = step % 12000 < 7000 ? 60 : 15;

    index %= map_key_count;
    if (what < more)
        (what % 2 ? add_unique : add_replace)(index);
    else if (what < more + 5)
        replace(index);
    else
        take_away(index, what % 2);
    check_key(index);
    check_key(below(map_key_count));
    if (step % 499 == 0)
        check_all();
}

static void run(void)
{
    struct prudence_domain *domain = manual_domain();

    random_state = 4711 + test_seed(0);
    count = 0;
    memset(items, 0, sizeof items);
    model = calloc(map_key_count, sizeof model[0]);
    map = map_of_domain(domain);
    for (unsigned step = 0; step < OPERATIONS; step++) {
        operate(step);
        if (step % 100 == 0)
            prudence_manual_advance(domain);
    }
    for (unsigned i = 0; i < map_key_count; i++)
        take_away(i, i % 2);
    check_all();
    assert_int_equal(map_stats_of(map).nodes, 0);
    all_readers_leave(domain);
    assert_int_equal(prudence_map_destroy(map, NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
    free(model);
}

TEST(numbers)
{
    make_numbers();
    run();
}

TEST(strings)
{
    make_strings();
    run();
}

SUITE()
