/* SPDX-License-Identifier: MIT */
/* Creates and destroys tables of routes, and reports statistics (routes.h). */
#include <errno.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <prudence/stats.h>
#include <prudence/structure.h>

#include "tables/attributes.h"
#include "tables/route_area.h"
#include "tables/route_index.h"
#include "tables/route_room.h"
#include "tables/route_shortcut.h"
#include "tables/route_words.h"
#include "tables/routes.h"
#include "tables/waiting.h"
#include "tables/writers.h"

/* ------------------------------------------------------------------------------------- prefixes */

bool route_prefix_key(const struct route_table *table, const struct prudence_routes_prefix *prefix,
                      route_key *key)
{
    uint64_t halves[2];
    route_key address;

    if (!table || !prefix || prefix->length > table->length_most)
        return false;
    __builtin_memcpy(halves, prefix->address, sizeof halves);
    address = (route_key)__builtin_bswap64(halves[0]) << 64 | __builtin_bswap64(halves[1]);
    address &= ~(route_key)0 << (ROUTE_KEY_BITS - table->length_most);
    *key = address;
    return prefix->length == ROUTE_KEY_BITS || address << prefix->length == 0;
}

void route_key_prefix(const struct route_table *table, route_key key, unsigned length,
                      struct prudence_routes_prefix *prefix)
{
    *prefix = (struct prudence_routes_prefix){.length = length};
    for (unsigned i = 0; i < table->length_most / 8; i++)
        prefix->address[i] = (unsigned char)(key >> (ROUTE_KEY_BITS - 8 - 8 * i));
}

/* ------------------------------------------------------------------------ making and destroying */

void route_table_shape(struct route_table *table, enum prudence_routes_family family)
{
    const bool is_far = family == PRUDENCE_ROUTES_IPV6;
    unsigned size = 0;

    table->length_most = is_far ? 128 : 32;
    table->node_front = is_far ? ROUTE_PATH_BYTES : 0;
    table->sizes = is_far ? route_sizes_far : route_sizes_near;
    for (unsigned words = 1; words <= ROUTE_NODE_WORDS; words++) {
        if (table->sizes[size] <
            table->node_front + sizeof(struct route_node) + words * sizeof(uint64_t))
            size++;
        table->size_of_words[words - 1] = narrow(unsigned char, size);
    }
}

static bool routes_read_attributes(const char *name, const struct prudence_routes_attr *given,
                                   struct prudence_routes_attr *attr)
{
    static const char what[] = "prudence_routes_create";

    if (!attributes_take(what, name, "prudence_routes_attr", given, attr, sizeof *attr) ||
        !attributes_domain_is_valid(what, name, attr->domain))
        return false;
    if (attr->family > PRUDENCE_ROUTES_IPV6)
        os_report("%s: '%s': attr->family is %u, not of enum prudence_routes_family", what, name,
                  attr->family);
    else if (attr->reserved)
        os_report("%s: '%s': attr->reserved is %u, not 0", what, name, attr->reserved);
    else
        return true;
    errno = EINVAL;
    return false;
}

/* prudence_routes_ones_ says which instruction is needed. */
static bool processor_is_enough(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_POPCNT;
#else
    return true;
#endif
}

static void unmake_caches(const struct route_table *table)
{
    for (unsigned i = 0; i < ROUTE_NODE_SIZES; i++)
        own_cache_destroy(table->caches[i], &table->owner);
    own_cache_destroy(table->indexes, &table->owner);
}

static void free_arrays(const struct route_table *table)
{
    route_index_drop_areas(table, table->public.index, false);
    route_words_let_go(table, table->public.index, 0);
    route_words_let_go(table, table->public.shortcuts, 0);
}

/* Returns the bytes of a table with the first arrays. */
static size_t routes_bytes(bool is_far)
{
    return sizeof(struct route_table) + (is_far ? 2 : 1) * (ROUTE_FIRST_WORDS * sizeof(uint64_t));
}

static bool routes_make_parts(struct route_table *table, uint64_t prefixes)
{
    table->root = route_node_make(table, 1);
    if (!table->root)
        return false;
    route_node_first(table->root, 0);
    table->nodes = 1;
    table->node_bytes = route_node_memory(table, table->root);
    table->public.index = route_index_make(table, prefixes);
    if (table->public.index && table->node_front)
        table->public.shortcuts = route_shortcuts_make(table, prefixes / 4);
    if (table->public.index && (table->public.shortcuts || !table->node_front))
        return true;
    free_arrays(table);
    route_node_free(table, table->root, 1);
    return false;
}

