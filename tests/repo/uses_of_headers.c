/* SPDX-License-Identifier: MIT */
/* Uses every macro and inline function of the public headers in a strict program of C or C++.
 * test_headers.py compiles the program; it is never run. */
#include <prudence/call.h>
#include <prudence/hash.h>
#include <prudence/hash_rename.h>
#include <prudence/hash_values.h>
#include <prudence/id_table.h>
#include <prudence/inline.h>
#include <prudence/lockfree_hash.h>
#include <prudence/map_values.h>
#include <prudence/poll.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/rcuhlist.h>
#include <prudence/rculist.h>
#include <prudence/routes.h>
#include <prudence/scm.h>
#include <prudence/stats.h>

struct element {
    int number;
    struct prudence_hash_node hash_node;
    struct prudence_map_bytes map_node;
    struct prudence_list link;
    struct prudence_hlist_node node;
};

int use_reading(struct element **place, struct element *fresh, struct prudence_domain *domain);
int use_tables(struct prudence_hash *table, struct prudence_id_table *ids, uint64_t key);
int use_routes(struct prudence_routes *table, const struct prudence_routes_prefix *prefix);
int use_other_hashes(struct prudence_hash *table, struct prudence_lockfree_hash *lockfree,
                     struct prudence_hash_name *name, uint64_t key);
int use_map(struct prudence_map *map, struct element *fresh, uint64_t key);
int use_map_values(struct prudence_map_values *map, uint64_t key);
int use_values(struct prudence_hash_values *table);
int use_lists(struct prudence_list *list, struct element *fresh);
int use_hlists(struct prudence_hlist_head *list, struct element *fresh);
void use_qsbr(struct prudence_domain *domain);
void *use_inlined(struct prudence_cache *cache);

int use_reading(struct element **place, struct element *fresh, struct prudence_domain *domain)
{
    prudence_gp_t before = prudence_domain_get_state(domain);
    struct element *found;
    int number;

    prudence_read_lock();
    found = prudence_dereference(*place);
    number = found ? found->number : 0;
    prudence_read_unlock();
    prudence_assign_pointer(*place, fresh);
    return prudence_gp_same_state(before, prudence_domain_get_state(domain)) ? number : -1;
}

void *use_inlined(struct prudence_cache *cache)
{
    void *object = prudence_cache_alloc(cache);

    prudence_cache_free_deferred(cache, object);
    object = (prudence_cache_alloc)(cache);
    prudence_cache_free(cache, object);
    return prudence_cache_replace(cache, prudence_cache_replace(cache, PRUDENCE_NULL));
}

void use_qsbr(struct prudence_domain *domain)
{
    prudence_qsbr_quiescent(domain);
    {
        PRUDENCE_QSBR_BLOCKING(domain);
    }
}

static bool has_number(const struct prudence_hash_node *node, const void *key)
{
    (void)key;
    return prudence_hash_entry(node, const struct element, hash_node)->number != 0;
}

int use_tables(struct prudence_hash *table, struct prudence_id_table *ids, uint64_t key)
{
    struct prudence_hash_stats stats;
    struct prudence_id_table_stats id_stats;
    struct prudence_id_table_walk id_walk;
    struct prudence_hash_walk walk;
    struct prudence_hash_node *node =
        prudence_hash_lookup(table, prudence_hash_mix(key), has_number, &key);
    void *object = prudence_id_table_lookup(ids, 1);
    int sum = node || object;

    if (node && prudence_hash_next_duplicate(node, has_number, &key))
        sum++;
    prudence_hash_for_each(&walk, table, node)
    {
        sum += prudence_hash_entry(node, struct element, hash_node)->number;
    }
    prudence_id_table_for_each(&id_walk, ids, object)
    {
        sum++;
    }
    return sum + prudence_hash_stats(table, &stats) + prudence_id_table_stats(ids, &id_stats);
}

