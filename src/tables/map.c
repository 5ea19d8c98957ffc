/* SPDX-License-Identifier: MIT */
/* Creates and destroys ordered maps, and reports statistics. */
#include "tables/map.h"

#include <errno.h>

#include <prudence/stats.h>

#include "os/os.h"
#include "process.h"
#include "tables/attributes.h"
#include "tables/object_count.h"
#include "tables/own_sections.h"
#include "tables/waiting.h"
#include "tables/writers.h"

/* ------------------------------------------------------------------------ making and destroying */

bool map_flags_are_valid(const char *what, const char *name, unsigned flags, unsigned reserved)
{
    const unsigned unknown = flags & ~(unsigned)PRUDENCE_MAP_BYTES;

    if (unknown)
        os_report("%s: '%s': attr->flags has unknown bits (0x%x)", what, name, unknown);
    else if (reserved)
        os_report("%s: '%s': attr->reserved is %u, not 0", what, name, reserved);
    else
        return true;
    errno = EINVAL;
    return false;
}

static void destroy_caches(struct prudence_map *map)
{
    entries_destroy(&map->entries);
    for (unsigned kind = MAP_KINDS; kind-- > 0;)
        own_cache_destroy(map->caches[kind], &map->owner);
}

struct prudence_map *map_make(const char *name, bool bytes, struct prudence_domain *domain)
{
    struct prudence_map *map;
    size_t words, size;

    process_start();
    words = object_counters();
    size = sizeof *map + words * sizeof map->writers[0];
    map = prudence_aligned_alloc(CACHE_LINES_APART, size);
    if (!map)
        return NULL;
    __builtin_memset(map, 0, size);
    map->writers_mask = (unsigned)words - 1;
    map->allocated = size;
    map->bytes = bytes;
    own_cache_init(&map->owner, name, domain);
    if (own_cache_is_needed(&map->owner) && !map_cache(map, MAP_FOUR)) {
        prudence_free(map);
        errno = ENOMEM;
        return NULL;
    }
    map->own_sections = has_own_sections(map->owner.domain);
    tables_add(&ordered_maps, &map->link);
    return map;
}

struct prudence_map *prudence_map_create(const char *name, const struct prudence_map_attr *attr)
{
    static const char what[] = "prudence_map_create";
    struct prudence_map_attr known;

    if (!attributes_take(what, name, "prudence_map_attr", attr, &known, sizeof known) ||
        !map_flags_are_valid(what, name, known.flags, known.reserved) ||
        !attributes_domain_is_valid(what, name, known.domain))
        return NULL;
    return map_make(name, known.flags & PRUDENCE_MAP_BYTES, known.domain);
}

/* Finds the next objects before disposing of those at hand, because the search needs a key. */
static void map_dispose_all(struct prudence_map *map,
                            void (*dispose)(struct prudence_map_node *object, void *argument),
                            void *argument)
{
    struct prudence_map_walk next, at_hand;

    if (!prudence_map_first(&next, map))
        return;
    do {
        at_hand = next;
        prudence_map_next_slow(&next);
        for (unsigned i = 0; i < at_hand.count; i++)
            dispose(at_hand.objects[i], argument);
    } while (next.count);
}

/* Frees all nodes. A node that waits for this links the next one by `end`. */
static void map_free_nodes(struct prudence_map *map)
{
    struct map_node *first = NULL;

    if (map->top.root && !map_is_object(map->top.root)) {
        first = map_inner(map->top.root);
        first->end = 0;
    }
    while (first) {
        struct map_node *node = first;
        uintptr_t link;

        first = (struct map_node *)node->end;
        for (unsigned byte = map_node_next_byte(node, 0, 0, &link); byte != MAP_NO_BYTE;
             byte = map_node_next_byte(node, byte + 1, 0, &link)) {
            if (map_is_object(link))
                continue;
            map_inner(link)->end = (uintptr_t)first;
            first = map_inner(link);
        }
        prudence_cache_free(map->caches[node->kind], node);
    }
}

static void map_unmake(struct prudence_map *map)
{
    tables_remove(&map->link);
    map_free_nodes(map);
    destroy_caches(map);
    prudence_free(map);
    tables_trim();
}

int map_destroy(const char *what, void *caller, struct prudence_map *map,
                void (*dispose)(struct prudence_map_node *object, void *argument), void *argument)
{
    int error;

    if (!map)
        return EINVAL;
    if (!dispose && map->top.root)
        return EBUSY;
    error = waiting_error(what, "of map", map->owner.name, map->owner.domain, caller);
    if (error)
        return error;
    if (dispose)
        map_dispose_all(map, dispose, argument);
    map_unmake(map);
    return 0;
}

int prudence_map_destroy(struct prudence_map *map,
                         void (*dispose)(struct prudence_map_node *object, void *argument),
                         void *argument)
{
    return map_destroy("prudence_map_destroy", __builtin_return_address(0), map, dispose, argument);
}

/* ---------------------------------------------------------------------------------- statistics */

/* Adds the nodes of one kind that are allocated and not deferred. */
static void add_nodes(const struct prudence_map *map, unsigned kind,
                      struct prudence_map_stats *stats)
{
    struct prudence_cache_stats sums;

    own_cache_stats(&map->caches[kind], &sums);
    stats->nodes += sums.objects_live;
    stats->bytes_live += sums.objects_live * map_node_bytes(kind);
    stats->replaced += sums.deferred_frees;
    stats->bytes_latent += sums.bytes_latent;
}

int prudence_map_stats_sized(struct prudence_map *map, struct prudence_map_stats *stats,
                             size_t size)
{
    struct prudence_map_stats all = {.bytes_latent = 0};

    if (!map || !stats)
        return EINVAL;
    all.objects = prudence_map_count(map);
    all.bytes_live = map->allocated;
    for (unsigned kind = 0; kind < MAP_KINDS; kind++)
        add_nodes(map, kind, &all);
    entries_add_bytes(&map->entries, &all.bytes_live, &all.bytes_latent);
    give_sized(stats, size, &all, sizeof all);
    return 0;
}