static struct prudence_routes *
routes_create(const char *name, const struct prudence_routes_attr *given, bool knows_areas)
{
    struct prudence_routes_attr attr;
    struct route_table *table;
    size_t bytes;

    if (!routes_read_attributes(name, given, &attr))
        return NULL;
    if (!processor_is_enough()) {
        errno = ENOTSUP;
        return NULL;
    }
    bytes = routes_bytes(attr.family == PRUDENCE_ROUTES_IPV6);
    table = prudence_aligned_alloc(CACHE_LINES_APART, bytes);
    if (!table)
        return NULL;
    __builtin_memset(table, 0, bytes);
    own_cache_init(&table->owner, name, attr.domain);
    route_table_shape(table, (enum prudence_routes_family)attr.family);
    table->may_have_areas = knows_areas && attr.family == PRUDENCE_ROUTES_IPV4;
    os_lock_init(&table->lock, OS_RANK_STRUCTURES);
    if (routes_make_parts(table, attr.prefixes)) {
        tables_add(&route_tables, &table->link);
        return &table->public;
    }
    unmake_caches(table);
    os_lock_destroy(&table->lock);
    prudence_free(table);
    errno = ENOMEM;
    return NULL;
}

struct prudence_routes *prudence_routes_create(const char *name,
                                               const struct prudence_routes_attr *given)
{
    return routes_create(name, given, true);
}

/* Programs that were built with 0.1 or 0.2 call this. Their lookups do not know areas. */
struct prudence_routes *prudence_routes2_create(const char *name,
                                                const struct prudence_routes_attr *given)
{
    return routes_create(name, given, false);
}

/* Frees the node and all nodes below. */
static void routes_free_nodes(const struct route_table *table, struct route_node *node)
{
    for (unsigned i = 0; i < prudence_routes_ones_(node->children); i++)
        routes_free_nodes(table, route_edge_node(node->words[i]));
    route_node_free(table, node, route_node_words(node));
}

int prudence_routes_destroy(struct prudence_routes *public)
{
    struct route_table *table = route_table_of(public);
    int error;

    if (!table)
        return EINVAL;
    error = waiting_error("prudence_routes_destroy", "of table", table->owner.name,
                          table->owner.domain, __builtin_return_address(0));
    if (error)
        return error;
    tables_remove(&table->link);
    routes_free_nodes(table, table->root);
    route_room_free_spares(table);
    free_arrays(table);
    unmake_caches(table);
    os_lock_destroy(&table->lock);
    prudence_free(table);
    tables_trim();
    return 0;
}

/* ---------------------------------------------------------------------------------- statistics */

uint64_t prudence_routes_count(const struct prudence_routes *table)
{
    return table ? load_relaxed(&route_table_of(table)->prefixes) : 0;
}

static uint64_t latent_bytes(const struct route_table *table)
{
    struct prudence_cache_stats sums;
    uint64_t bytes;

    own_cache_stats(&table->indexes, &sums);
    bytes = sums.bytes_latent;
    for (unsigned i = 0; i < ROUTE_NODE_SIZES; i++) {
        own_cache_stats(&table->caches[i], &sums);
        bytes += sums.bytes_latent;
    }
    return bytes;
}

int prudence_routes_stats_sized(struct prudence_routes *public, struct prudence_routes_stats *stats,
                                size_t size)
{
    struct route_table *table = route_table_of(public);
    struct prudence_routes_stats all;

    if (!table || !stats)
        return EINVAL;
    os_lock_take(&table->lock);
    all = (struct prudence_routes_stats){
        .prefixes = table->prefixes,
        .nodes = table->nodes,
        .index_bits = route_words_bits(table->public.index),
        .refused = table->refused,
        .bytes_live = routes_bytes(table->node_front) +
                      route_words_outside(table, table->public.index) +
                      route_words_outside(table, table->public.shortcuts) +
                      route_areas_bytes(table) + table->node_bytes + route_room_spare_bytes(table)};
    os_lock_release(&table->lock);
    all.bytes_latent = latent_bytes(table);
    give_sized(stats, size, &all, sizeof all);
    return 0;
}
