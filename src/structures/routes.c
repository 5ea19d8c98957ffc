/* SPDX-License-Identifier: MIT */
/* Creates and destroys tables of routes, and reports statistics (routes.h). */
#include <errno.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <prudence/stats.h>
#include <prudence/structure.h>

#include "structures/attributes.h"
#include "structures/routes.h"
#include "structures/route_index.h"
#include "structures/route_room.h"
#include "structures/route_shortcut.h"
#include "structures/route_words.h"
#include "structures/waiting.h"
#include "structures/writers.h"

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
        if (table->caches[i])
            prudence_cache_destroy(table->caches[i]);
    if (table->indexes)
        prudence_cache_destroy(table->indexes);
}

static bool routes_make_caches(struct route_table *table, const char *name,
                               struct prudence_domain *domain)
{
    const struct prudence_cache_attr attr = {.size = sizeof attr,
                                             .alignment = table->node_front ? route_sizes_far[0]
                                                                            : 0, /* a line */
                                             .flags = PRUDENCE_CACHE_HIDDEN_POINTERS,
                                             .domain = domain};

    for (unsigned i = 0; i < ROUTE_NODE_SIZES && table->sizes[i]; i++) {
        table->caches[i] = prudence_cache_create(name, table->sizes[i], &attr);
        if (!table->caches[i])
            return false;
    }
    table->indexes = prudence_cache_create_blocks(name, domain);
    return table->indexes;
}

static void free_arrays(const struct route_table *table)
{
    if (table->public.index)
        prudence_cache_free(table->indexes, route_words(table->public.index));
    if (table->public.shortcuts)
        prudence_cache_free(table->indexes, route_words(table->public.shortcuts));
}

static bool routes_make_parts(struct route_table *table, const char *name,
                              const struct prudence_routes_attr *attr)
{
    if (!routes_make_caches(table, name, attr->domain))
        return false;
    table->root = route_node_make(table, 1);
    if (!table->root)
        return false;
    route_node_first(table->root, 0);
    table->nodes = 1;
    table->node_bytes = route_node_memory(table, table->root);
    table->public.index = route_index_make(table, attr->prefixes);
    if (table->public.index && table->node_front)
        table->public.shortcuts = route_shortcuts_make(table, attr->prefixes / 4);
    if (table->public.index && (table->public.shortcuts || !table->node_front))
        return true;
    free_arrays(table);
    route_node_free(table, table->root, 1);
    return false;
}

struct prudence_routes *prudence_routes_create(const char *name,
                                               const struct prudence_routes_attr *given)
{
    struct prudence_routes_attr attr;
    struct route_table *table;

    if (!routes_read_attributes(name, given, &attr))
        return NULL;
    if (!processor_is_enough()) {
        errno = ENOTSUP;
        return NULL;
    }
    table = prudence_aligned_alloc(CACHE_LINES_APART, sizeof *table);
    if (!table)
        return NULL;
    __builtin_memset(table, 0, sizeof *table);
    table->domain = attr.domain ? attr.domain : prudence_default_domain();
    route_table_shape(table, (enum prudence_routes_family)attr.family);
    os_lock_init(&table->lock, OS_RANK_STRUCTURES);
    if (routes_make_parts(table, name, &attr)) {
        tables_add(&route_tables, &table->link);
        return &table->public;
    }
    unmake_caches(table);
    os_lock_destroy(&table->lock);
    prudence_free(table);
    errno = ENOMEM;
    return NULL;
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
    struct prudence_cache_stats names;
    int error;

    if (!table)
        return EINVAL;
    prudence_cache_stats(table->indexes, &names);
    error = waiting_error("prudence_routes_destroy", "of table", names.name, table->domain,
                          __builtin_return_address(0));
    if (error)
        return error;
    tables_remove(&table->link);
    routes_free_nodes(table, table->root);
    route_room_free_spares(table);
    free_arrays(table);
    unmake_caches(table);
    os_lock_destroy(&table->lock);
    prudence_free(table);
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

    prudence_cache_stats(table->indexes, &sums);
    bytes = sums.bytes_latent;
    for (unsigned i = 0; i < ROUTE_NODE_SIZES && table->caches[i]; i++) {
        prudence_cache_stats(table->caches[i], &sums);
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
        .bytes_live = sizeof *table + route_words_bytes(table->public.index) + table->node_bytes +
                      route_room_spare_bytes(table)};
    if (table->public.shortcuts)
        all.bytes_live += route_words_bytes(table->public.shortcuts);
    os_lock_release(&table->lock);
    all.bytes_latent = latent_bytes(table);
    give_sized(stats, size, &all, sizeof all);
    return 0;
}
