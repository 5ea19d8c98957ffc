/* SPDX-License-Identifier: MIT */
/*
 * The hash table without locks under many more threads than CPUs, with so few buckets that updates
 * meet in chains. Lasting objects are always found, by walks exactly once, and so is one of those
 * that replace each other. Passing ones come and go: an object that is found is live, or was
 * retired in a grace period that is not over; a writer finds an object that it added until it
 * removes it; of several threads that remove or replace one object, one succeeds.
 *
 * Variants: chains of some objects; all in two chains; and both while signals interrupt all threads
 * anywhere, whose handlers look up, add, replace and remove in the same chains.
 */
#define _GNU_SOURCE
#include <prudence/lockfree_hash.h>

#include "support/torture_hash.h"

#define READERS   6
#define WRITERS   6
#define LASTING   40
#define PASSING   60 /* keys of each writer */
#define CONTENDED 6  /* keys of all writers, and of handlers */
#define REPLACED  10 /* keys whose objects are replaced by all writers, and never removed */
#define STASH     16

/* Objects for one thread's handlers, which neither allocate nor defer: they take fresh objects
 * from here, and leave removed ones here. */
struct stash {
    struct object *fresh[STASH], *removed[STASH]; /* NULL: none */
    uint64_t random;
    bool busy; /* the thread itself is using the stash */
};

static struct prudence_lockfree_hash *table;
static struct object *lasting[LASTING];
static uint64_t handled, handled_updates;
static __thread struct stash *stash_self;

#define KEY_REPLACED     ((uint64_t)LASTING)
#define KEY_CONTENDED    (KEY_REPLACED + REPLACED)
#define KEY_OF_WRITER(w) (KEY_CONTENDED + CONTENDED + (uint64_t)(w)*PASSING)
#define KEYS             KEY_OF_WRITER(WRITERS)

static struct object *look_up(uint64_t key)
{
    return object_of_key(
        object_of(prudence_lockfree_hash_lookup(table, hash_of_key(key), has_key, &key)), key);
}

/* -------------------------------------------------------------------------------------- readers */

static void read_keys(uint64_t *random)
{
    for (unsigned i = 0; i < 20; i++) {
        uint64_t key = torture_below(random, LASTING);

        if (look_up(key) != lasting[key])
            torture_violation("lasting key %llu is not found", (unsigned long long)key);
        key = KEY_REPLACED + torture_below(random, REPLACED);
        if (!look_up(key))
            torture_violation("replaced key %llu is not found", (unsigned long long)key);
        look_up(torture_below(random, (unsigned)KEYS));
    }
    __atomic_fetch_add(&lookups, 60, __ATOMIC_RELAXED);
}

static void walk(void)
{
    unsigned char visits[KEYS] = {0};
    struct prudence_lockfree_hash_walk at;
    struct prudence_hash_node *node;

    prudence_lockfree_hash_for_each(&at, table, node)
    {
        uint64_t key = object_seen(object_of(node));

        if (key >= KEYS)
            torture_violation("key %llu is found", (unsigned long long)key);
        else if (visits[key]++ && key < KEY_CONTENDED)
            torture_violation("a walk finds key %llu twice", (unsigned long long)key);
    }
    for (unsigned i = 0; i < KEY_CONTENDED; i++)
        if (!visits[i])
            torture_violation("a walk does not find key %u", i);
    __atomic_fetch_add(&walks, 1, __ATOMIC_RELAXED);
}

/* -------------------------------------------------------------------------------------- writers */

/* Updates a key that all threads want: there is one object at a time, and one thread gets it.
 * Returns the removed object; *fresh is NULL if it was added. */
static struct object *update_contended(struct object **fresh, uint64_t key)
{
    struct object *other;

