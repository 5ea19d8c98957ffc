/* SPDX-License-Identifier: MIT */
/* Creation and destruction of ordered maps, bad arguments, statistics, latent nodes and their
 * limit, forks, threads that end. */
#include "support/map_test.h"
#include "support/threads.h"

#include <unistd.h>

#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"

#define ITEMS 20000

static struct item items[ITEMS], twins[ITEMS];

/* Returns keys far from each other, in the order of their index. */
static uint64_t key_of(unsigned index)
{
    return (uint64_t)index << 40 | (index * 7919u) % 1000;
}

static void add_items(struct prudence_map *map, unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++) {
        items[i].node.node.key = key_of(i);
        assert_int_equal(prudence_map_add(map, &items[i].node.node, NULL), 0);
    }
}

static void remove_items(struct prudence_map *map, unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++)
        assert_ptr_equal(item_of(map_erase_found(map, key_of(i))), &items[i]);
}

static void expect_items(struct prudence_map *map, unsigned first, unsigned end)
{
    for (unsigned i = 0; i < ITEMS; i++)
        assert_ptr_equal(item_of(prudence_map_lookup(map, key_of(i))),
                         i >= first && i < end ? &items[i] : NULL);
}

/* ------------------------------------------------------------------------------------ arguments */

TEST(bad_arguments_are_refused)
{
    struct prudence_map *map = prudence_map_create("test", NULL);
    struct prudence_map_node *node = &items[0].node.node, *there = NULL;

    assert_int_equal(prudence_map_add(NULL, node, &there), EINVAL);
    assert_int_equal(prudence_map_add(map, NULL, &there), EINVAL);
    assert_int_equal(prudence_map_put(NULL, node, &there), EINVAL);
    assert_int_equal(prudence_map_put(map, NULL, &there), EINVAL);
    assert_int_equal(prudence_map_replace(map, NULL, node), EINVAL);
    assert_int_equal(prudence_map_replace(map, node, NULL), EINVAL);
    assert_int_equal(prudence_map_replace(NULL, node, node), EINVAL);
    assert_int_equal(prudence_map_remove(map, NULL), EINVAL);
    assert_int_equal(prudence_map_remove(NULL, node), EINVAL);
    assert_int_equal(prudence_map_erase(NULL, 1, &there), EINVAL);
    assert_int_equal(prudence_map_stats(map, (struct prudence_map_stats *)NULL), EINVAL);
    assert_null(there);
    assert_int_equal(prudence_map_count(map), 0);
    assert_int_equal(prudence_map_destroy(map, NULL, NULL), 0);
}

/* No map has a key of the other kind, and nothing is read from such a key's address. */
TEST(keys_of_the_other_kind_are_not_found)
{
    struct prudence_map_attr attr = {.size = sizeof attr, .flags = PRUDENCE_MAP_BYTES};
    struct prudence_map *numbers = prudence_map_create("test", NULL);
    struct prudence_map *strings = prudence_map_create("test", &attr);
    struct prudence_map_bytes name;
    struct prudence_map_walk walk;

    add_items(numbers, 0, 1);
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
    prudence_map_set_bytes(&twins[0].node, NULL, 0);
    assert_int_equal(prudence_map_add(strings, &twins[0].node.node, NULL), 0);
    assert_ptr_equal(prudence_map_lookup_bytes(strings, NULL, 0), &twins[0].node.node);
    prudence_map_set_bytes(&twins[1].node, NULL, 1);
    assert_int_equal(prudence_map_add(strings, &twins[1].node.node, NULL), EINVAL);
    assert_ptr_equal(map_erase_bytes_found(strings, NULL, 0), &twins[0].node.node);
    assert_int_equal(prudence_map_remove(strings, &name.node), 0);
    remove_items(numbers, 0, 1);
    assert_int_equal(prudence_map_destroy(strings, NULL, NULL), 0);
    assert_int_equal(prudence_map_destroy(numbers, NULL, NULL), 0);
}

/* ----------------------------------------------------------------------------------- destroying */

static unsigned disposed;

/* Checks that objects come in the order of keys, once each, and that a disposed object is not
 * touched again. */
static void dispose(struct prudence_map_node *object, void *argument)
{
    assert_ptr_equal(item_of(object), &items[disposed]);
    assert_ptr_equal(argument, &disposed);
    memset(object, 0xab, sizeof items[0]);
    disposed++;
}

TEST(a_map_is_destroyed_with_what_is_in_it)
{
    static const unsigned counts[] = {0, 1, 2, 5, 100, ITEMS};

    for (unsigned i = 0; i < 6; i++) {
        struct prudence_map *map = prudence_map_create("test", NULL);

        add_items(map, 0, counts[i]);
        assert_int_equal(prudence_map_destroy(map, NULL, NULL), counts[i] ? EBUSY : 0);
        if (!counts[i])
            continue;
        prudence_read_lock();
        assert_int_equal(prudence_map_destroy(map, dispose, &disposed), EDEADLK);
        prudence_read_unlock();
        expect_items(map, 0, counts[i]);
        disposed = 0;
        assert_int_equal(prudence_map_destroy(map, dispose, &disposed), 0);
        assert_int_equal(disposed, counts[i]);
    }
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
        twins[i].node.node.key = i;
        assert_int_equal(prudence_map_add(map, &twins[i].node.node, NULL), 0);
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
        twins[i].node.node.key = i;
        assert_int_equal(prudence_map_add(map, &twins[i].node.node, NULL), 0);
    }
    for (unsigned round = 0; round < 1000; round++) {
        assert_ptr_equal(map_erase_found(map, round % 10), &twins[round % 10].node.node);
        assert_int_equal(prudence_map_add(map, &twins[round % 10].node.node, NULL), 0);
    }
    assert_int_equal(map_stats_of(map).replaced, 1);
    for (unsigned i = 0; i < 10; i++)
        prudence_map_erase(map, i, NULL);
    assert_int_equal(prudence_map_destroy(map, NULL, NULL), 0);
}

