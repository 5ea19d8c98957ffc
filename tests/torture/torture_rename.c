/* SPDX-License-Identifier: MIT */
/*
 * Names under many more threads than CPUs: each of some objects has one of two names, in two
 * tables, and all writers rename it from one to the other and back; others exchange the objects of
 * two names, or replace names. A reader looks for the one name, the other, and the first again. If
 * the object was renamed at most once during that, the reader finds it, and not each time; if it
 * was not renamed, it is found under exactly one name. Counters around the renames tell which case
 * it was.
 *
 * Variants: the tables follow their objects; or a thread resizes them all the time; or all names
 * share few hashes; or latent memory has a low limit, which holds while readers stay for a while.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <prudence/hash_rename.h>

#include "support/torture_objects.h"
#include "support/updates.h"

#define READERS 8
#define WRITERS 6
#define OBJECTS 200
#define PAIRS   50 /* of names whose objects are exchanged */
#define CROWD   3000

struct entry {
    struct torture_mark mark;
    struct prudence_hash_name name;
    uint64_t key;
    uint64_t object; /* atomic, as is the key */
};

/* Number of times that each object was about to be renamed, and that it had been. Atomic. */
static struct count {
    uint64_t begun, done;
} counts[OBJECTS], exchanges[PAIRS];

static struct prudence_hash *tables[2];
static struct prudence_cache *cache;
static uint64_t hash_bits, renames, refused, exchanged, looks, settled, moved, resizes, adds;
static bool readers_stay;

/* Names 0 and 1 of each object, then 0 and 1 of each pair, then the crowd that comes and goes. */
#define KEY_OF_PAIR  ((uint64_t)2 * OBJECTS)
#define KEY_OF_CROWD (KEY_OF_PAIR + (uint64_t)2 * PAIRS)

static struct prudence_hash *table_of(uint64_t key)
{
    return tables[key % 2];
}

static uint64_t hash_of_key(uint64_t key)
{
    return prudence_hash_mix(key) & hash_bits;
}

static bool has_key(const struct prudence_hash_node *node, const void *key)
{
    const struct entry *entry = prudence_hash_entry(node, const struct entry, name.node);

    return __atomic_load_n(&entry->key, __ATOMIC_RELAXED) == *(const uint64_t *)key;
}

static struct entry *look_up(uint64_t key)
{
    struct prudence_hash_name *name =
        prudence_hash_lookup_name(table_of(key), hash_of_key(key), has_key, &key);
    struct entry *entry = name ? prudence_hash_entry(name, struct entry, name) : NULL;

    if (entry)
        torture_object_look(&entry->mark, &entry->key, key);
    return entry;
}

/* Returns UINT64_MAX if the name leads to no object. */
static uint64_t object_under(uint64_t key)
{
    const struct entry *entry = look_up(key);

    return entry ? __atomic_load_n(&entry->object, __ATOMIC_RELAXED) : UINT64_MAX;
}

static struct entry *make(uint64_t key, uint64_t object)
{
    struct entry *entry = prudence_cache_alloc(cache);

    torture_object_begin(&entry->mark, &entry->key, key);
    __atomic_store_n(&entry->object, object, __ATOMIC_RELAXED);
    prudence_hash_name_init(&entry->name);
    return entry;
}

static void retire(struct entry *entry)
{
    torture_object_retire(&entry->mark);
    prudence_cache_free_deferred(cache, entry);
}

static void unmake(struct entry *entry)
{
    torture_mark_set(&entry->mark, TORTURE_NEW, 0);
    prudence_cache_free(cache, entry);
}

/* -------------------------------------------------------------------------------------- readers */

static uint64_t begin_look(const struct count *count)
{
    return __atomic_load_n(&count->done, __ATOMIC_ACQUIRE);
}

/* Returns the most renames that may have happened since begin_look(). */
static uint64_t end_look(const struct count *count, uint64_t done)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED);
    return __atomic_load_n(&count->begun, __ATOMIC_RELAXED) - done;
}

static void look_for_object(uint64_t object)
{
    uint64_t done = begin_look(&counts[object]), most;
    bool first = object_under(2 * object) == object, other = object_under(2 * object + 1) == object;
    bool again = object_under(2 * object) == object;

    most = end_look(&counts[object], done);
    if (most == 0 && (first == other || first != again))
        torture_violation("object %llu stays, and is found %d %d %d", (unsigned long long)object,
                          first, other, again);
    if (most == 1 && first == other && other == again)
        torture_violation("object %llu is renamed once, and is found %d %d %d",
                          (unsigned long long)object, first, other, again);
    __atomic_fetch_add(most == 0 ? &settled : &moved, most < 2, __ATOMIC_RELAXED);
}