    __atomic_store_n(&(*fresh)->head.key, key, __ATOMIC_RELAXED);
    other = object_of(lockfree_add_found(table, hash_of_key(key), has_key, &key, &(*fresh)->node));
    if (!other) {
        if (prudence_lockfree_hash_next_duplicate(&(*fresh)->node, has_key, &key))
            torture_violation("key %llu is there twice", (unsigned long long)key);
        *fresh = NULL;
        return NULL;
    }
    return prudence_lockfree_hash_remove(table, &other->node) ? NULL : other;
}

/* Replaces the object of a key that always exists, in two ways. */
static struct object *update_replaced(struct object **fresh, uint64_t key, bool known)
{
    struct object *old;

    __atomic_store_n(&(*fresh)->head.key, key, __ATOMIC_RELAXED);
    if (known) {
        old = look_up(key);
        if (!old || prudence_lockfree_hash_replace(table, &old->node, &(*fresh)->node))
            return NULL;
    } else {
        old =
            object_of(lockfree_put_found(table, hash_of_key(key), has_key, &key, &(*fresh)->node));
        if (!old)
            torture_violation("key %llu was not there", (unsigned long long)key);
    }
    *fresh = NULL;
    return old;
}

static struct object *update_any(struct object **fresh, uint64_t *random)
{
    if (torture_below(random, 2))
        return update_contended(fresh, KEY_CONTENDED + torture_below(random, CONTENDED));
    return update_replaced(fresh, KEY_REPLACED + torture_below(random, REPLACED),
                           torture_below(random, 2));
}

/* Runs in the thread, not in a handler, and frees unused objects. */
static void update_shared(uint64_t *random)
{
    struct object *fresh = object_make(0), *removed;

    prudence_read_lock();
    removed = update_any(&fresh, random);
    prudence_read_unlock();
    if (fresh)
        object_unmake(fresh);
    object_retire(removed);
}

static void update_own(struct object **mine, uint64_t key, uint64_t *random)
{
    struct object *old = *mine;

    prudence_read_lock();
    if (look_up(key) != old)
        torture_violation("key %llu is not in the state that this thread made",
                          (unsigned long long)key);
    prudence_read_unlock();
    if (old && torture_below(random, 2)) {
        *mine = NULL;
    } else {
        *mine = object_make(key);
    }
    prudence_read_lock();
    if (!*mine)
        TORTURE_CHECK(!prudence_lockfree_hash_remove(table, &old->node));
    else if (old)
        TORTURE_CHECK(!prudence_lockfree_hash_replace(table, &old->node, &(*mine)->node));
    else
        prudence_lockfree_hash_add_duplicate(table, hash_of_key(key), &(*mine)->node);
    prudence_read_unlock();
    object_retire(old);
}

/* ------------------------------------------------------------------------------------- handlers */

