/* SPDX-License-Identifier: MIT */
/*
 * Objects in a hash table, in docs/how-to/structures.md.
 *
 * ctest: not-with thread (one thread)
 */
#include <prudence/prudence.h>
#include <prudence/hash.h>
#include <prudence/rcu.h>

struct route {
    struct prudence_hash_node node; /* anywhere in the object */
    uint32_t address;
    int next_hop;
};

static bool is_address(const struct prudence_hash_node *node, const void *key)
{
    return prudence_hash_entry(node, const struct route, node)->address == *(const uint32_t *)key;
}

static int next_hop(struct prudence_hash *routes, uint32_t address)
{
    struct prudence_hash_node *node;
    int hop = -1;

    prudence_read_lock();
    node = prudence_hash_lookup(routes, prudence_hash_mix(address), is_address, &address);
    if (node)
        hop = prudence_hash_entry(node, struct route, node)->next_hop;
    prudence_read_unlock();
    return hop;
}

static void set_route(struct prudence_hash *routes, struct prudence_cache *cache, uint32_t address,
                      int hop)
{
    struct route *fresh = prudence_cache_alloc(cache);
    struct prudence_hash_node *old;

    fresh->address = address;
    fresh->next_hop = hop;
    prudence_read_lock();
    prudence_hash_put(routes, prudence_hash_mix(address), is_address, &address, &fresh->node, &old);
    prudence_read_unlock();
    if (old)
        prudence_cache_free_deferred(cache, prudence_hash_entry(old, struct route, node));
}

static bool enough(const struct route *route)
{
    return route->next_hop == 7;
}

static bool some_is_enough(struct prudence_hash *routes)
{
    bool found = false;
    struct prudence_hash_walk walk;
    struct prudence_hash_node *node;

    prudence_read_lock();
    prudence_hash_for_each(&walk, routes, node)
    {
        if (enough(prudence_hash_entry(node, struct route, node)))
            break;
    }
    prudence_read_unlock();
    found = node != NULL;
    return found;
}

int main(void)
{
    struct prudence_hash *routes = prudence_hash_create("routes", NULL);
    struct prudence_cache *cache = prudence_cache_create("routes", sizeof(struct route), NULL);

    for (uint32_t address = 0; address < 8; address++)
        set_route(routes, cache, address, (int)address);
    set_route(routes, cache, 3, 30);
    return next_hop(routes, 3) != 30 || next_hop(routes, 9) != -1 || !some_is_enough(routes);
}
