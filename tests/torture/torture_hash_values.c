/* SPDX-License-Identifier: MIT */
/*
 * A hash table of values under many more threads than CPUs. Lasting keys always have a value, which
 * changes all the time; passing keys come and go, so the table grows and shrinks; all writers want
 * some keys. A reader finds the value of its key, either live, or retired in a grace period that is
 * not over. A writer finds the values that it put under its own keys, and of several threads that
 * put, exchange or erase one value only one gets it.
 *
 * Variants: numbers; strings; readers that stay, beside a low limit of latent memory; CPUs with a
 * lock instead of rseq.
 */
#define _GNU_SOURCE
#include <prudence/hash_values.h>

#include "support/torture_objects.h"
#include "support/updates.h"

#define READERS   6
#define WRITERS   5
#define LASTING   50
#define CONTENDED 50
#define PASSING   4000
#define KEYS      (LASTING + CONTENDED + PASSING)

struct object {
    struct torture_mark mark;
    uint64_t key; /* atomic, because a late reader reads it beside the next owner */
};

static struct prudence_hash_values *table;
static struct prudence_cache *cache;
static uint64_t lookups, walks, updates, won;
static bool strings, readers_stay;

static struct object *make(uint64_t key)
{
    struct object *object = prudence_cache_alloc(cache);

    torture_object_begin(&object->mark, &object->key, key);
    return object;
}

/* Retires a value that only this thread took out, outside of any section; NULL if there was
 * none. */
static void retire(struct object *object)
{
    if (!object)
        return;
    torture_object_retire(&object->mark);
    prudence_cache_free_deferred(cache, object);
}

static void unmake(struct object *object)
{
    torture_mark_set(&object->mark, TORTURE_NEW, 0);
    prudence_cache_free(cache, object);
}

/* --------------------------------------------------------------------------- both kinds of keys */

static size_t text_of(char *text, uint64_t key)
{
    return (size_t)snprintf(text, 64, "%llu/%.*s", (unsigned long long)key, (int)(key % 50),
                            "the rest of a key, which is longer or shorter");
}

static struct object *get(uint64_t key)
{
    char text[64];

    return strings ? prudence_hash_values_get_bytes(table, text, text_of(text, key))
                   : prudence_hash_values_get(table, key);
}

static struct object *put(uint64_t key, struct object *object)
{
    void *old = NULL;
    char text[64];

    TORTURE_CHECK(
        !(strings ? prudence_hash_values_put_bytes(table, text, text_of(text, key), object, &old)
                  : prudence_hash_values_put(table, key, object, &old)));
    return old;
}

static bool insert(uint64_t key, struct object *object)
{
    char text[64];

    return !(strings ? prudence_hash_values_add_bytes(table, text, text_of(text, key), object, NULL)
                     : prudence_hash_values_add(table, key, object, NULL));
}

static bool exchange(uint64_t key, struct object *old, struct object *fresh)
{
    char text[64];

    return !(strings
                 ? prudence_hash_values_replace_bytes(table, text, text_of(text, key), old, fresh)
                 : prudence_hash_values_replace(table, key, old, fresh));
}

static struct object *erase(uint64_t key)
{
    char text[64];

    return strings ? hash_values_erase_bytes_found(table, text, text_of(text, key))
                   : hash_values_erase_found(table, key);
}

/* -------------------------------------------------------------------------------------- readers */

static struct object *look_up(uint64_t key)
{
    struct object *object = get(key);

    if (object)
        torture_object_look(&object->mark, &object->key, key);
    return object;
}

static void walk(void)
{
    struct prudence_hash_values_walk at;
    unsigned lasting = 0;
    void *value;

    prudence_hash_values_for_each(&at, table, value)
    {
        struct object *object = value;
        uint64_t key = strings ? strtoull(at.bytes, NULL, 10) : at.key;

        torture_object_look(&object->mark, &object->key, key);
        lasting += key < LASTING;
    }
    if (lasting != LASTING)
        torture_violation("a walk finds %u of the lasting keys", lasting);
    __atomic_fetch_add(&walks, 1, __ATOMIC_RELAXED);
}

