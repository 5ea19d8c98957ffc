/* SPDX-License-Identifier: MIT */
/*
 * Ranges of an ordered map, in docs/how-to/structures.md.
 *
 * ctest: not-with thread (one thread)
 */
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/map.h>

struct flow {
    struct prudence_map_node node; /* anywhere in the object; node.key is the key */
    uint64_t bytes;
};

static uint64_t bytes_between(struct prudence_map *flows, uint64_t from, uint64_t to)
{
    struct prudence_map_walk walk;
    struct prudence_map_node *node;
    uint64_t bytes = 0;

    prudence_read_lock();
    prudence_map_for_each_from(&walk, flows, from, node)
    {
        if (node->key > to)
            break;
        bytes += prudence_map_entry(node, struct flow, node)->bytes;
    }
    prudence_read_unlock();
    return bytes;
}

static void end_flow(struct prudence_map *flows, struct prudence_cache *cache, uint64_t key)
{
    struct prudence_map_node *node;

    /* In no section. Of several threads that erase the key, one gets the object. */
    if (!prudence_map_erase(flows, key, &node))
        prudence_cache_free_deferred(cache, prudence_map_entry(node, struct flow, node));
}

int main(void)
{
    struct prudence_map *flows = prudence_map_create("flows", NULL);
    struct prudence_cache *cache = prudence_cache_create("flows", sizeof(struct flow), NULL);

    for (uint64_t key = 0; key < 10; key++) {
        struct flow *flow = prudence_cache_alloc(cache);

        flow->node.key = key;
        flow->bytes = 100;
        if (prudence_map_add(flows, &flow->node, NULL))
            return 1;
    }
    end_flow(flows, cache, 5);
    return bytes_between(flows, 4, 7) != 300;
}
