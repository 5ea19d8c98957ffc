/* SPDX-License-Identifier: MIT */
/*
 * Objects in a hash table, in docs/how-to/structures.md.
 *
 * ctest: not-with thread (one thread)
 */
#include <errno.h>

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

static int set_route(struct prudence_hash *routes, struct prudence_cache *cache, uint32_t address,
                     int hop)
{
    struct route *fresh = prudence_cache_alloc(cache);
    struct prudence_hash_node *old;

    if (!fresh)
        return ENOMEM;
    fresh->address = address;
    fresh->next_hop = hop;
    prudence_read_lock();
    prudence_hash_put(routes, prudence_hash_mix(address), is_address, &address, &fresh->node, &old);
    prudence_read_unlock();
    if (old)
        prudence_cache_free_deferred(cache, prudence_hash_entry(old, struct route, node));
    return 0;
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

static void route_free(struct prudence_hash_node *node, void *cache)
{
    prudence_cache_free(cache, prudence_hash_entry(node, struct route, node));
}

int main(void)
{
    struct prudence_hash *routes = prudence_hash_create("routes", NULL);
    struct prudence_cache *cache = prudence_cache_create("routes", sizeof(struct route), NULL);
    int wrong = 0;

    for (uint32_t address = 0; address < 8; address++)
        wrong |= set_route(routes, cache, address, (int)address);
    wrong |= set_route(routes, cache, 3, 30);
    wrong |= next_hop(routes, 3) != 30 || next_hop(routes, 9) != -1 || !some_is_enough(routes);
    wrong |= prudence_cache_destroy(cache) != EBUSY; /* the table's objects are live */
    return wrong || prudence_hash_destroy(routes, route_free, cache) ||
           prudence_cache_destroy(cache);
}