/* Both names of a pair always exist, and lead to different objects. */
static void look_for_pair(uint64_t pair)
{
    uint64_t key = KEY_OF_PAIR + 2 * pair, done = begin_look(&exchanges[pair]), most;
    uint64_t first = object_under(key), other = object_under(key + 1), again = object_under(key);

    most = end_look(&exchanges[pair], done);
    if (first > 1 || other > 1 || again > 1)
        torture_violation("a name of pair %llu is not found", (unsigned long long)pair);
    if ((most == 0 && first == other) || (most == 1 && first == other && other == again))
        torture_violation("both names of pair %llu lead to object %llu", (unsigned long long)pair,
                          (unsigned long long)first);
}

static void *reader(void *seed)
{
    uint64_t random = (uintptr_t)seed * 77 + 1;

    while (!torture_stopped()) {
        prudence_read_lock();
        for (unsigned i = 0; i < 20; i++) {
            look_for_object(torture_below(&random, OBJECTS));
            look_for_pair(torture_below(&random, PAIRS));
            look_up(KEY_OF_CROWD + torture_below(&random, CROWD));
        }
        if (readers_stay && torture_below(&random, 20) == 0)
            torture_sleep_us(2000);
        prudence_read_unlock();
    }
    return NULL;
}

/* -------------------------------------------------------------------------------------- writers */

static void rename_object(uint64_t object, uint64_t *random)
{
    uint64_t key = 2 * object + torture_below(random, 2), to = key ^ 1;
    struct entry *fresh = make(to, object), *old;
    int error = ENOENT;

    prudence_read_lock();
    old = look_up(key);
    if (old) {
        __atomic_fetch_add(&counts[object].begun, 1, __ATOMIC_SEQ_CST);
        error = prudence_hash_rename(table_of(key), &old->name, table_of(to), hash_of_key(to),
                                     has_key, &to, &fresh->name);
        __atomic_fetch_add(&counts[object].done, 1, __ATOMIC_SEQ_CST);
    }
    prudence_read_unlock();
    if (error) {
        TORTURE_CHECK(error == ENOENT); /* another thread was first, and may have renamed it back */
        unmake(fresh);
        __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
        return;
    }
    retire(old);
    __atomic_fetch_add(&renames, 1, __ATOMIC_RELAXED);
}

static void exchange(uint64_t pair)
{
    uint64_t key = KEY_OF_PAIR + 2 * pair;
    struct entry *fresh_a = make(key, 0), *fresh_b = make(key + 1, 0), *a, *b;
    int error;

    prudence_read_lock();
    a = look_up(key);
    b = look_up(key + 1);
    __atomic_store_n(&fresh_a->object, __atomic_load_n(&b->object, __ATOMIC_RELAXED),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&fresh_b->object, __atomic_load_n(&a->object, __ATOMIC_RELAXED),
                     __ATOMIC_RELAXED);
    __atomic_fetch_add(&exchanges[pair].begun, 1, __ATOMIC_SEQ_CST);
    error = prudence_hash_exchange(table_of(key), &a->name, &fresh_a->name, table_of(key + 1),
                                   &b->name, &fresh_b->name);
    __atomic_fetch_add(&exchanges[pair].done, 1, __ATOMIC_SEQ_CST);
    prudence_read_unlock();
    if (error) {
        unmake(fresh_a);
        unmake(fresh_b);
        return;
    }
    retire(a);
    retire(b);
    __atomic_fetch_add(&exchanged, 1, __ATOMIC_RELAXED);
}

/* Adds, renames, replaces and removes names, so the tables grow, and shrink in the end. */
static void crowd(uint64_t *random)
{
    uint64_t key = KEY_OF_CROWD + torture_below(random, CROWD),
             to = KEY_OF_CROWD + torture_below(random, CROWD);
    struct entry *fresh = make(to, UINT64_MAX), *old, *there = NULL;
    struct prudence_hash_name *replaced = NULL;
    struct prudence_hash_node *node;
    int error;

    prudence_read_lock();
    old = look_up(key);
    error =
        !old ? ENOENT
             : prudence_hash_rename_replace(table_of(key), &old->name, table_of(to),
                                            hash_of_key(to), has_key, &to, &fresh->name, &replaced);
    if (error) {
        node = hash_add_found(table_of(to), hash_of_key(to), has_key, &to, &fresh->name.node);
        there = node ? prudence_hash_entry(node, struct entry, name.node) : NULL;
        if (there && prudence_hash_remove(table_of(to), node))
            there = NULL;
        if (node)
            unmake(fresh);
    }
    prudence_read_unlock();
    if (there)
        retire(there);
    if (!error) {
        retire(old);
        if (replaced)
            retire(prudence_hash_entry(replaced, struct entry, name));
    }
    __atomic_fetch_add(&adds, 1, __ATOMIC_RELAXED);
}

static void *writer(void *seed)
{
    uint64_t random = (uintptr_t)seed * 99 + 7;

    while (!torture_stopped()) {
        rename_object(torture_below(&random, OBJECTS), &random);
        if (torture_below(&random, 2))
            exchange(torture_below(&random, PAIRS));
        crowd(&random);
    }
    return NULL;
}

