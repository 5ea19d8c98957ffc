/* SPDX-License-Identifier: MIT */
/*
 * The hash table and the table of ids under many more threads than CPUs. Lasting objects are always
 * found, by walks exactly once. Passing ones come and go: an object that is found is live, or was
 * retired in a grace period that is not over; a writer finds an object that it added until it
 * removes it; of several threads that remove one object, one succeeds.
 *
 * Variants: the table follows the objects, whose number rises and falls; or a thread resizes it all
 * the time; or most keys share few hashes.
 */
#define _GNU_SOURCE
#include <prudence/id_table.h>

#include "support/torture_hash.h"

#define READERS   10
#define WRITERS   6
#define LASTING   300
#define PASSING   4000 /* keys of each writer */
#define CONTENDED 8    /* keys of all writers */
#define IDS       2000

static struct prudence_hash *table;
static struct prudence_id_table *ids;
static struct object *lasting[LASTING];

/* Keys: lasting ones are below LASTING, then contended ones, then the keys of each writer. */
#define KEY_CONTENDED    ((uint64_t)LASTING)
#define KEY_OF_WRITER(w) ((uint64_t)LASTING + CONTENDED + (uint64_t)(w)*PASSING)
#define KEYS             KEY_OF_WRITER(WRITERS)

/* -------------------------------------------------------------------------------------- readers */

static struct object *look_up(uint64_t key)
{
    return object_of_key(object_of(prudence_hash_lookup(table, hash_of_key(key), has_key, &key)),
                         key);
}

static void read_keys(uint64_t *random)
{
    uint64_t key;

    prudence_read_lock();
    for (unsigned i = 0; i < 20; i++) {
        key = torture_below(random, LASTING);
        if (look_up(key) != lasting[key])
            torture_violation("lasting key %llu is not found", (unsigned long long)key);
        look_up(torture_below(random, (unsigned)KEYS));
    }
    prudence_read_unlock();
    __atomic_fetch_add(&lookups, 40, __ATOMIC_RELAXED);
}

static void walk(void)
{
    unsigned char visits[KEYS] = {0};
    struct prudence_hash_walk at;
    struct prudence_hash_node *node;

    prudence_read_lock();
    prudence_hash_for_each(&at, table, node)
    {
        uint64_t key = object_seen(object_of(node));

        if (key >= KEYS)
            torture_violation("key %llu is found", (unsigned long long)key);
        else if (visits[key]++ && key < LASTING)
            torture_violation("a walk finds key %llu twice", (unsigned long long)key);
    }
    prudence_read_unlock();
    for (unsigned i = 0; i < LASTING; i++)
        if (!visits[i])
            torture_violation("a walk does not find key %u", i);
    __atomic_fetch_add(&walks, 1, __ATOMIC_RELAXED);
}

static void read_ids(uint64_t *random)
{
    uint32_t id;
    void *found;

    prudence_read_lock();
    for (unsigned i = 0; i < 40; i++) {
        const struct object *object;

        id = torture_below(random, 2 * IDS);
        object = prudence_id_table_lookup(ids, id);
        if (object) {
            object_seen(object);
            if (__atomic_load_n(&object->id, __ATOMIC_RELAXED) != id)
                torture_violation("the object of another id is found for %u", id);
        }
        if (id < LASTING && object != lasting[id])
            torture_violation("lasting id %u is not found", id);
    }
    if (torture_below(random, 20) == 0) {
        struct prudence_id_table_walk walk;
        uint32_t next = 0;

        prudence_id_table_for_each(&walk, ids, found)
        {
            next += walk.id == next && walk.id < LASTING;
            if (walk.id >= LASTING)
                break;
        }
        if (next < LASTING)
            torture_violation("a walk does not find id %u", next);
    }
    prudence_read_unlock();
}

