/* SPDX-License-Identifier: MIT */
/*
 * The sizes and alignments of all types that a program declares, allocates or embeds, for bindings
 * of other languages (<prudence/bindings.h>). tests/repo/test_bindings.py compares the table with
 * the headers.
 */
#include <string.h>

#include <prudence/bindings.h>
#include <prudence/call.h>
#include <prudence/epoch.h>
#include <prudence/hash_rename.h>
#include <prudence/hash_values.h>
#include <prudence/hazard.h>
#include <prudence/heap_walk.h>
#include <prudence/id_table.h>
#include <prudence/lockfree_hash.h>
#include <prudence/map_values.h>
#include <prudence/poll.h>
#include <prudence/rcuhlist.h>
#include <prudence/rculist.h>
#include <prudence/ref.h>
#include <prudence/routes.h>
#include <prudence/scm.h>
#include <prudence/stack.h>
#include <prudence/swap.h>

#define TYPE(name)                                                                                 \
    {                                                                                              \
        .type = #name, .bytes = sizeof(name), .alignment = _Alignof(name)                          \
    }
#define STRUCTURE(name)                                                                            \
    {                                                                                              \
        .type = #name, .bytes = sizeof(struct name), .alignment = _Alignof(struct name)            \
    }

static const struct size {
    const char *type;
    size_t bytes, alignment;
} sizes[] = {
    /* embedded in objects, or kept next to them */
    TYPE(prudence_gp_full_t),
    TYPE(prudence_gp_t),
    STRUCTURE(prudence_hazard),
    STRUCTURE(prudence_hazard_head),
    STRUCTURE(prudence_hazards),
    STRUCTURE(prudence_head),
    STRUCTURE(prudence_hlist_head),
    STRUCTURE(prudence_hlist_node),
    STRUCTURE(prudence_list),
    STRUCTURE(prudence_ref),
    STRUCTURE(prudence_stack),
    STRUCTURE(prudence_stack_node),
    STRUCTURE(prudence_swap),
    STRUCTURE(prudence_walk),
    /* attributes, and arguments of hooks */
    STRUCTURE(prudence_cache_attr),
    STRUCTURE(prudence_domain_attr),
    STRUCTURE(prudence_domain_ops),
    STRUCTURE(prudence_kick),
    STRUCTURE(prudence_stall),
    /* statistics */
    STRUCTURE(prudence_cache_stats),
    STRUCTURE(prudence_domain_stats),
    STRUCTURE(prudence_heap_object),
    STRUCTURE(prudence_heap_slab),
    STRUCTURE(prudence_reader_stats),
    STRUCTURE(prudence_stats),
    STRUCTURE(scm_mem_info),
    STRUCTURE(scm_region_info),
    /* tables */
    STRUCTURE(prudence_hash_attr),
    STRUCTURE(prudence_hash_name),
    STRUCTURE(prudence_hash_node),
    STRUCTURE(prudence_hash_stats),
    STRUCTURE(prudence_hash_secret),
    STRUCTURE(prudence_hash_values_attr),
    STRUCTURE(prudence_hash_values_walk),
    STRUCTURE(prudence_hash_walk),
    STRUCTURE(prudence_id_table_attr),
    STRUCTURE(prudence_id_table_stats),
    STRUCTURE(prudence_id_table_walk),
    STRUCTURE(prudence_lockfree_hash_attr),
    STRUCTURE(prudence_lockfree_hash_stats),
    STRUCTURE(prudence_lockfree_hash_walk),
    STRUCTURE(prudence_map_attr),
    STRUCTURE(prudence_map_bytes),
    STRUCTURE(prudence_map_node),
    STRUCTURE(prudence_map_stats),
    STRUCTURE(prudence_map_values_attr),
    STRUCTURE(prudence_map_walk),
    STRUCTURE(prudence_routes_attr),
    STRUCTURE(prudence_routes_prefix),
    STRUCTURE(prudence_routes_stats),
    STRUCTURE(prudence_routes_walk),
};

/* Returns NULL if there is no such type. */
static const struct size *sizes_find(const char *type)
{
    for (size_t i = 0; type && i < sizeof sizes / sizeof sizes[0]; i++)
        if (!strcmp(sizes[i].type, type))
            return &sizes[i];
    return NULL;
}

size_t prudence_sizeof(const char *type)
{
    const struct size *size = sizes_find(type);

    return size ? size->bytes : 0;
}

size_t prudence_alignof(const char *type)
{
    const struct size *size = sizes_find(type);

    return size ? size->alignment : 0;
}
