/* SPDX-License-Identifier: MIT */
/*
 * A map of values under many more threads than CPUs. Lasting keys always have their value, and
 * walks skip none. Other values come, go and replace each other: a value that is found belongs to
 * its key, and is live, or was retired in a grace period that is not over; a writer finds its own
 * value until it takes it out; of several threads that put, exchange or erase one key's value, one
 * gets it. The map's own copies of keys are whole wherever they are found.
 *
 * Variants: numbers, or strings from a few bytes to more than a slab has; readers with fences; CPUs
 * with a lock instead of rseq; forks, whose children use the map; and a low latent_limit with
 * readers that stay, where no wait reaches wait_max, and nothing excuses a byte above the limit.
 */
#define _GNU_SOURCE
#include <prudence/map_values.h>

#include "support/torture_objects.h"
#include "support/updates.h"

#define READERS 8
#define WRITERS 6
#define LASTING 100
#define SPACING                                                                                    \
    20 /* of this many keys one is lasting, one contended, and the writers share the others */
#define KEYS      (LASTING * SPACING)
#define CONTENDED 3 /* modulo SPACING */
#define TEXT_MOST 600

struct object {
    struct torture_mark mark;
    uint64_t key; /* atomic, because a late reader reads it beside the next owner */
};

static struct prudence_map_values *map;
static struct prudence_cache *cache;
static struct object *lasting[LASTING];
static uint64_t lookups, walks, updates, forks;
static bool strings, readers_stay;

/* Makes a text in the order of the numbers, for all sizes of entries. */
static size_t text_of(char *text, uint64_t key)
{
    const size_t more = key % 32 == 5 ? TEXT_MOST - 100 : key % 8 * 32;
    const int length = snprintf(text, TEXT_MOST, "common/%05llu/", (unsigned long long)key);

    memset(text + length, 'a' + (int)(key % 26), more);
    return (size_t)length + more;
}

static struct object *make(uint64_t key)
{
    struct object *object = prudence_cache_alloc(cache);

    torture_object_begin(&object->mark, &object->key, key);
    return object;
}

/* Retires a value that only this thread took out, outside of any section. */
static void retire(struct object *object)
{
    torture_object_retire(&object->mark);
    prudence_cache_free_deferred(cache, object);
}

/* Frees an object that was in no map. */
static void unmake(struct object *object)
{
    torture_mark_set(&object->mark, TORTURE_NEW, 0);
    prudence_cache_free(cache, object);
}

/* --------------------------------------------------------------------------- both kinds of keys */

static struct object *get(uint64_t key)
{
    char text[TEXT_MOST];

    return strings ? prudence_map_values_get_bytes(map, text, text_of(text, key))
                   : prudence_map_values_get(map, key);
}

static struct object *put(uint64_t key, struct object *fresh)
{
    char text[TEXT_MOST];
    void *old;

    TORTURE_CHECK((strings
                       ? prudence_map_values_put_bytes(map, text, text_of(text, key), fresh, &old)
                       : prudence_map_values_put(map, key, fresh, &old)) == 0);
    return old;
}

/* Returns NULL if the object is in the map now. */
static struct object *insert(uint64_t key, struct object *fresh)
{
    char text[TEXT_MOST];
    void *there = NULL;
    int error = strings
                    ? prudence_map_values_add_bytes(map, text, text_of(text, key), fresh, &there)
                    : prudence_map_values_add(map, key, fresh, &there);

    TORTURE_CHECK(error == (there ? EEXIST : 0));
    return there;
}

static bool exchange(uint64_t key, struct object *old, struct object *fresh)
{
    char text[TEXT_MOST];
    int error = strings
                    ? prudence_map_values_replace_bytes(map, text, text_of(text, key), old, fresh)
                    : prudence_map_values_replace(map, key, old, fresh);

    TORTURE_CHECK(error == 0 || error == ENOENT);
    return !error;
}