static void handle(int number)
{
    struct stash *stash = stash_self;

    if (!stash || __atomic_load_n(&stash->busy, __ATOMIC_RELAXED))
        return;
    prudence_read_lock();
    read_keys(&stash->random);
    for (unsigned i = 0; i < STASH; i++) {
        if (!stash->fresh[i] || stash->removed[i])
            continue;
        stash->removed[i] = update_any(&stash->fresh[i], &stash->random);
        __atomic_fetch_add(&handled_updates, 1, __ATOMIC_RELAXED);
    }
    if (torture_below(&stash->random, 8) == 0)
        walk();
    prudence_read_unlock();
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

/* The thread defers objects that its handlers have removed, and supplies fresh ones. */
static void serve(struct stash *stash)
{
    __atomic_store_n(&stash->busy, true, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < STASH; i++) {
        object_retire(stash->removed[i]);
        stash->removed[i] = NULL;
        if (!stash->fresh[i])
            stash->fresh[i] = object_make(0);
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&stash->busy, false, __ATOMIC_RELAXED);
}

static void empty(struct stash *stash)
{
    stash_self = NULL;
    serve(stash);
    for (unsigned i = 0; i < STASH; i++)
        object_unmake(stash->fresh[i]);
}

static void *reader(void *seed)
{
    struct stash stash = {.random = (uintptr_t)seed * 31 + 5};
    uint64_t random = (uintptr_t)seed * 77 + 1;

    stash_self = &stash;
    while (!torture_stopped()) {
        serve(&stash);
        prudence_read_lock();
        read_keys(&random);
        if (torture_below(&random, 10) == 0)
            walk();
        prudence_read_unlock();
    }
    empty(&stash);
    return NULL;
}

static void *writer(void *number)
{
    uint64_t first = KEY_OF_WRITER((uintptr_t)number), random = (uintptr_t)number + 4711;
    struct stash stash = {.random = (uintptr_t)number * 131 + 7};
    struct object *mine[PASSING] = {NULL};

    stash_self = &stash;
    while (!torture_stopped()) {
        serve(&stash);
        for (unsigned i = 0; i < 20; i++) {
            unsigned k = torture_below(&random, PASSING);

            update_own(&mine[k], first + k, &random);
            update_shared(&random);
        }
        __atomic_fetch_add(&updates, 40, __ATOMIC_RELAXED);
    }
    for (unsigned i = 0; i < PASSING; i++)
        while (mine[i])
            update_own(&mine[i], first + i, &random);
    empty(&stash);
    return NULL;
}

static void set_up(const char *variant)
{
    const struct prudence_lockfree_hash_attr attr = {
        .size = sizeof attr, .buckets = strstr(variant, "crowded") ? 2 : 128};

    table = prudence_lockfree_hash_create("torture", &attr);
    cache = prudence_cache_create("torture", sizeof(struct object), NULL);
    for (unsigned i = 0; i < KEY_CONTENDED; i++) {
        struct object *object = object_make(i);

        prudence_lockfree_hash_add_duplicate(table, hash_of_key(i), &object->node);
        if (i < LASTING)
            lasting[i] = object;
    }
}

static void tear_down(void)
{
    struct prudence_lockfree_hash_stats stats;
    struct prudence_lockfree_hash_walk at;
    struct prudence_hash_node *node;
    unsigned left = 0;

    prudence_lockfree_hash_stats(table, &stats);
    TORTURE_CHECK(stats.removed == 0);
    prudence_read_lock(); /* a walk is in one section */
    prudence_lockfree_hash_for_each(&at, table, node)
    {
        TORTURE_CHECK(prudence_lockfree_hash_remove(table, node) == 0);
        TORTURE_CHECK(prudence_lockfree_hash_remove(table, node) == ENOENT);
        object_retire(object_of(node));
        left++;
    }
    prudence_read_unlock();
    TORTURE_CHECK(left == stats.objects);
    TORTURE_CHECK(left >= KEY_CONTENDED && left <= KEY_CONTENDED + CONTENDED);
    TORTURE_CHECK(prudence_lockfree_hash_destroy(table, NULL, NULL) == 0);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
}

static void interrupt(uint64_t end)
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};

    sigaction(SIGUSR1, &action, NULL);
    while (torture_now() < end || !__atomic_load_n(&handled_updates, __ATOMIC_RELAXED)) {
        for (unsigned i = 0; i < torture_crew.count; i++)
            pthread_kill(torture_crew.threads[i], SIGUSR1);
        torture_sleep_us(20);
    }
}

static int torture(const char *variant, double seconds)
{
    uint64_t end = torture_end_of(seconds);

    set_up(variant);
    torture_start(reader, READERS, 1);
    torture_start(writer, WRITERS, 0);
    if (strstr(variant, "signals"))
        interrupt(end);
    torture_sleep_until(end);
    torture_wait_for(&walks);
    torture_wait_for(&updates);
    torture_join();
    tear_down();
    TORTURE_SAY({"updates", updates}, {"lookups", lookups}, {"walks", walks},
                {"retired", torture_found_retired}, {"handled", handled},
                {"updates of handlers", handled_updates});
    return torture_end(variant);
}

TORTURE(torture, {"plain", ""}, {"crowded", ""}, {"signals", ""}, {"crowded signals", ""},
        {"fenced signals", "reader_mode=fenced"}, {"lock", "rseq=0"})
