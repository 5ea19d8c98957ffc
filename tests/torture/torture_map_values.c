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

#define VALUES_TABLE      struct prudence_map_values
#define VALUES_CALL(name) prudence_map_values_##name
#define VALUES_TEXT       600
#include "support/torture_values.h"

#define READERS 8
#define WRITERS 6
#define LASTING 100
#define SPACING                                                                                    \
    20 /* of this many keys one is lasting, one contended, and the writers share the others */
#define KEYS      (LASTING * SPACING)
#define CONTENDED 3 /* modulo SPACING */

static struct torture_object *lasting[LASTING];
static uint64_t forks;

/* Makes a text in the order of the numbers, for all sizes of entries. */
static size_t text_of(char *text, uint64_t key)
{
    const size_t more = key % 32 == 5 ? VALUES_TEXT - 100 : key % 8 * 32;
    const int length = snprintf(text, VALUES_TEXT, "common/%05llu/", (unsigned long long)key);

    memset(text + length, 'a' + (int)(key % 26), more);
    return (size_t)length + more;
}

/* -------------------------------------------------------------------------------------- readers */

/* Checks a value that the reader has just found, inside its section: its key equals the map's. */
static uint64_t look_at(const struct prudence_map_node *node)
{
    const uint64_t key = object_seen(prudence_map_values_value(node));
    char text[VALUES_TEXT];

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
    const struct prudence_map *nodes = prudence_map_values_nodes(table);
    struct prudence_map_walk at;
    struct prudence_map_node *node;
    char text[VALUES_TEXT];

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

static void *writer(void *number)
{
    const unsigned own = (unsigned)(uintptr_t)number;
    uint64_t random = own + 4711;
    struct torture_object **mine = calloc(KEYS, sizeof *mine);

    while (!torture_stopped()) {
        for (unsigned i = 0; i < 50; i++) {
            uint64_t key = torture_below(&random, KEYS);
            unsigned place = (unsigned)(key % SPACING);

            if (place != 0 && place != CONTENDED && place % WRITERS == own)
                update_own(&mine[key], key, &random);
        }
        update_contended((uint64_t)torture_below(&random, LASTING) * SPACING + CONTENDED, false,
                         &random);
        __atomic_fetch_add(&updates, 51 / WRITERS + 1, __ATOMIC_RELAXED);
    }
    for (uint64_t key = 0; key < KEYS; key++)
        if (mine[key]) {
            TORTURE_CHECK(erase(key) == mine[key]);
            object_retire(mine[key]);
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
        struct torture_object *object;

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
    table = prudence_map_values_create("torture", &attr);
    cache = prudence_cache_create("torture", sizeof(struct torture_object), NULL);
    for (unsigned i = 0; i < LASTING; i++) {
        lasting[i] = object_make((uint64_t)i * SPACING);
        TORTURE_CHECK(put((uint64_t)i * SPACING, lasting[i]) == NULL);
    }
}

static void tear_down(void)
{
    struct prudence_map_stats stats;
    unsigned left = 0;

    for (uint64_t key = 0; key < KEYS; key++) {
        struct torture_object *object = erase(key);

        if (!object)
            continue;
        TORTURE_CHECK(key % SPACING == 0 || key % SPACING == CONTENDED);
        object_retire(object);
        left++;
    }
    TORTURE_CHECK(left >= LASTING && left <= 2 * LASTING);
    prudence_trim(); /* nodes in quarantine, or resting by shuffle, count until then */
    prudence_map_values_stats(table, &stats);
    TORTURE_CHECK(stats.objects == 0 && stats.nodes == 0);
    TORTURE_CHECK(prudence_map_values_destroy(table, NULL, NULL) == 0);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
}

static int torture(const char *variant, double seconds)
{
    uint64_t end = torture_end_of(seconds);

    set_up(variant);
    torture_start(reader, READERS, 1);
    torture_start(writer, WRITERS, 0);
    if (!strcmp(variant, "fork"))
        fork_until(end);
    torture_sleep_until(end);
    torture_wait_for(&walks);
    torture_join();
    tear_down();
    if (readers_stay)
        torture_check_limit();
    TORTURE_SAY({"updates", updates}, {"lookups", lookups}, {"walks", walks}, {"forks", forks},
                {"retired", torture_found_retired});
    return torture_end(variant);
}

TORTURE(torture, {"numbers", ""}, {"strings", ""}, {"fenced", "reader_mode=fenced"},
        {"lock", "rseq=0"}, {"fork", ""}, {"limit", "latent_limit=2M,wait_max=60s"})
