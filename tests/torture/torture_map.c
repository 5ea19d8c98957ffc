/* SPDX-License-Identifier: MIT */
/*
 * The ordered map under many more threads than CPUs. Lasting keys are always found, by walks
 * exactly once, and neither ceiling nor floor skips one. Walks rise. Passing keys come and go
 * between them: an object that is found is live, or was retired in a grace period that is not over;
 * a writer finds an object that it added until it removes it; of several threads that remove one
 * key, one gets the object.
 *
 * Variants: numbers side by side, or far from each other, or strings with common beginnings;
 * readers with fences; CPUs with a lock instead of rseq.
 */
#define _GNU_SOURCE
#include <prudence/map.h>

#include "support/torture_objects.h"
#include "support/updates.h"

#define READERS 8
#define WRITERS 6
#define SPACING                                                                                    \
    40 /* of this many keys one is lasting, one contended, and the writers share the others */
#define LASTING   150
#define KEYS      (LASTING * SPACING)
#define CONTENDED 3 /* modulo SPACING: the keys that all writers use */

struct object {
    struct torture_object head;
    struct prudence_map_bytes node;
    char text[24];
};

static struct prudence_map *map;
static struct object *lasting[LASTING];
static bool strings;
static unsigned shift;

static int text_of(char *text, uint64_t key)
{
    return snprintf(text, 24, "%u/common/%05llu", (unsigned)(key / 1000), (unsigned long long)key);
}

static struct object *object_of(struct prudence_map_node *node)
{
    return node ? prudence_map_entry(node, struct object, node.node) : NULL;
}

static struct object *make(uint64_t key)
{
    struct object *object = object_make(key);

    if (strings)
        prudence_map_set_bytes(&object->node, object->text, (size_t)text_of(object->text, key));
    else
        object->node.node.key = key << shift;
    return object;
}

/* -------------------------------------------------------------------------------------- readers */

enum search { LOOKUP, CEILING, FLOOR };

static struct object *search(enum search what, uint64_t key)
{
    char text[24];
    size_t length = strings ? (size_t)text_of(text, key) : 0;
    struct prudence_map_node *node;

    if (what == LOOKUP)
        node = strings ? prudence_map_lookup_bytes(map, text, length)
                       : prudence_map_lookup(map, key << shift);
    else if (what == CEILING)
        node = strings ? prudence_map_ceiling_bytes(map, text, length)
                       : prudence_map_ceiling(map, key << shift);
    else
        node = strings ? prudence_map_floor_bytes(map, text, length)
                       : prudence_map_floor(map, key << shift);
    return object_of(node);
}

static struct object *look_up(uint64_t key)
{
    return object_of_key(search(LOOKUP, key), key);
}

static void read_keys(uint64_t *random)
{
    prudence_read_lock();
    for (unsigned i = 0; i < 10; i++) {
        uint64_t key = torture_below(random, KEYS - SPACING);
        const struct object *above = search(CEILING, key), *below = search(FLOOR, key);
        uint64_t next = (key + SPACING - 1) / SPACING * SPACING, last = key / SPACING * SPACING;

        if (look_up(last) != lasting[last / SPACING])
            torture_violation("lasting key %llu is not found", (unsigned long long)last);
        look_up(key);
        if (!above || object_seen(above) < key || object_seen(above) > next)
            torture_violation("the ceiling of %llu is not before %llu", (unsigned long long)key,
                              (unsigned long long)next);
        if (!below || object_seen(below) > key || object_seen(below) < last)
            torture_violation("the floor of %llu is not behind %llu", (unsigned long long)key,
                              (unsigned long long)last);
    }
    prudence_read_unlock();
    __atomic_fetch_add(&lookups, 40, __ATOMIC_RELAXED);
}

/* Walks from a key on, for a while or to the end. */
static void walk(uint64_t *random)
{
    uint64_t from = torture_below(random, KEYS), least = from, most = torture_below(random, 600);
    uint64_t next = (from + SPACING - 1) / SPACING * SPACING; /* the next lasting key */
    struct prudence_map_walk at;
    struct prudence_map_node *node;
    char text[24];
    size_t length = strings ? (size_t)text_of(text, from) : 0;

    prudence_read_lock();
    node = strings ? prudence_map_first_from_bytes(&at, map, text, length)
                   : prudence_map_first_from(&at, map, from << shift);
    for (; node && most--; node = prudence_map_next(&at)) {
        uint64_t key = object_seen(object_of(node));

        if (key < least)
            torture_violation("a walk does not rise: %llu", (unsigned long long)key);
        if (key > next)
            torture_violation("a walk does not find %llu", (unsigned long long)next);
        if (key == next)
            next += SPACING;
        least = key + 1;
    }
    if (!node && next < KEYS)
        torture_violation("a walk ends before %llu", (unsigned long long)next);
    prudence_read_unlock();
    __atomic_fetch_add(&walks, 1, __ATOMIC_RELAXED);
}

static void *reader(void *seed)
{
    uint64_t random = (uintptr_t)seed * 77 + 1;

    while (!torture_stopped()) {
        read_keys(&random);
        if (torture_below(&random, 4) == 0)
            walk(&random);
    }
    return NULL;
}

/* -------------------------------------------------------------------------------------- writers */

