/* SPDX-License-Identifier: MIT */
/* Ordered maps, beyond the contract of all tables (test_contract.c): objects and keys that are not
 * what they should be, the slots and nodes of keys that come and go. */
#include "support/map_invariants.h"
#include "support/updates.h"

static struct prudence_map_bytes twins[10];

/* ------------------------------------------------------------------------------------ arguments */

/* No map has a key of the other kind, and nothing is read from such a key's address. */
TEST(keys_of_the_other_kind_are_not_found)
{
    struct prudence_map_attr attr = {.size = sizeof attr, .flags = PRUDENCE_MAP_BYTES};
    struct prudence_map *numbers = prudence_map_create("test", NULL);
    struct prudence_map *strings = prudence_map_create("test", &attr);
    struct prudence_map_node number = {.key = 0};
    struct prudence_map_bytes name;
    struct prudence_map_walk walk;

    assert_int_equal(prudence_map_add(numbers, &number, NULL), 0);
    prudence_map_set_bytes(&name, "\0\0\0\0\0\0\0\0", 8);
    assert_int_equal(prudence_map_add(strings, &name.node, NULL), 0);
    assert_null(prudence_map_lookup(strings, 0));
    assert_null(prudence_map_ceiling(strings, 0));
    assert_null(prudence_map_floor(strings, UINT64_MAX));
    assert_null(prudence_map_first_from(&walk, strings, 0));
    assert_null(prudence_map_next(&walk));
    assert_int_equal(prudence_map_erase(strings, 0, NULL), EINVAL);
    assert_null(prudence_map_lookup_bytes(numbers, "\0\0\0\0\0\0\0\0", 8));
    assert_null(prudence_map_lookup_bytes(numbers, NULL, 1));
    assert_null(prudence_map_lookup_bytes(strings, NULL, 1));
    assert_null(prudence_map_ceiling_bytes(numbers, "", 0));
    assert_null(prudence_map_floor_bytes(numbers, "\377", 1));
    assert_null(prudence_map_first_from_bytes(&walk, numbers, "", 0));
    assert_int_equal(prudence_map_erase_bytes(numbers, "\0\0\0\0\0\0\0\0", 8, NULL), EINVAL);
    /* The empty string may lack an address; others need one. */
    prudence_map_set_bytes(&twins[0], NULL, 0);
    assert_int_equal(prudence_map_add(strings, &twins[0].node, NULL), 0);
    assert_ptr_equal(prudence_map_lookup_bytes(strings, NULL, 0), &twins[0].node);
    prudence_map_set_bytes(&twins[1], NULL, 1);
    assert_int_equal(prudence_map_add(strings, &twins[1].node, NULL), EINVAL);
    assert_ptr_equal(map_erase_bytes_found(strings, NULL, 0), &twins[0].node);
    assert_int_equal(prudence_map_remove(strings, &name.node), 0);
    assert_int_equal(prudence_map_remove(numbers, &number), 0);
    assert_int_equal(prudence_map_destroy(strings, NULL, NULL), 0);
    assert_int_equal(prudence_map_destroy(numbers, NULL, NULL), 0);
}

/* An object is known by its address, and goes only to the place of one with its key. */
TEST(other_objects_are_told_from_the_one_that_is_there)
{
    struct prudence_map *map = prudence_map_create("test", NULL);
    struct prudence_map_node there = {.key = 1}, twin = {.key = 1}, other = {.key = 2};

    assert_int_equal(prudence_map_add(map, &there, NULL), 0);
    assert_int_equal(prudence_map_remove(map, &twin), ENOENT);
    assert_int_equal(prudence_map_replace(map, &there, &other), EINVAL);
    assert_int_equal(prudence_map_replace(map, &twin, &other), EINVAL);
    assert_ptr_equal(prudence_map_lookup(map, 1), &there);
    assert_int_equal(prudence_map_remove(map, &there), 0);
    assert_int_equal(prudence_map_remove(map, &there), ENOENT);
    assert_int_equal(prudence_map_destroy(map, NULL, NULL), 0);
}

/* ----------------------------------------------------------------------------------- statistics */

TEST(nodes_are_counted_and_latent)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_map_attr attr = {.size = sizeof attr, .domain = domain};
    struct prudence_map *map = prudence_map_create("test", &attr);
    const size_t small = map->caches[0]->body->stride; /* 64, plus a sanitizer's addition */
    uint64_t empty = map_stats_of(map).bytes_live;

    assert_int_equal(map_stats_of(map).nodes, 0);
    for (unsigned i = 0; i < 5; i++) {
        twins[i].node.key = i;
        assert_int_equal(prudence_map_add(map, &twins[i].node, NULL), 0);
    }
    assert_int_equal(map_stats_of(map).objects, 5);
    assert_int_equal(map_stats_of(map).nodes, 1);
    assert_int_equal(map_stats_of(map).bytes_live, empty + 192);
    assert_int_equal(map_stats_of(map).replaced, 1);
    assert_int_equal(map_stats_of(map).bytes_latent, small);
    for (unsigned i = 0; i < 5; i++)
        assert_non_null(map_erase_found(map, i));
    assert_int_equal(map_stats_of(map).nodes, 0);
    assert_int_equal(map_stats_of(map).bytes_live, empty);
    assert_int_equal(map_stats_of(map).bytes_latent, 2 * small + map->caches[1]->body->stride);
    all_readers_leave(domain);
    assert_int_equal(map_stats_of(map).bytes_latent, 0);
    assert_int_equal(prudence_domain_destroy(domain), EBUSY);
    assert_int_equal(prudence_map_destroy(map, NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* The slots of a node are reused: the same few keys, coming and going, cost no memory. */
TEST(keys_that_come_again_find_their_slot)
{
    struct prudence_map *map = prudence_map_create("test", NULL);

    for (unsigned i = 0; i < 10; i++) {
        twins[i].node.key = i;
        assert_int_equal(prudence_map_add(map, &twins[i].node, NULL), 0);
    }
    for (unsigned round = 0; round < 1000; round++) {
        assert_ptr_equal(map_erase_found(map, round % 10), &twins[round % 10].node);
        assert_int_equal(prudence_map_add(map, &twins[round % 10].node, NULL), 0);
    }
    assert_int_equal(map_stats_of(map).replaced, 1);
    for (unsigned i = 0; i < 10; i++)
        prudence_map_erase(map, i, NULL);
    assert_int_equal(prudence_map_destroy(map, NULL, NULL), 0);
}

SUITE(pin_thread())