static void *reader(void *seed)
{
    uint64_t random = (uintptr_t)seed * 77 + 1;

    while (!torture_stopped()) {
        read_keys(&random);
        read_ids(&random);
        if (torture_below(&random, 30) == 0)
            walk();
    }
    return NULL;
}

/* -------------------------------------------------------------------------------------- writers */

static void remove_and_retire(struct object *object)
{
    int error;

    prudence_read_lock();
    error = prudence_hash_remove(table, &object->node);
    prudence_read_unlock();
    if (error)
        torture_violation("an object of this thread's is not there to be removed");
    else
        object_retire(object);
}

/* Updates a key that no other thread updates, so the thread knows its state. */
static void update_own(struct object **mine, uint64_t key, uint64_t *random)
{
    struct object *old = *mine, *fresh;

    prudence_read_lock();
    if (look_up(key) != old)
        torture_violation("key %llu is not in the state that this thread made",
                          (unsigned long long)key);
    prudence_read_unlock();
    if (old && torture_below(random, 3)) {
        remove_and_retire(old);
        *mine = NULL;
        return;
    }
    *mine = fresh = object_make(key);
    prudence_read_lock();
    switch (old ? torture_below(random, 2) : 2 + torture_below(random, 3)) {
    case 0:
        TORTURE_CHECK(prudence_hash_replace(table, &old->node, &fresh->node) == 0);
        break;
    case 1:
        TORTURE_CHECK(hash_put_found(table, hash_of_key(key), has_key, &key, &fresh->node) ==
                      &old->node);
        break;
    case 2:
        TORTURE_CHECK(!hash_put_found(table, hash_of_key(key), has_key, &key, &fresh->node));
        break;
    case 3:
        TORTURE_CHECK(!hash_add_found(table, hash_of_key(key), has_key, &key, &fresh->node));
        break;
    default:
        prudence_hash_add_duplicate(table, hash_of_key(key), &fresh->node);
    }
    prudence_read_unlock();
    if (old)
        object_retire(old);
}

/* Updates a key that all writers want: there is one object at a time, and one thread gets it. */
static void update_contended(uint64_t *random)
{
    uint64_t key = KEY_CONTENDED + torture_below(random, CONTENDED);
    struct object *fresh = object_make(key), *other;
    int error = ENOENT;

    prudence_read_lock();
    other = object_of(hash_add_found(table, hash_of_key(key), has_key, &key, &fresh->node));
    if (other)
        error = prudence_hash_remove(table, &other->node);
    else if (prudence_hash_next_duplicate(&fresh->node, has_key, &key))
        torture_violation("key %llu is there twice", (unsigned long long)key);
    prudence_read_unlock();
    if (other)
        object_unmake(fresh);
    if (!error)
        object_retire(other);
}

static void update_ids(struct object **mine, uint64_t *random)
{
    struct object *old = *mine;

    if (old && torture_below(random, 2)) {
        *mine = object_make(old->head.key);
        __atomic_store_n(&(*mine)->id, old->id, __ATOMIC_RELAXED);
        TORTURE_CHECK(ids_replace_found(ids, old->id, *mine) == old);
        object_retire(old);
    } else if (old) {
        TORTURE_CHECK(ids_erase_found(ids, old->id) == old);
        object_retire(old);
        *mine = NULL;
    } else {
        *mine = object_make(1);
        TORTURE_CHECK(prudence_id_table_add(ids, *mine, &(*mine)->id) == 0);
    }
}

