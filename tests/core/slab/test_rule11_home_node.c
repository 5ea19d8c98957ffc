/* SPDX-License-Identifier: MIT */
/*
 * Rule 11: the home node of the slab counts. A CPU allocates from its own node, and objects freed
 * or deferred on another node's CPU return to their home node.
 *
 * ctest: not-with thread (one thread)
 */
#include "slab/preflush.h"
#include "support/slab_test.h"

#define COUNT 500

static void *objects[4][COUNT];

/* Makes a cache with COUNT live objects from each of 4 nodes. */
static struct prudence_cache *cache_of_four_nodes(void)
{
    struct prudence_cache *cache = fixed_cache(64, 16, manual_domain());

    for (unsigned node = 0; node < 4; node++) {
        injected_cpu = 16 * node + 3;
        assert_int_equal(os_node_of_cpu(injected_cpu), node);
        allocate_all(cache, objects[node], COUNT);
        for (unsigned i = 0; i < COUNT; i++)
            assert_int_equal(slab_of(objects[node][i])->node, node);
    }
    return cache;
}

static unsigned latent_on(struct prudence_cache *cache, unsigned node)
{
    uint64_t bytes = 0;

    return node_latent_objects(&cache->body->nodes[node], &bytes);
}

/* Checks that every slab is in a list of its own node. */
static void expect_all_at_home(struct prudence_cache *cache)
{
    for (unsigned n = 0; n < 4; n++) {
        struct list *item;

        for (unsigned list = 0; list < SLAB_LISTS; list++)
            list_for_each(item, &cache->body->nodes[n].lists[list])
                assert_int_equal(list_entry(item, struct slab, link)->node, n);
    }
    check_books(cache);
}

TEST(freed_elsewhere)
{
    struct prudence_cache *cache = cache_of_four_nodes();

    injected_cpu = 63;                   /* node 3 */
    for (unsigned i = 0; i < COUNT; i++) /* from all nodes in turn */
        for (unsigned node = 0; node < 4; node++)
            prudence_cache_free(cache, objects[node][i]);
    for (unsigned node = 0; node < 4; node++) {
        const struct node_counts *counts = &cache->body->nodes[node].counts;

        assert_true(counts->flushed_objects > COUNT / 2);
        /* A flush has 8 objects, two per node, or more in a round of decay, and visits each node
         * once, whatever the order. */
        assert_true(2 * counts->flushes <= counts->flushed_objects);
    }
    expect_all_at_home(cache);
    destroy_empty(cache);
}

TEST(deferred_elsewhere)
{
    struct prudence_cache *cache = cache_of_four_nodes();

    injected_cpu = 63;
    for (unsigned i = 0; i < COUNT; i++)
        for (unsigned node = 0; node < 4; node++)
            prudence_cache_free_deferred(cache, objects[node][i]);
    for (unsigned node = 0; node < 4; node++)
        assert_true(latent_on(cache, node) > COUNT / 2);
    expect_all_at_home(cache);
    destroy_empty(cache);
}

TEST(deferred_past_the_caches)
{
    struct prudence_cache *cache = cache_of_four_nodes();
    struct cpu_cache *cpu;

    injected_cpu = 20; /* node 1; its caches are owned */
    cpu = cpu_cache_take(cache, &cpu);
    defer_all(cache, objects[2], 5);
    assert_int_equal(cache->body->nodes[2].counts.deferred, 5);
    assert_int_equal(list_first(&cache->body->nodes[2].waiting, struct slab, waiting_link)->node,
                     2);
    assert_true(list_is_empty(&cache->body->nodes[1].waiting));
    cpu_cache_release(cpu);
    expect_all_at_home(cache);
}

TEST(pre_flushed_elsewhere)
{
    struct prudence_cache *cache = cache_of_four_nodes();
    struct cpu_cache *cpu;

    injected_cpu = 20; /* node 1 */
    allocate_all(cache, objects[1], 1);
    cpu = cpu_here(cache);
    while (stack_count(&cpu->line) < 16)
        free_all(cache, objects[1] + stack_count(&cpu->line), 1);
    defer_all(cache, objects[2], 9);
    assert_int_equal(preflush_cpu(cache, 20, 32), 8); /* a batch */
    assert_non_null(cache->body->nodes[2].handover);
    assert_null(cache->body->nodes[1].handover);
    assert_int_equal(latent_on(cache, 2), 8);
    expect_all_at_home(cache);
}

SUITE(pin_thread(), inject_topology())
