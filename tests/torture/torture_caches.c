/* SPDX-License-Identifier: MIT */
/*
 * Many more threads than CPUs allocate, free and defer in several caches and sizes, migrate by
 * force, use the bulk functions, and pass objects to each other, while others shrink, trim, and
 * create and destroy caches.
 *
 * Every live object is filled with its owner's pattern and is in a table of owners: it has one
 * owner, and the allocator writes nothing while it is live or latent. A deferred object stores its
 * cookie; the next owner checks that the cookie is over.
 *
 * ctest: inlined-too
 */
#define _GNU_SOURCE
#include "support/gp_torture.h"

#define THREADS    12
#define CACHES     6
#define OWNED      300 /* most objects that a thread holds */
#define BULK       40
#define TABLE_BITS 18
#define TABLE_WAYS 8

struct item {
    struct torture_mark *object;
    size_t size;
    uint64_t tag;
    int cache; /* -1: by size */
};

static const size_t sizes[CACHES] = {32, 48, 200, 512, 1040, 4096};
static struct prudence_cache *caches[CACHES];
static uintptr_t table[(size_t)1 << TABLE_BITS][TABLE_WAYS];
static uint64_t operations, recognized, janitor_rounds, crowded;
static struct item swap_box[8]; /* objects being passed to another thread */
static pthread_mutex_t swap_lock = PTHREAD_MUTEX_INITIALIZER;
static bool checked_mode, with_janitor = true;

/* ------------------------------------------------------------------------- owners */

static uintptr_t *bucket_of(const void *object)
{
    uint64_t hash = (uint64_t)(uintptr_t)object * UINT64_C(0x9e3779b97f4a7c15);

    return table[hash >> (64 - TABLE_BITS)];
}