static void *writer(void *number)
{
    uint64_t first = KEY_OF_WRITER((uintptr_t)number), random = (uintptr_t)number + 4711;
    struct object **mine = calloc(PASSING, sizeof *mine), **by_id = calloc(IDS, sizeof *by_id);

    while (!torture_stopped()) {
        /* For a while, only the first few keys are used. */
        unsigned bound = hash_bits == UINT64_MAX ? PASSING : PASSING / 20;

        if (__atomic_load_n(&updates, __ATOMIC_RELAXED) / 100000 % 2)
            bound = PASSING / 50;

        for (unsigned i = 0; i < 50; i++) {
            unsigned k = torture_below(&random, bound);

            update_own(&mine[k], first + k, &random);
            for (unsigned j = 0; j < 8 && bound < PASSING; j++)
                if (mine[k = bound + torture_below(&random, PASSING - bound)])
                    update_own(&mine[k], first + k, &random);
        }
        update_contended(&random);
        update_ids(&by_id[torture_below(&random, IDS / WRITERS)], &random);
        __atomic_fetch_add(&updates, 52, __ATOMIC_RELAXED);
    }
    for (unsigned i = 0; i < PASSING; i++)
        if (mine[i])
            remove_and_retire(mine[i]);
    for (unsigned i = 0; i < IDS; i++)
        if (by_id[i] && ids_erase_found(ids, by_id[i]->id) == by_id[i])
            object_retire(by_id[i]);
    free(mine);
    free(by_id);
    return NULL;
}

static void set_up(const char *variant)
{
    struct prudence_hash_attr attr = {.size = sizeof attr};

    hash_bits = strcmp(variant, "crowded") ? UINT64_MAX : UINT64_C(0x1ff);
    attr.flags = strcmp(variant, "resized") ? 0 : PRUDENCE_HASH_FIXED;
    table = resized[0] = resized[1] = prudence_hash_create("torture", &attr);
    resized_sizes = 9;
    ids = prudence_id_table_create("torture", NULL);
    cache = prudence_cache_create("torture", sizeof(struct object), NULL);
    for (unsigned i = 0; i < LASTING; i++) {
        lasting[i] = object_make(i);
        prudence_hash_add_duplicate(table, hash_of_key(i), &lasting[i]->node);
        TORTURE_CHECK(prudence_id_table_add(ids, lasting[i], &lasting[i]->id) == 0);
    }
}

static void tear_down(void)
{
    struct prudence_hash_walk at;
    struct prudence_hash_node *node;
    unsigned left = 0;

    prudence_read_lock(); /* a walk is in one section */
    prudence_hash_for_each(&at, table, node)
    {
        TORTURE_CHECK(prudence_hash_remove(table, node) == 0);
        TORTURE_CHECK(prudence_hash_remove(table, node) == ENOENT);
        if (key_of(node) < LASTING)
            TORTURE_CHECK(ids_erase_found(ids, object_of(node)->id) == object_of(node));
        object_retire(object_of(node));
        left++;
    }
    prudence_read_unlock();
    TORTURE_CHECK(left >= LASTING && left <= LASTING + CONTENDED);
    TORTURE_CHECK(prudence_hash_count(table) == 0);
    TORTURE_CHECK(prudence_id_table_count(ids) == 0);
    TORTURE_CHECK(prudence_hash_destroy(table, NULL, NULL) == 0);
    TORTURE_CHECK(prudence_id_table_destroy(ids, NULL, NULL) == 0);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
}

static int torture(const char *variant, double seconds)
{
    uint64_t end = torture_end_of(seconds);
    struct prudence_hash_stats stats;

    set_up(variant);
    torture_start(reader, READERS, 1);
    torture_start(writer, WRITERS, 0);
    if (!strcmp(variant, "resized"))
        torture_start(resizer, 1, 0);
    torture_sleep_until(end);
    torture_wait_for(&walks);
    torture_join();
    prudence_hash_stats(table, &stats);
    tear_down();
    TORTURE_SAY({"updates", updates}, {"lookups", lookups}, {"walks", walks},
                {"retired", torture_found_retired}, {"grows", stats.grows},
                {"shrinks", stats.shrinks});
    return torture_end(variant);
}

TORTURE(torture, {"tides", ""}, {"resized", ""}, {"crowded", ""}, {"fenced", "reader_mode=fenced"},
        {"lock", "rseq=0"})
