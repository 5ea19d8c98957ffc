/* SPDX-License-Identifier: MIT */
/*
 * A map of values under many more threads than CPUs (torture_map.h). The map's own copies of keys
 * are whole wherever they are found.
 *
 * Variants: numbers, or strings from a few bytes to more than a slab has; readers with fences; CPUs
 * with a lock instead of rseq; forks, whose children use the map; and a low latent_limit with
 * readers that stay, where no wait reaches wait_max, and nothing excuses a byte above the limit.
 */
#define _GNU_SOURCE
#include <prudence/map_values.h>

#define TEXT              600
#define VALUES_TABLE      struct prudence_map_values
#define VALUES_CALL(name) prudence_map_values_##name
#define VALUES_TEXT       TEXT
#include "support/torture_values.h"

static const struct prudence_map *map; /* the table's nodes */
static const unsigned shift = 0;
static uint64_t forks;

#include "support/torture_map.h"

/* Makes a text in the order of the numbers, for all sizes of entries. */
static size_t text_of(char *text, uint64_t key)
{
    const size_t more = key % 32 == 5 ? TEXT - 100 : key % 8 * 32;
    const int length = snprintf(text, TEXT, "common/%05llu/", (unsigned long long)key);

    memset(text + length, 'a' + (int)(key % 26), more);
    return (size_t)length + more;
}

/* The value's key equals the map's. */
static uint64_t look_at(const struct prudence_map_node *node)
{
    const uint64_t key = object_seen(prudence_map_values_value(node));
    char text[TEXT];

    if (strings) {
        const struct prudence_map_bytes *bytes =
            prudence_map_entry(node, const struct prudence_map_bytes, node);

        if (bytes->length != text_of(text, key) ||
            memcmp((const void *)(uintptr_t)node->key, text, bytes->length))
            torture_violation("the map's copy of key %llu is not whole", (unsigned long long)key);
    } else if (node->key != key) {
        torture_violation("key %llu has a value of %llu", (unsigned long long)node->key,
                          (unsigned long long)key);
    }
    return key;
}

/* ---------------------------------------------------------------------------------------- forks */

/* The child's only thread finds the lasting keys, and checks that each key has a whole value,
 * which it takes out. */
static int be_child(void)
{
    for (uint64_t key = 0; key < KEYS; key++) {
        struct torture_object *object = value_now(key);

        if (key % SPACING == 0 && object != lasting[key / SPACING])
            torture_violation("a child does not find lasting key %llu", (unsigned long long)key);
        if (erase(key) != object || insert(key, lasting[0]) || put(key, lasting[1]) != lasting[0])
            torture_violation("a child cannot change key %llu", (unsigned long long)key);
    }
    return torture_violations ? 4 : 0;
}

static void fork_until(uint64_t end)
{
    while (torture_now() < end || !forks) {
        pid_t child = fork();
        int status;

        if (child == 0)
            _exit(be_child());
        status = torture_wait(child, 100);
        if (status)
            torture_violation("child %d ended with status %#x", (int)child, (unsigned)status);
        forks++;
    }
}

/* ------------------------------------------------------------------------------------------ run */

static int torture(const char *variant, double seconds)
{
    uint64_t end = torture_end_of(seconds);
    struct prudence_map_values_attr attr = {.size = sizeof attr};
    struct prudence_map_stats stats;

    readers_stay = !strcmp(variant, "limit");
    strings = !strcmp(variant, "strings") || !strcmp(variant, "fork") || readers_stay;
    attr.flags = strings ? PRUDENCE_MAP_VALUES_BYTES : 0;
    table = prudence_map_values_create("torture", &attr);
    map = prudence_map_values_nodes(table);
    cache = prudence_cache_create("torture", sizeof(struct torture_object), NULL);
    add_lasting();
    torture_start(reader, READERS, 1);
    torture_start(writer, WRITERS, 0);
    if (!strcmp(variant, "fork"))
        fork_until(end);
    torture_sleep_until(end);
    torture_wait_for(&walks);
    torture_join();
    empty();
    prudence_map_values_stats(table, &stats);
    TORTURE_CHECK(stats.objects == 0 && stats.nodes == 0);
    TORTURE_CHECK(prudence_map_values_destroy(table, NULL, NULL) == 0);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
    if (readers_stay)
        torture_check_limit();
    TORTURE_SAY({"updates", updates}, {"lookups", lookups}, {"walks", walks}, {"forks", forks},
                {"retired", torture_found_retired});
    return torture_end(variant);
}

TORTURE(torture, {"numbers", ""}, {"strings", ""}, {"fenced", "reader_mode=fenced"},
        {"lock", "rseq=0"}, {"fork", ""}, {"limit", "latent_limit=2M,wait_max=60s"})
