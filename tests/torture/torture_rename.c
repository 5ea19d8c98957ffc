/* SPDX-License-Identifier: MIT */
/*
 * Names under many more threads than CPUs: each of some objects has one of two names, in two
 * tables, and all writers rename it from one to the other and back; others exchange the objects of
 * two names, or replace names. A reader searches for the one name, the other, and the first again.
 * If the object was renamed at most once during that, the reader finds it, and not each time; if it
 * was not renamed, it is found under exactly one name. Counters around the renames show which case
 * it was.
 *
 * Variants: the tables follow their objects; or a thread resizes them all the time; or all names
 * share few hashes; or latent memory has a low limit, which holds while readers stay for a while.
 */
#define _GNU_SOURCE
#include <prudence/hash_rename.h>

#include "support/torture_objects.h"
#include "support/updates.h"

#define READERS 8
#define WRITERS 6
#define OBJECTS 200
#define PAIRS   50 /* of names whose objects are exchanged */
#define CROWD   3000

struct object {
    struct torture_object head;
    union {
        struct prudence_hash_node node;
        struct prudence_hash_name name; /* begins with a node */
    };
    uint32_t id; /* of the object that the name leads to; atomic */
};

static uint64_t hash_bits = UINT64_MAX; /* fewer: many keys share a hash */

static uint64_t hash_of_key(uint64_t key)
{
    return prudence_hash_mix(key) & hash_bits;
}

static struct object *object_of(const struct prudence_hash_node *node)
{
    return node ? (struct object *)((uintptr_t)node - offsetof(struct object, node)) : NULL;
}

static uint64_t key_of(const struct prudence_hash_node *node)
{
    return __atomic_load_n(&object_of(node)->head.key, __ATOMIC_RELAXED);
}

static bool has_key(const struct prudence_hash_node *node, const void *key)
{
    return key_of(node) == *(const uint64_t *)key;
}

/* The tables. A thread may resize them, to powers of two from 64 on. */
static struct prudence_hash *resized[2];
static uint64_t resizes;

static void *resizer(void *unused)
{
    uint64_t random = 99;

    while (!torture_stopped()) {
        int error = prudence_hash_resize(resized[torture_below(&random, 2)],
                                         UINT64_C(64) << torture_below(&random, 7));

        TORTURE_CHECK(error == 0 || error == EAGAIN); /* replaced arrays may fill latent_limit */
        __atomic_fetch_add(&resizes, 1, __ATOMIC_RELAXED);
        if (torture_below(&random, 4) == 0)
            sched_yield();
    }
    return unused;
}

/* Number of times that each object was about to be renamed, and that it had been. Atomic. */
static struct count {
    uint64_t begun, done;
} counts[OBJECTS], exchanges[PAIRS];

static uint64_t renames, refused, exchanged, looks, settled, moved, adds;
static bool readers_stay;

/* Names 0 and 1 of each object, then 0 and 1 of each pair, then the crowd that comes and goes. */
#define KEY_OF_PAIR  ((uint64_t)2 * OBJECTS)
#define KEY_OF_CROWD (KEY_OF_PAIR + (uint64_t)2 * PAIRS)

static struct prudence_hash *table_of(uint64_t key)
{
    return resized[key % 2];
}

static struct object *look_up(uint64_t key)
{
    struct prudence_hash_name *name =
        prudence_hash_lookup_name(table_of(key), hash_of_key(key), has_key, &key);

    return object_of_key(name ? object_of(&name->node) : NULL, key);
}

/* Returns UINT64_MAX if the name leads to no object. */
static uint64_t object_under(uint64_t key)
{
    const struct object *entry = look_up(key);

    return entry ? __atomic_load_n(&entry->id, __ATOMIC_RELAXED) : UINT64_MAX;
}

static struct object *make(uint64_t key, uint64_t object)
{
    struct object *entry = object_make(key);