static struct object *erase(uint64_t key)
{
    char text[TEXT_MOST];

    return strings ? map_values_erase_bytes_found(map, text, text_of(text, key))
                   : map_values_erase_found(map, key);
}

/* -------------------------------------------------------------------------------------- readers */

/* Checks a value that the reader has just found, inside its section: its key equals the map's. */
static uint64_t look_at(const struct prudence_map_node *node)
{
    const struct object *object = prudence_map_values_value(node);
    const uint64_t key = torture_object_seen(&object->mark, &object->key);
    char text[TEXT_MOST];

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

static struct object *look_up(uint64_t key)
{
    struct object *object = get(key);

    if (object)
        torture_object_look(&object->mark, &object->key, key);
    return object;
}

static void read_keys(uint64_t *random)
{
    prudence_read_lock();
    for (unsigned i = 0; i < 20; i++) {
        uint64_t key = torture_below(random, KEYS);

        if (look_up(key / SPACING * SPACING) != lasting[key / SPACING])
            torture_violation("the lasting key below %llu is not found", (unsigned long long)key);
        look_up(key);
    }
    if (readers_stay && torture_below(random, 50) == 0)
        torture_sleep_us(20000);
    prudence_read_unlock();
    __atomic_fetch_add(&lookups, 40, __ATOMIC_RELAXED);
}

/* Walks from a key on, for a while or to the end. */
static void walk(uint64_t *random)
{
    uint64_t from = torture_below(random, KEYS), least = from, most = torture_below(random, 300);
    uint64_t next = (from + SPACING - 1) / SPACING * SPACING; /* the next lasting key */
    const struct prudence_map *nodes = prudence_map_values_nodes(map);
    struct prudence_map_walk at;
    struct prudence_map_node *node;
    char text[TEXT_MOST];

    prudence_read_lock();
    node = strings ? prudence_map_first_from_bytes(&at, nodes, text, text_of(text, from))
                   : prudence_map_first_from(&at, nodes, from);
    for (; node && most--; node = prudence_map_next(&at)) {
        uint64_t key = look_at(node);

        if (key < least || key > next)
            torture_violation("a walk finds %llu, not %llu to %llu", (unsigned long long)key,
                              (unsigned long long)least, (unsigned long long)next);
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

/* Updates a key that no other thread updates, so the thread knows its state. */
static void update_own(struct object **mine, uint64_t key, uint64_t *random)
{
    struct object *old = *mine, *fresh;
    unsigned how = torture_below(random, 4);

    if (old && how < 2) {
        TORTURE_CHECK(erase(key) == old);
        *mine = NULL;
        retire(old);
        return;
    }
    fresh = make(key);
    if (old && how == 2) {
        TORTURE_CHECK(insert(key, fresh) == old);
        TORTURE_CHECK(!exchange(key, fresh, old));
        TORTURE_CHECK(exchange(key, old, fresh));
    } else if (!old && how == 2) {
        TORTURE_CHECK(insert(key, fresh) == NULL);
    } else {
        TORTURE_CHECK(put(key, fresh) == old);
    }
    *mine = fresh;
    if (old)
        retire(old);
}

/* Updates a key that all writers want: one thread takes out each value that enters the map. */
static void update_contended(uint64_t *random)
{
    uint64_t key = (uint64_t)torture_below(random, LASTING) * SPACING + CONTENDED;
    struct object *fresh = make(key), *old = NULL;

    switch (torture_below(random, 3)) {
    case 0:
        old = put(key, fresh);
        break;
    case 1:
        if (insert(key, fresh)) {
            unmake(fresh);
            old = erase(key);
        }
        break;
    default:
        old = get(key);
        if (!old || !exchange(key, old, fresh)) {
            unmake(fresh);
            old = NULL;
        }
    }
    if (old)
        retire(old);
}

static void *writer(void *number)
{
    const unsigned own = (unsigned)(uintptr_t)number;
    uint64_t random = own + 4711;
    struct object **mine = calloc(KEYS, sizeof *mine);

    while (!torture_stopped()) {
        for (unsigned i = 0; i < 50; i++) {
            uint64_t key = torture_below(&random, KEYS);
            unsigned place = (unsigned)(key % SPACING);

            if (place != 0 && place != CONTENDED && place % WRITERS == own)
                update_own(&mine[key], key, &random);
        }
        update_contended(&random);
        __atomic_fetch_add(&updates, 51 / WRITERS + 1, __ATOMIC_RELAXED);
    }
    for (uint64_t key = 0; key < KEYS; key++)
        if (mine[key]) {
            TORTURE_CHECK(erase(key) == mine[key]);
            retire(mine[key]);
        }
    free(mine);
    return NULL;
}

/* ---------------------------------------------------------------------------------------- forks */

/* The child's only thread finds the lasting keys, and checks that each key has a whole value,
 * which it takes out. */
static int be_child(void)
{
    for (uint64_t key = 0; key < KEYS; key++) {
        struct object *object;

        prudence_read_lock();
        object = look_up(key);
        prudence_read_unlock();
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

static void set_up(const char *variant)
{
    struct prudence_map_values_attr attr = {.size = sizeof attr};

    readers_stay = !strcmp(variant, "limit");
    strings = !strcmp(variant, "strings") || !strcmp(variant, "fork") || readers_stay;
    attr.flags = strings ? PRUDENCE_MAP_VALUES_BYTES : 0;
    map = prudence_map_values_create("torture", &attr);
    cache = prudence_cache_create("torture", sizeof(struct object), NULL);
    for (unsigned i = 0; i < LASTING; i++) {
        lasting[i] = make((uint64_t)i * SPACING);
        TORTURE_CHECK(put((uint64_t)i * SPACING, lasting[i]) == NULL);
    }
}

static void tear_down(void)
{
    struct prudence_map_stats stats;
    unsigned left = 0;

    for (uint64_t key = 0; key < KEYS; key++) {
        struct object *object = erase(key);

        if (!object)
            continue;
        TORTURE_CHECK(key % SPACING == 0 || key % SPACING == CONTENDED);
        retire(object);
        left++;
    }
    TORTURE_CHECK(left >= LASTING && left <= 2 * LASTING);
    prudence_trim(); /* nodes in quarantine, or resting by shuffle, count until then */
    prudence_map_values_stats(map, &stats);
    TORTURE_CHECK(stats.objects == 0 && stats.nodes == 0);
    TORTURE_CHECK(prudence_map_values_destroy(map, NULL, NULL) == 0);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
}

static int torture(const char *variant, double seconds)
{
    uint64_t end = torture_now() + (uint64_t)(seconds * 1e9);
    struct torture_crew crew;

    set_up(variant);
    torture_crew_start(&crew, reader, READERS, writer, WRITERS, 0);
    if (!strcmp(variant, "fork"))
        fork_until(end);
    torture_sleep_until(end);
    torture_wait_for(&walks);
    torture_crew_stop(&crew);
    tear_down();
    if (readers_stay)
        torture_check_limit();
    printf(": updates=%llu lookups=%llu walks=%llu forks=%llu retired=%llu",
           (unsigned long long)updates, (unsigned long long)lookups, (unsigned long long)walks,
           (unsigned long long)forks, (unsigned long long)torture_found_retired);
    return torture_end(variant);
}

int main(int argc, char **argv)
{
    static const struct torture_variant variants[] = {
        {"numbers", ""},    {"strings", ""}, {"fenced", "reader_mode=fenced"},
        {"lock", "rseq=0"}, {"fork", ""},    {"limit", "latent_limit=2M,wait_max=60s"},
    };

    return torture_main(argc, argv, variants, sizeof variants / sizeof variants[0], torture);
}