static struct object *remove_key(uint64_t key)
{
    char text[24];

    if (!strings)
        return object_of(map_erase_found(map, key << shift));
    return object_of(map_erase_bytes_found(map, text, (size_t)text_of(text, key)));
}

/* Updates a key that no other thread updates, so the thread knows its state. */
static void update_own(struct object **mine, uint64_t key, uint64_t *random)
{
    struct object *old = *mine;
    struct prudence_map_node *replaced = NULL;
    unsigned how = torture_below(random, 4);

    prudence_read_lock();
    if (look_up(key) != old)
        torture_violation("key %llu is not in the state that this thread made",
                          (unsigned long long)key);
    prudence_read_unlock();
    if (old && how < 2) {
        TORTURE_CHECK(remove_key(key) == old);
        *mine = NULL;
    } else if (old && how == 2) {
        *mine = make(key);
        TORTURE_CHECK(prudence_map_replace(map, &old->node.node, &(*mine)->node.node) == 0);
    } else {
        *mine = make(key);
        if (old || how == 3)
            TORTURE_CHECK(prudence_map_put(map, &(*mine)->node.node, &replaced) == 0);
        else
            TORTURE_CHECK(prudence_map_add(map, &(*mine)->node.node, NULL) == 0);
        TORTURE_CHECK(!replaced == !old && (!old || object_of(replaced) == old));
    }
    object_retire(old);
}

/* Updates a key that all writers want: there is one object at a time, and one thread gets it. */
static void update_contended(uint64_t *random)
{
    uint64_t key = (uint64_t)torture_below(random, LASTING) * SPACING + CONTENDED;
    struct object *fresh = make(key);

    if (prudence_map_add(map, &fresh->node.node, NULL) == 0)
        return;
    object_unmake(fresh);
    object_retire(remove_key(key));
}

/* For a while all keys are used, then the first few of each group, so nodes grow and shrink. */
static void *writer(void *number)
{
    const unsigned own = (unsigned)(uintptr_t)number;
    uint64_t random = own + 4711;
    struct object **mine = calloc(KEYS, sizeof *mine);

    while (!torture_stopped()) {
        bool ebb = __atomic_load_n(&updates, __ATOMIC_RELAXED) / 50000 % 2;

        for (unsigned i = 0; i < 50; i++) {
            uint64_t key = torture_below(&random, KEYS);
            unsigned place = (unsigned)(key % SPACING);

            if (place == 0 || place == CONTENDED || place % WRITERS != own)
                continue;
            if (!ebb || mine[key] || place < 8)
                update_own(&mine[key], key, &random);
        }
        update_contended(&random);
        __atomic_fetch_add(&updates, 51 / WRITERS + 1, __ATOMIC_RELAXED);
    }
    for (uint64_t key = 0; key < KEYS; key++) {
        if (!mine[key])
            continue;
        TORTURE_CHECK(remove_key(key) == mine[key]);
        object_retire(mine[key]);
    }
    free(mine);
    return NULL;
}

/* ------------------------------------------------------------------------------------------ run */

static void set_up(const char *variant)
{
    struct prudence_map_attr attr = {.size = sizeof attr};

    strings = !strcmp(variant, "strings");
    shift = strcmp(variant, "dense") ? 37 : 0;
    attr.flags = strings ? PRUDENCE_MAP_BYTES : 0;
    map = prudence_map_create("torture", &attr);
    cache = prudence_cache_create("torture", sizeof(struct object), NULL);
    for (unsigned i = 0; i < LASTING; i++) {
        lasting[i] = make((uint64_t)i * SPACING);
        TORTURE_CHECK(prudence_map_add(map, &lasting[i]->node.node, NULL) == 0);
    }
}

static void tear_down(void)
{
    struct prudence_map_stats stats;
    unsigned left = 0;

    for (uint64_t key = 0; key < KEYS; key++) {
        struct object *object = remove_key(key);

        if (!object)
            continue;
        TORTURE_CHECK(key % SPACING == 0 || key % SPACING == CONTENDED);
        TORTURE_CHECK(!remove_key(key));
        object_retire(object);
        left++;
    }
    TORTURE_CHECK(left >= LASTING && left <= 2 * LASTING);
    prudence_trim(); /* nodes in quarantine, or resting by shuffle, count until then */
    prudence_map_stats(map, &stats);
    TORTURE_CHECK(stats.objects == 0 && stats.nodes == 0);
    TORTURE_CHECK(prudence_map_destroy(map, NULL, NULL) == 0);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
}

static int torture(const char *variant, double seconds)
{
    uint64_t end = torture_end_of(seconds);
    struct prudence_map_stats stats;

    set_up(variant);
    torture_start(reader, READERS, 1);
    torture_start(writer, WRITERS, 0);
    torture_sleep_until(end);
    torture_wait_for(&walks);
    torture_join();
    prudence_map_stats(map, &stats);
    tear_down();
    TORTURE_SAY({"updates", updates}, {"lookups", lookups}, {"walks", walks},
                {"retired", torture_found_retired}, {"nodes replaced", stats.replaced});
    return torture_end(variant);
}

TORTURE(torture, {"dense", ""}, {"sparse", ""}, {"strings", ""}, {"fenced", "reader_mode=fenced"},
        {"lock", "rseq=0"})