static void *reader(void *seed)
{
    uint64_t random = (uintptr_t)seed * 77 + 1;

    while (!torture_stopped()) {
        prudence_read_lock();
        for (unsigned i = 0; i < 20; i++) {
            uint64_t key = torture_below(&random, LASTING);

            if (!look_up(key))
                torture_violation("lasting key %llu is not found", (unsigned long long)key);
            look_up(torture_below(&random, KEYS));
        }
        if (torture_below(&random, 50) == 0)
            walk();
        if (readers_stay && torture_below(&random, 20) == 0)
            torture_sleep_us(2000);
        prudence_read_unlock();
        __atomic_fetch_add(&lookups, 40, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* -------------------------------------------------------------------------------------- writers */

/* Returns the address only, because a writer is in no section. */
static struct object *value_now(uint64_t key)
{
    struct object *object;

    prudence_read_lock();
    object = look_up(key);
    prudence_read_unlock();
    return object;
}

/* The old value is known, so exactly that one must go. */
static void update_own(struct object **mine, uint64_t key, uint64_t *random)
{
    struct object *old = *mine, *fresh = make(key);

    TORTURE_CHECK(value_now(key) == old);
    switch (torture_below(random, 4)) {
    case 0:
        TORTURE_CHECK(put(key, fresh) == old);
        break;
    case 1:
        TORTURE_CHECK(old ? exchange(key, old, fresh) : insert(key, fresh));
        break;
    default:
        TORTURE_CHECK(erase(key) == old);
        unmake(fresh);
        fresh = NULL;
    }
    *mine = fresh;
    retire(old);
}

/* Only one of the contending threads gets the value, and retires it; a second one would be a
 * violation. */
static void update_contended(uint64_t key, uint64_t *random)
{
    struct object *fresh = make(key), *old;

    switch (torture_below(random, key < LASTING ? 2 : 4)) {
    case 0:
        retire(put(key, fresh));
        break;
    case 1:
        old = value_now(key);
        if (old ? exchange(key, old, fresh) : insert(key, fresh)) {
            retire(old);
            __atomic_fetch_add(&won, 1, __ATOMIC_RELAXED);
        } else {
            unmake(fresh);
        }
        break;
    case 2:
        if (!insert(key, fresh))
            unmake(fresh);
        break;
    default:
        unmake(fresh);
        retire(erase(key));
    }
}

/* For a while all passing keys are used, then only the first few, so the table grows and
 * shrinks. */
static void *writer(void *seed)
{
    const uint64_t number = (uintptr_t)seed % WRITERS;
    static struct object *mine[PASSING];
    uint64_t random = (uintptr_t)seed * 99 + 7;

    while (!torture_stopped()) {
        const bool ebb = __atomic_load_n(&updates, __ATOMIC_RELAXED) / 150000 % 2;

        for (unsigned i = 0; i < 10; i++) {
            uint64_t key = torture_below(&random, PASSING) / WRITERS * WRITERS + number;

            if (!ebb || mine[key] || key < PASSING / 20)
                update_own(&mine[key], LASTING + CONTENDED + key, &random);
        }
        update_contended(torture_below(&random, LASTING + CONTENDED), &random);
        __atomic_fetch_add(&updates, 11, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------ run */

static void set_up(const char *variant)
{
    struct prudence_hash_values_attr attr = {.size = sizeof attr};

    strings = !strcmp(variant, "strings");
    readers_stay = !strcmp(variant, "limit");
    attr.flags = strings ? PRUDENCE_HASH_VALUES_BYTES : 0;
    table = prudence_hash_values_create("torture", &attr);
    cache = prudence_cache_create("torture", sizeof(struct object), NULL);
    for (uint64_t key = 0; key < LASTING; key++)
        TORTURE_CHECK(insert(key, make(key)));
}

static void dispose(void *value, void *left)
{
    retire(value);
    --*(uint64_t *)left;
}

static void tear_down(void)
{
    uint64_t left = prudence_hash_values_count(table);

    prudence_read_lock();
    walk();
    prudence_read_unlock();
    TORTURE_CHECK(left >= LASTING && left <= KEYS);
    TORTURE_CHECK(prudence_hash_values_destroy(table, dispose, &left) == 0);
    TORTURE_CHECK(left == 0);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
}

static int torture(const char *variant, double seconds)
{
    uint64_t end = torture_now() + (uint64_t)(seconds * 1e9);
    struct torture_crew crew;
    struct prudence_hash_stats stats;

    set_up(variant);
    torture_crew_start(&crew, reader, READERS, writer, WRITERS, 1);
    torture_sleep_until(end);
    torture_wait_for(&walks);
    torture_wait_for(&won);
    torture_crew_stop(&crew);
    prudence_hash_values_stats(table, &stats);
    printf(
        ": updates=%llu exchanges=%llu lookups=%llu walks=%llu grows=%llu shrinks=%llu "
        "retired=%llu",
        (unsigned long long)updates, (unsigned long long)won, (unsigned long long)lookups,
        (unsigned long long)walks, (unsigned long long)stats.grows,
        (unsigned long long)stats.shrinks, (unsigned long long)torture_found_retired);
    if (readers_stay)
        torture_check_limit();
    tear_down();
    return torture_end(variant);
}

int main(int argc, char **argv)
{
    static const struct torture_variant variants[] = {
        {"numbers", ""},
        {"strings", ""},
        {"limit", "latent_limit=1M,wait_max=60s"},
        {"lock", "rseq=0"},
    };

    return torture_main(argc, argv, variants, sizeof variants / sizeof variants[0], torture);
}