static void own(void *object)
{
    uintptr_t *bucket = bucket_of(object);

    for (unsigned i = 0; i < TABLE_WAYS; i++)
        if (__atomic_load_n(&bucket[i], __ATOMIC_ACQUIRE) == (uintptr_t)object)
            torture_violation("object %p has two owners", object);
    for (unsigned i = 0; i < TABLE_WAYS; i++) {
        uintptr_t none = 0;

        if (__atomic_compare_exchange_n(&bucket[i], &none, (uintptr_t)object, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            return;
    }
    __atomic_fetch_add(&crowded, 1, __ATOMIC_RELAXED);
}

static void disown(void *object)
{
    uintptr_t *bucket = bucket_of(object);

    for (unsigned i = 0; i < TABLE_WAYS; i++)
        if (__atomic_load_n(&bucket[i], __ATOMIC_ACQUIRE) == (uintptr_t)object)
            __atomic_store_n(&bucket[i], 0, __ATOMIC_RELEASE);
}

/* Fills the first size / 8 words after the mark. */
static void fill(struct item *item)
{
    uint64_t *words = (uint64_t *)(item->object + 1);

    for (size_t i = 0; i < (item->size - sizeof(struct torture_mark)) / 8; i++)
        words[i] = item->tag + i;
}

static void check(const struct item *item)
{
    const uint64_t *words = (const uint64_t *)(item->object + 1);

    if (item->object->birth != item->tag || item->object->state != TORTURE_LIVE)
        torture_violation("the mark of live object %p changed", (void *)item->object);
    for (size_t i = 0; i < (item->size - sizeof(struct torture_mark)) / 8; i++) {
        if (words[i] != item->tag + i) {
            torture_violation("word %zu of live object %p (size %zu) changed", i,
                              (void *)item->object, item->size);
            return;
        }
    }
}

static void adopt(struct item *item, uint64_t *random)
{
    if (torture_check_reuse(item->object, prudence_default_domain()))
        __atomic_fetch_add(&recognized, 1, __ATOMIC_RELAXED);
    own(item->object);
    item->tag = torture_random(random);
    item->object->birth = item->tag;
    torture_mark_set(item->object, TORTURE_LIVE, 0);
    fill(item);
}

/* ------------------------------------------------------------------------------ one thread */

static bool get(struct item *item, uint64_t *random)
{
    item->cache = (int)torture_below(random, CACHES + 2) - 2;
    if (item->cache >= 0) {
        item->size = sizes[item->cache];
        item->object = prudence_cache_alloc(caches[item->cache]);
    } else {
        item->cache = -1;
        item->size = 32 + torture_below(random, torture_below(random, 200) ? 2000 : 80000);
        item->object = prudence_malloc(item->size);
    }
    if (!item->object) {
        torture_violation("no memory for %zu bytes", item->size);
        return false;
    }
    adopt(item, random);
    return true;
}

static void put(struct item *item, bool defer)
{
    check(item);
    disown(item->object);
    if (defer)
        torture_mark_set(item->object, TORTURE_RETIRED, prudence_gp_get_state().private_value);
    else
        torture_mark_set(item->object, TORTURE_NEW, 0);
    if (item->cache >= 0 && defer)
        prudence_cache_free_deferred(caches[item->cache], item->object);
    else if (item->cache >= 0)
        prudence_cache_free(caches[item->cache], item->object);
    else if (defer)
        prudence_free_deferred(item->object);
    else
        prudence_free(item->object);
    item->object = NULL;
}

static void bulk(uint64_t *random)
{
    unsigned which = torture_below(random, CACHES), count = 1 + torture_below(random, BULK);
    struct item items[BULK];
    void *objects[BULK];
    bool defer = torture_below(random, 2);

    TORTURE_CHECK(prudence_cache_alloc_bulk(caches[which], count, objects) == count);
    for (unsigned i = 0; i < count; i++) {
        items[i] = (struct item){.object = objects[i], .size = sizes[which], .cache = (int)which};
        adopt(&items[i], random);
    }
    if (torture_below(random, 4) == 0)
        sched_yield();
    for (unsigned i = 0; i < count; i++) {
        check(&items[i]);
        disown(objects[i]);
        torture_mark_set(objects[i], defer ? TORTURE_RETIRED : TORTURE_NEW,
                         defer ? prudence_gp_get_state().private_value : 0);
    }
    if (defer)
        prudence_cache_free_deferred_bulk(caches[which], count, objects);
    else
        prudence_cache_free_bulk(caches[which], count, objects);
}

/* Gives an object to the next thread and takes the last one's. */
static void swap(struct item *item, uint64_t *random)
{
    unsigned place = torture_below(random, 8);
    struct item other;

    pthread_mutex_lock(&swap_lock);
    other = swap_box[place];
    swap_box[place] = *item;
    pthread_mutex_unlock(&swap_lock);
    *item = other;
    if (item->object)
        check(item);
}

/* Reads in a section, now and then a long one, which grace periods must wait for. */
static void read_for_a_while(uint64_t *random)
{
    prudence_read_lock();
    if (torture_below(random, 20) == 0)
        torture_sleep_us(torture_below(random, 1500));
    else
        sched_yield();
    prudence_read_unlock();
}

static void *worker(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument, done = 0;
    struct item *items = calloc(OWNED, sizeof *items);

    for (; !torture_stopped(); done++) {
        struct item *item = &items[torture_below(&random, OWNED)];
        unsigned dice = torture_below(&random, 4000);

        if (dice < 2)
            torture_migrate(&random);
        else if (dice < 3)
            torture_roam();
        else if (dice < 40)
            bulk(&random);
        else if (dice < 80)
            read_for_a_while(&random);
        else if (item->object && dice < 140)
            swap(item, &random);
        else if (item->object)
            put(item, dice < 2500);
        else
            get(item, &random);
    }
    for (unsigned i = 0; i < OWNED; i++)
        if (items[i].object)
            put(&items[i], i % 2);
    free(items);
    __atomic_fetch_add(&operations, done, __ATOMIC_RELAXED);
    return NULL;
}

/* ------------------------------------------------------------------- what goes on around them */

static void one_short_lived_cache(uint64_t *random)
{
    size_t size = 64 + torture_below(random, 1000);
    unsigned count = torture_below(random, 300);
    struct prudence_cache *cache = prudence_cache_create("short-lived", size, NULL);
    void *held;
    int error;

    held = prudence_cache_alloc(cache);
    for (unsigned i = 0; i < count; i++) {
        struct torture_mark *object = prudence_cache_alloc(cache);

        object->birth = i;
        torture_mark_set(object, TORTURE_RETIRED, prudence_gp_get_state().private_value);
        prudence_cache_free_deferred(cache, object);
    }
    TORTURE_CHECK(prudence_cache_destroy(cache) == EBUSY);
    prudence_cache_free_deferred(cache, held);
    error = prudence_cache_destroy(cache);
    if (error)
        torture_violation("destruction of a cache without live objects: error %d", error);
}

/* Shrinks and trims from outside. Two threads run this, so that they meet each other. */
static void *janitor(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;

    while (!torture_stopped()) {
        unsigned dice = torture_below(&random, 10);
        struct prudence_stats stats;

        if (dice < 4)
            prudence_cache_shrink(caches[torture_below(&random, CACHES)]);
        else if (dice < 6)
            prudence_trim();
        else if (dice < 9)
            one_short_lived_cache(&random);
        else
            prudence_stats(&stats);
        __atomic_fetch_add(&janitor_rounds, 1, __ATOMIC_RELAXED);
        torture_sleep_us(torture_below(&random, 2000));
    }
    return NULL;
}

static uint64_t preflushed(void)
{
    struct prudence_cache_stats one;
    uint64_t sum = 0;

    for (unsigned i = 0; i < CACHES; i++) {
        prudence_cache_stats(caches[i], &one);
        sum += one.preflushed_objects;
    }
    return sum;
}

static void check_end(void)
{
    struct prudence_stats stats;

    for (unsigned i = 0; i < 8; i++)
        if (swap_box[i].object)
            put(&swap_box[i], true);
    prudence_trim(); /* objects in quarantine count as live until then */
    for (unsigned i = 0; i < CACHES; i++) {
        struct prudence_cache_stats one;

        prudence_cache_stats(caches[i], &one);
        if (one.objects_live)
            torture_violation("cache '%s' still counts %llu live objects", one.name,
                              (unsigned long long)one.objects_live);
        TORTURE_CHECK(prudence_cache_destroy(caches[i]) == 0);
    }
    torture_expect_nothing_left(&stats);
}

static int torture(const char *variant, double seconds)
{
    uint64_t flushed;
    char name[32];

    checked_mode = strcmp(variant, "checked") == 0;
    with_janitor = strcmp(variant, "no janitor") != 0;
    for (unsigned i = 0; i < CACHES; i++) {
        snprintf(name, sizeof name, "torture-%zu", sizes[i]);
        caches[i] = prudence_cache_create(name, sizes[i], NULL);
    }
    torture_pretend_idle();
    torture_start(worker, THREADS, 1);
    torture_start(janitor, with_janitor ? 2 : 0, 1000);
    torture_run(seconds);
    flushed = preflushed();
    check_end();
    TORTURE_SAY({"operations", operations}, {"recognized", recognized}, {"janitor", janitor_rounds},
                {"crowded", crowded}, {"pre-flushed", flushed});
    return torture_end(variant);
}

TORTURE(torture, {"default", ""}, {"no janitor", "reader_mode=free"},
        {"background", "background=1"}, {"lock", "rseq=0"},
        {"lock background", "rseq=0,background=1,membarrier=0"}, {"checked", "check=1"},
        {"guarded", "guard=10"}, {"watched", "guard=10,check=1,quarantine=4M,zero_on_free=1"},
        {"annotated", "annotate=1,guard=10,quarantine=4M"})
