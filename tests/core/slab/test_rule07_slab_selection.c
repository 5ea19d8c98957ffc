/* SPDX-License-Identifier: MIT */
/*
 * Rule 7: among the first 10 partial slabs with truly free objects, a refill takes from the one
 * that leaves total fragmentation lowest, which has the most live objects. Latent objects do not
 * count as live (paper, Figure 5), and slabs with nothing to give do not count among the 10. An
 * option decides whether mostly latent slabs are not touched while there is a free slab.
 *
 * ctest: not-with thread (one thread)
 */
#include "slab/node_choose.h"
#include "support/slab_test.h"

#define SLABS 24

static struct prudence_cache *cache;
static struct slab_node *node;
static void *objects[SLABS][256]; /* by slab */
static struct slab *slabs[SLABS];

/* Makes `count` full slabs, taken straight from the node. */
static void full_slabs(unsigned count)
{
    cache = fixed_cache(1024, 16, manual_domain());
    node = node_here(cache);
    for (unsigned i = 0; i < count; i++) {
        slabs[i] = slab_grow(cache, (unsigned)(node - cache->body->nodes), OS_ALLOC_DEFAULT);
        assert_non_null(slabs[i]);
        node_add_slab(node, slabs[i], NULL, 0);
        node_take_all(cache, node, objects[i], cache->body->capacity);
        assert_ptr_equal(slab_of(objects[i][0]), slabs[i]);
    }
}

static void put(unsigned slab, unsigned first, unsigned count)
{
    node_put(cache, objects[slab] + first, count);
}

static void defer(unsigned slab, unsigned first, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        node_put_latent(slabs[slab], objects[slab][first + i], false);
}

static struct slab *slab_taken_from(void)
{
    void *object;

    assert_int_equal(node_take(cache, node, &object, 1), 1);
    return slab_of(object);
}

TEST(figure_5)
{
    for (unsigned b = 0; b < 2; b++) { /* in either order */
        full_slabs(2);
        put(0, 2, cache->body->capacity - 2);
        put(1, 2, cache->body->capacity - 2);
        defer(b, 0, 2); /* B's two objects will be free, and so will B */
        for (unsigned i = 0; i < 3; i++)
            assert_ptr_equal(slab_taken_from(), slabs[1 - b]);
    }
}

TEST(latent_objects_are_not_live)
{
    for (unsigned b = 0; b < 2; b++) {
        full_slabs(2);
        put(1 - b, 4, cache->body->capacity - 4); /* A has 4 live objects */
        put(b, 6, cache->body->capacity - 6);     /* B has 6 allocated ones, 3 of them latent */
        defer(b, 0, 3);
        assert_ptr_equal(slab_taken_from(), slabs[1 - b]);
    }
}

TEST(ten_are_weighed)
{
    struct list *item;
    struct slab *order[SLABS];
    unsigned count = 0, number[SLABS];

    full_slabs(13);
    for (unsigned i = 0; i < 13; i++)
        put(i, 0, 1);
    list_for_each(item, &node->lists[SLAB_PARTIAL])
    {
        order[count] = list_entry(item, struct slab, link);
        for (unsigned i = 0; i < 13; i++)
            if (slabs[i] == order[count])
                number[count] = i;
        count++;
    }
    assert_int_equal(count, 13);
    for (unsigned i = 0; i < 13; i++) /* the 10th is the fullest of ten; later ones are fuller */
        put(number[i], 1, i < 9 ? 4 : i == 9 ? 2 : 0);
    assert_ptr_equal(slab_taken_from(), order[9]);
    check_books(cache);
}

TEST(slabs_with_nothing_to_give_do_not_count)
{
    full_slabs(23);
    for (unsigned i = 0; i < 11; i++)
        defer(i, 0, 1);
    put(11, 0, 5);
    for (unsigned i = 12; i < 23; i++)
        defer(i, 0, 1);
    assert_ptr_equal(slab_taken_from(), slabs[11]);
    check_books(cache);
}

/* A slab has one live, 58 latent and one free object; the other slab is free. */
TEST(one_live_object_with_58_latent_ones)
{
    for (unsigned spares = 0; spares < 2; spares++) {
        slab_spares_latent = spares;
        full_slabs(2);
        assert_int_equal(cache->body->capacity, 60);
        put(0, 0, 1);
        defer(0, 1, 58);
        put(1, 0, 60);
        assert_int_equal(slabs[1]->list, SLAB_FREE);
        for (unsigned i = 0; i < 60; i++)
            assert_ptr_equal(slab_taken_from(), slabs[spares || i ? 1 : 0]);
        assert_ptr_equal(slab_taken_from(),
                         slabs[spares ? 0 : 1]); /* before the cache would grow */
        check_books(cache);
    }
    slab_spares_latent = false;
}

TEST(half_is_not_most)
{
    slab_spares_latent = true;
    for (unsigned latent = 2; latent <= 3; latent++) {
        full_slabs(2);
        put(0, 0, 60 - 2 - latent);
        defer(0, 60 - 2 - latent, latent); /* two are live */
        put(1, 0, 60);
        assert_ptr_equal(slab_taken_from(), slabs[latent == 2 ? 0 : 1]);
    }
    slab_spares_latent = false;
}

/* With no other slab, the slab with the most live objects goes first, and the one without any
 * last. */
TEST(rather_than_grow)
{
    for (unsigned i = 0; i < 4; i++) {
        unsigned b = i % 2; /* in either order */

        slab_spares_latent = i / 2;
        full_slabs(3);
        for (unsigned j = 0; j < 3; j++)
            put(j, 0, 1);
        defer(b, 1, 58);
        defer(1 - b, 1, 54);
        defer(2, 1, 59);
        assert_int_equal(slabs[2]->list, SLAB_DRAINING);
        assert_ptr_equal(slab_taken_from(), slabs[1 - b]);
        assert_ptr_equal(slab_taken_from(), slabs[b]);
        assert_ptr_equal(slab_taken_from(), slabs[2]);
        check_books(cache);
    }
    slab_spares_latent = false;
}

SUITE(pin_thread())