int use_routes(struct prudence_routes *table, const struct prudence_routes_prefix *prefix)
{
    struct prudence_routes_stats stats;
    struct prudence_routes_walk walk;
    uintptr_t sum = prudence_routes_lookup_ipv4(table, prefix->address) +
                    prudence_routes_lookup_ipv6(table, prefix->address);
    uintptr_t value, values[4];

    prudence_routes_lookup_many_ipv4(table, prefix->address, 4, values);
    sum += values[3];

    prudence_routes_for_each(&walk, table, prefix, value)
    {
        sum += value + walk.prefix.length;
    }
    return prudence_routes_stats(table, &stats) + (sum != 0);
}

int use_other_hashes(struct prudence_hash *table, struct prudence_lockfree_hash *lockfree,
                     struct prudence_hash_name *name, uint64_t key)
{
    struct prudence_lockfree_hash_stats stats;
    struct prudence_lockfree_hash_walk walk;
    struct prudence_hash_node *node =
        prudence_lockfree_hash_lookup(lockfree, key, has_number, &key);
    int sum = 0;

    prudence_hash_name_init(name);
    if (prudence_hash_lookup_name(table, key, has_number, &key) == name)
        sum += prudence_hash_name_is_there(name);
    if (node && prudence_lockfree_hash_next_duplicate(node, has_number, &key))
        sum++;
    prudence_lockfree_hash_for_each(&walk, lockfree, node)
    {
        sum++;
    }
    return sum + prudence_lockfree_hash_stats(lockfree, &stats);
}

int use_map(struct prudence_map *map, struct element *fresh, uint64_t key)
{
    struct prudence_map_stats stats;
    struct prudence_map_walk walk;
    struct prudence_map_node *node;
    int sum = 0;

    prudence_map_set_bytes(&fresh->map_node, "key", 3);
    prudence_map_for_each(&walk, map, node)
    {
        sum += prudence_map_entry(node, struct element, map_node.node)->number;
    }
    prudence_map_for_each_from(&walk, map, key, node)
    {
        sum++;
    }
    prudence_map_for_each_from_bytes(&walk, map, "key", 3, node)
    {
        sum++;
    }
    return sum + prudence_map_stats(map, &stats);
}

int use_map_values(struct prudence_map_values *map, uint64_t key)
{
    struct prudence_map_stats stats;
    struct prudence_map_walk walk;
    struct prudence_map_node *node;
    int sum = 0;

    prudence_map_for_each(&walk, prudence_map_values_nodes(map), node)
    {
        sum += prudence_map_values_value(node) == prudence_map_values_get(map, key);
    }
    return sum + prudence_map_values_stats(map, &stats);
}

int use_values(struct prudence_hash_values *table)
{
    struct prudence_hash_values_walk walk;
    struct prudence_hash_stats stats;
    void *value;
    int sum = 0;

    prudence_hash_values_for_each(&walk, table, value)
    {
        sum += walk.key == walk.length;
    }
    return sum + prudence_hash_values_stats(table, &stats);
}

int use_lists(struct prudence_list *list, struct element *fresh)
{
    struct prudence_list another = PRUDENCE_LIST_INIT(another), *link;
    struct element *element, *following;
    int sum = 0;

    prudence_list_init(&fresh->link);
    prudence_list_add_rcu(&fresh->link, list);
    prudence_list_for_each_entry_rcu(element, list, link)
    {
        sum += element->number;
    }
    prudence_list_for_each_rcu(link, list)
    {
        sum += prudence_list_entry(link, struct element, link)->number;
    }
    link = &fresh->link;
    prudence_list_for_each_continue_rcu(link, list)
    {
        sum++;
    }
    prudence_list_for_each_entry_safe(element, following, list, link)
    {
        prudence_list_del_rcu(&element->link);
    }
    prudence_list_splice_init_rcu(&another, list, prudence_synchronize);
    element = prudence_list_first_or_null_rcu(list, struct element, link);
    if (!element)
        return sum;
    element = prudence_list_next_or_null_rcu(list, &element->link, struct element, link);
    return element ? element->number : sum;
}

int use_hlists(struct prudence_hlist_head *list, struct element *fresh)
{
    struct element *element;
    int sum = 0;

    prudence_hlist_add_head_rcu(&fresh->node, list);
    prudence_hlist_for_each_entry_rcu(element, list, node)
    {
        sum += element->number;
    }
    prudence_hlist_del_rcu(&fresh->node);
    return sum;
}