    __atomic_store_n(&entry->id, (uint32_t)object, __ATOMIC_RELAXED);
    prudence_hash_name_init(&entry->name);
    return entry;
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
    struct object *fresh = make(to, object), *old;
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
        object_unmake(fresh);
        __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
        return;
    }
    object_retire(old);
    __atomic_fetch_add(&renames, 1, __ATOMIC_RELAXED);
}

static void exchange(uint64_t pair)
{
    uint64_t key = KEY_OF_PAIR + 2 * pair;
    struct object *fresh_a = make(key, 0), *fresh_b = make(key + 1, 0), *a, *b;
    int error;

    prudence_read_lock();
    a = look_up(key);
    b = look_up(key + 1);
    __atomic_store_n(&fresh_a->id, __atomic_load_n(&b->id, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    __atomic_store_n(&fresh_b->id, __atomic_load_n(&a->id, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    __atomic_fetch_add(&exchanges[pair].begun, 1, __ATOMIC_SEQ_CST);
    error = prudence_hash_exchange(table_of(key), &a->name, &fresh_a->name, table_of(key + 1),
                                   &b->name, &fresh_b->name);
    __atomic_fetch_add(&exchanges[pair].done, 1, __ATOMIC_SEQ_CST);
    prudence_read_unlock();
    if (error) {
        object_unmake(fresh_a);
        object_unmake(fresh_b);
        return;
    }
    object_retire(a);
    object_retire(b);
    __atomic_fetch_add(&exchanged, 1, __ATOMIC_RELAXED);
}

/* Adds, renames, replaces and removes names, so the tables grow, and shrink in the end. */
static void crowd(uint64_t *random)
{
    uint64_t key = KEY_OF_CROWD + torture_below(random, CROWD),
             to = KEY_OF_CROWD + torture_below(random, CROWD);
    struct object *fresh = make(to, UINT64_MAX), *old, *there = NULL;
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
        there = object_of(node);
        if (there && prudence_hash_remove(table_of(to), node))
            there = NULL;
        if (node)
            object_unmake(fresh);
    }
    prudence_read_unlock();
    object_retire(there);
    if (!error) {
        object_retire(old);
        object_retire(replaced ? object_of(&replaced->node) : NULL);
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
        resized[t] = prudence_hash_create("torture", &attr);
    cache = prudence_cache_create("torture", sizeof(struct object), NULL);
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
        prudence_hash_for_each(&at, resized[t], node)
        {
            struct object *entry = object_of(node);

            TORTURE_CHECK(prudence_hash_name_is_there(&entry->name));
            TORTURE_CHECK(prudence_hash_remove(resized[t], node) == 0);
            left += key_of(node) < KEY_OF_CROWD;
            object_retire(entry);
        }
        prudence_read_unlock();
        TORTURE_CHECK(prudence_hash_count(resized[t]) == 0);
    }
    TORTURE_CHECK(left == OBJECTS + 2 * PAIRS);
    for (unsigned t = 0; t < 2; t++)
        TORTURE_CHECK(prudence_hash_destroy(resized[t], NULL, NULL) == 0);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
}

static int torture(const char *variant, double seconds)
{
    uint64_t end = torture_end_of(seconds);

    set_up(variant);
    torture_start(reader, READERS, 1);
    torture_start(writer, WRITERS, 1);
    if (!strcmp(variant, "resized"))
        torture_start(resizer, 1, 0);
    torture_sleep_until(end);
    torture_wait_for(&settled);
    torture_wait_for(&renames);
    torture_join();
    TORTURE_SAY({"renames", renames}, {"refused", refused}, {"exchanges", exchanged},
                {"crowd", adds}, {"looks", looks}, {"settled", settled}, {"renamed", moved},
                {"resizes", resizes}, {"retired", torture_found_retired});
    if (readers_stay)
        torture_check_limit();
    tear_down();
    return torture_end(variant);
}

TORTURE(torture, {"plain", ""}, {"resized", ""}, {"crowded", ""},
        {"limit", "latent_limit=1M,wait_max=60s"}, {"lock", "rseq=0"})
