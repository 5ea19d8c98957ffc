/* SPDX-License-Identifier: MIT */
/*
 * A hash table of values under many more threads than CPUs. Lasting keys always have a value, which
 * changes all the time; passing keys come and go, so the table grows and shrinks; all writers want
 * some keys. A reader finds the value of its key, either live, or retired in a grace period that is
 * not over. A writer finds the values that it put under its own keys, and of several threads that
 * put, exchange or erase one value only one gets it.
 *
 * Variants: numbers; strings; readers that stay, with a low limit of latent memory; CPUs with a
 * lock instead of rseq.
 */
#define _GNU_SOURCE
#include <prudence/hash_values.h>

#define VALUES_TABLE      struct prudence_hash_values
#define VALUES_CALL(name) prudence_hash_values_##name
#define VALUES_TEXT       64
#include "support/torture_values.h"

#define READERS   6
#define WRITERS   5
#define LASTING   50
#define CONTENDED 50
#define PASSING   4000
#define KEYS      (LASTING + CONTENDED + PASSING)

static size_t text_of(char *text, uint64_t key)
{
    return (size_t)snprintf(text, 64, "%llu/%.*s", (unsigned long long)key, (int)(key % 50),
                            "the rest of a key, which is longer or shorter");
}

/* -------------------------------------------------------------------------------------- readers */

static void walk(void)
{
    struct prudence_hash_values_walk at;
    unsigned lasting = 0;
    void *value;

    prudence_hash_values_for_each(&at, table, value)
    {
        uint64_t key = strings ? strtoull(at.bytes, NULL, 10) : at.key;

        object_of_key(value, key);
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

/* For a while all passing keys are used, then only the first few, so the table grows and
 * shrinks. */
static void *writer(void *seed)
{
    const uint64_t number = (uintptr_t)seed % WRITERS;
    static struct torture_object *mine[PASSING];
    uint64_t random = (uintptr_t)seed * 99 + 7, contended;

    while (!torture_stopped()) {
        const bool ebb = __atomic_load_n(&updates, __ATOMIC_RELAXED) / 150000 % 2;

        for (unsigned i = 0; i < 10; i++) {
            uint64_t key = torture_below(&random, PASSING) / WRITERS * WRITERS + number;

            if (!ebb || mine[key] || key < PASSING / 20)
                update_own(&mine[key], LASTING + CONTENDED + key, &random);
        }
        contended = torture_below(&random, LASTING + CONTENDED);
        update_contended(contended, contended < LASTING, &random);
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
    cache = prudence_cache_create("torture", sizeof(struct torture_object), NULL);
    for (uint64_t key = 0; key < LASTING; key++)
        TORTURE_CHECK(!insert(key, object_make(key)));
}

static void dispose(void *value, void *left)
{
    object_retire(value);
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
    uint64_t end = torture_end_of(seconds);
    struct prudence_hash_stats stats;

    set_up(variant);
    torture_start(reader, READERS, 1);
    torture_start(writer, WRITERS, 1);
    torture_sleep_until(end);
    torture_wait_for(&walks);
    torture_wait_for(&won);
    torture_join();
    prudence_hash_values_stats(table, &stats);
    TORTURE_SAY({"updates", updates}, {"exchanges", won}, {"lookups", lookups}, {"walks", walks},
                {"grows", stats.grows}, {"shrinks", stats.shrinks},
                {"retired", torture_found_retired});
    if (readers_stay)
        torture_check_limit();
    tear_down();
    return torture_end(variant);
}

TORTURE(torture, {"numbers", ""}, {"strings", ""}, {"limit", "latent_limit=1M,wait_max=60s"},
        {"lock", "rseq=0"})