static void *resizer(void *unused)
{
    uint64_t random = 99;

    while (!torture_stopped()) {
        int error = prudence_hash_resize(tables[torture_below(&random, 2)],
                                         UINT64_C(64) << torture_below(&random, 7));

        TORTURE_CHECK(error == 0 || error == EAGAIN); /* replaced arrays may fill latent_limit */
        __atomic_fetch_add(&resizes, 1, __ATOMIC_RELAXED);
        if (torture_below(&random, 4) == 0)
            sched_yield();
    }
    return unused;
}

static void add(uint64_t key, uint64_t object)
{
    prudence_hash_add_duplicate(table_of(key), hash_of_key(key), &make(key, object)->name.node);
}

static void set_up(const char *variant)
{
    struct prudence_hash_attr attr = {.size = sizeof attr};

    hash_bits = strcmp(variant, "crowded") ? UINT64_MAX : UINT64_C(0xff);
    attr.flags = strcmp(variant, "resized") ? 0 : PRUDENCE_HASH_FIXED;
    readers_stay = !strcmp(variant, "limit");
    for (unsigned t = 0; t < 2; t++)
        tables[t] = prudence_hash_create("torture", &attr);
    cache = prudence_cache_create("torture", sizeof(struct entry), NULL);
    for (uint64_t i = 0; i < OBJECTS; i++)
        add(2 * i, i);
    for (uint64_t i = 0; i < 2 * PAIRS; i++)
        add(KEY_OF_PAIR + i, i % 2);
}

/* Checks that every object and pair exists once, and nothing else but the crowd. */
static void tear_down(void)
{
    struct prudence_hash_walk at;
    struct prudence_hash_node *node;
    unsigned left = 0;

    for (uint64_t i = 0; i < OBJECTS; i++)
        look_for_object(i);
    for (uint64_t i = 0; i < PAIRS; i++)
        look_for_pair(i);
    for (unsigned t = 0; t < 2; t++) {
        prudence_read_lock(); /* a walk is in one section */
        prudence_hash_for_each(&at, tables[t], node)
        {
            struct entry *entry = prudence_hash_entry(node, struct entry, name.node);

            TORTURE_CHECK(prudence_hash_name_is_there(&entry->name));
            TORTURE_CHECK(prudence_hash_remove(tables[t], node) == 0);
            left += entry->key < KEY_OF_CROWD;
            retire(entry);
        }
        prudence_read_unlock();
        TORTURE_CHECK(prudence_hash_count(tables[t]) == 0);
    }
    TORTURE_CHECK(left == OBJECTS + 2 * PAIRS);
    for (unsigned t = 0; t < 2; t++)
        TORTURE_CHECK(prudence_hash_destroy(tables[t], NULL, NULL) == 0);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
}

static void check_limit(void)
{
    struct prudence_stats stats;

    prudence_stats(&stats);
    TORTURE_CHECK(stats.throttle_expiries == 0);
    if (stats.bytes_latent_peak > stats.latent_ceiling)
        torture_violation("%llu bytes were latent, the limit is %llu",
                          (unsigned long long)stats.bytes_latent_peak,
                          (unsigned long long)stats.latent_ceiling);
    printf(" peak=%llu K", (unsigned long long)stats.bytes_latent_peak >> 10);
}

static int torture(const char *variant, double seconds)
{
    uint64_t end = torture_now() + (uint64_t)(seconds * 1e9);
    struct torture_crew crew;

    set_up(variant);
    torture_crew_start(&crew, reader, READERS, writer, WRITERS, 1);
    if (!strcmp(variant, "resized"))
        crew.threads[crew.count++] = torture_thread(resizer, NULL);
    torture_sleep_until(end);
    torture_wait_for(&settled);
    torture_wait_for(&renames);
    torture_crew_stop(&crew);
    printf(
        ": renames=%llu refused=%llu exchanges=%llu crowd=%llu looks=%llu settled=%llu "
        "renamed=%llu resizes=%llu retired=%llu",
        (unsigned long long)renames, (unsigned long long)refused, (unsigned long long)exchanged,
        (unsigned long long)adds, (unsigned long long)looks, (unsigned long long)settled,
        (unsigned long long)moved, (unsigned long long)resizes,
        (unsigned long long)torture_found_retired);
    if (readers_stay)
        check_limit();
    tear_down();
    return torture_end(variant);
}

int main(int argc, char **argv)
{
    static const struct torture_variant variants[] = {
        {"plain", ""},      {"resized", ""},
        {"crowded", ""},    {"limit", "latent_limit=1M,wait_max=60s"},
        {"lock", "rseq=0"},
    };

    return torture_main(argc, argv, variants, sizeof variants / sizeof variants[0], torture);
}