#define LIMIT ((size_t)1 << 20)

/*
 * A reader stays for ever during an update storm. Until an update has waited in vain, latent bytes
 * stay below the limit. They come close to it, so it was the limit that stopped the updates.
 */
TEST(a_storm_beside_a_reader_stays_below_the_limit)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_map_attr attr = {.size = sizeof attr, .domain = domain};
    struct prudence_map *map = prudence_map_create("test", &attr);
    uint64_t before = load_relaxed(&wait_counts.expiries), most = 0;

    assert_int_equal(prudence_option_set("latent_limit", "1M"), 0);
    for (unsigned i = 0; load_relaxed(&wait_counts.expiries) == before; i++) {
        most = max_size(most, map_stats_of(map).bytes_latent);
        assert_true(most <= LIMIT && i < 100000);
        add_items(map, 0, 40);
        remove_items(map, 0, 40);
    }
    assert_true(most > LIMIT / 2);
    assert_int_equal(prudence_option_set("latent_limit", "0"), 0);
    all_readers_leave(domain);
    assert_int_equal(prudence_map_destroy(map, NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* ------------------------------------------------------------------------- domains of all kinds */

TEST(updates_in_each_kind_of_domain)
{
    static const enum prudence_domain_kind kinds[] = {PRUDENCE_DOMAIN_MEMB, PRUDENCE_DOMAIN_SRCU,
                                                      PRUDENCE_DOMAIN_QSBR};

    for (unsigned i = 0; i < 3; i++) {
        struct prudence_domain *domain = prudence_domain_create("test", kinds[i], NULL);
        struct prudence_map_attr attr = {.size = sizeof attr, .domain = domain};
        struct prudence_map *map = prudence_map_create("test", &attr);

        if (kinds[i] == PRUDENCE_DOMAIN_QSBR)
            prudence_qsbr_online(domain);
        add_items(map, 0, 500);
        remove_items(map, 0, 500);
        if (kinds[i] == PRUDENCE_DOMAIN_QSBR)
            prudence_qsbr_offline(domain);
        assert_int_equal(prudence_map_destroy(map, NULL, NULL), 0);
        assert_int_equal(prudence_domain_destroy(domain), 0);
    }
}

/* A set has no sections, so updates run inside a section of a member. */
TEST(updates_in_a_set_of_domains)
{
    struct prudence_domain *members[] = {prudence_default_domain()};
    struct prudence_domain *set = prudence_domain_create_set("test", members, 1);
    struct prudence_map_attr attr = {.size = sizeof attr, .domain = set};
    struct prudence_map *map = prudence_map_create("test", &attr);

    prudence_read_lock();
    add_items(map, 0, 500);
    remove_items(map, 0, 500);
    prudence_read_unlock();
    assert_int_equal(prudence_map_destroy(map, NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(set), 0);
}

/* --------------------------------------------------------------------------- processes, threads */

static void in_child(struct prudence_map *map)
{
    expect_items(map, 0, 5000);
    add_items(map, 5000, ITEMS);
    expect_items(map, 0, ITEMS);
    remove_items(map, 0, ITEMS);
    assert_int_equal(prudence_map_destroy(map, NULL, NULL), 0);
}

TEST(a_child_goes_on)
{
    struct prudence_map *map = prudence_map_create("test", NULL);
    pid_t child;

    add_items(map, 0, 5000);
    child = fork();
    if (!child) {
        in_child(map);
        _exit(0);
    }
    assert_int_equal(status_of(child), 0);
    in_child(map);
}

#define THREADS 4

static struct prudence_map *shared;
static unsigned won[THREADS];
static struct item contended[THREADS][500];

/* All threads use the same keys: one thread adds each, and one removes it. */
static void *contend(void *argument)
{
    unsigned number = (unsigned)(uintptr_t)argument;

    for (unsigned round = 0; round < 200; round++) {
        for (unsigned i = 0; i < 500; i++) {
            struct item *item = &contended[number][i];

            if (item->index) /* it is, or was, in the map, so other threads may be reading it */
                continue;
            item->node.node.key = i % 50 * 3;
            item->index = !prudence_map_add(shared, &item->node.node, NULL);
            won[number] += item->index;
        }
        for (unsigned i = 0; i < 50; i++)
            won[number] -= map_erase_found(shared, i * 3) != NULL;
    }
    return NULL;
}

TEST(one_of_several_threads_succeeds)
{
    pthread_t threads[THREADS];
    unsigned left = 0;

    clear_keys(false);
    for (unsigned i = 0; i < 50; i++)
        add_number(i * 3);
    shared = prudence_map_create("test", NULL);
    threads_start(threads, THREADS, contend);
    threads_join(threads, THREADS);
    for (unsigned i = 0; i < THREADS; i++)
        left += won[i];
    assert_int_equal(prudence_map_count(shared), left);
    for (unsigned i = 0; i < 50; i++)
        left -= map_erase_found(shared, i * 3) != NULL;
    assert_int_equal(left, 0);
    assert_int_equal(map_stats_of(shared).nodes, 0);
    assert_int_equal(prudence_map_destroy(shared, NULL, NULL), 0);
}

SUITE(pin_thread())
