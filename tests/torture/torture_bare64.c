/* SPDX-License-Identifier: MIT */
/*
 * Pretends 64 CPUs on 4 nodes, and runs every call on another one: objects are allocated, freed and
 * deferred anywhere, CPUs go quiet with full caches, caches follow threads, slabs belong to other
 * nodes. Each object has one owner and the owner's content, and nothing is lost in the end.
 */
#define _GNU_SOURCE
#include "support/gp_torture.h"

#include "posix.h"
#include "slab/cache_type.h"
#include "slab/start.h"

#define THREADS 8
#define CPUS    64
#define NODES   4
#define OWNED   400

struct object {
    struct torture_mark mark;
    uint64_t owner; /* atomic: 0, or the thread that allocated it */
    uint64_t words[4];
};

static struct prudence_cache *small, *large;
static uint64_t operations, recognized, outside; /* virtual CPU numbers are drawn below `outside` */
static __thread uint64_t luck;

static unsigned random_cpu(void)
{
    if (!luck)
        luck = (uint64_t)(uintptr_t)&luck | 1;
    return torture_below(&luck, (unsigned)__atomic_load_n(&outside, __ATOMIC_RELAXED));
}

static void take_over(struct object *object, size_t size, uint64_t me)
{
    if (torture_check_reuse(&object->mark, prudence_default_domain()))
        __atomic_fetch_add(&recognized, 1, __ATOMIC_RELAXED);
    object->mark.birth = (uint64_t)(uintptr_t)object * 31 + me;
    torture_mark_set(&object->mark, TORTURE_LIVE, 0);
    __atomic_store_n(&object->owner, me, __ATOMIC_RELAXED);
    memset(object->words, (int)me, size - offsetof(struct object, words));
}

static void give_up(struct object *object, size_t size, uint64_t me)
{
    const unsigned char *bytes = (const unsigned char *)object->words;

    if (__atomic_load_n(&object->owner, __ATOMIC_RELAXED) != me)
        torture_violation("object %p has two owners", (void *)object);
    for (size_t i = 0; i < size - offsetof(struct object, words); i++) {
        if (bytes[i] != (unsigned char)me) {
            torture_violation("byte %zu of object %p changed", i, (void *)object);
            break;
        }
    }
    torture_mark_set(&object->mark, TORTURE_NEW, 0);
}

static void *worker(void *argument)
{
    uint64_t me = (uint64_t)(uintptr_t)argument, random = me * 7919, done = 0;
    struct object **objects = calloc(OWNED, sizeof *objects);

    for (; !torture_stopped(); done++) {
        unsigned i = torture_below(&random, OWNED);
        struct prudence_cache *cache = i % 4 ? small : large;
        size_t size = cache == small ? sizeof(struct object) : 2048;
        unsigned dice = torture_below(&random, 1000);

        if (!objects[i]) {
            objects[i] = prudence_cache_alloc(cache);
            if (!objects[i]) {
                torture_violation("no memory");
                break;
            }
            take_over(objects[i], size, me);
            continue;
        }
        give_up(objects[i], size, me);
        if (dice < 600) {
            torture_mark_set(&objects[i]->mark, TORTURE_RETIRED,
                             prudence_gp_get_state().private_value);
            prudence_cache_free_deferred(cache, objects[i]);
        } else {
            prudence_cache_free(cache, objects[i]);
        }
        objects[i] = NULL;
        if (dice == 600) {
            prudence_read_lock();
            sched_yield();
            prudence_read_unlock();
        }
    }
    for (unsigned i = 0; i < OWNED; i++) {
        if (!objects[i])
            continue;
        /* Another thread may allocate it in the last round. */
        give_up(objects[i], i % 4 ? sizeof(struct object) : 2048, me);
        prudence_cache_free_deferred(i % 4 ? small : large, objects[i]);
    }
    free(objects);
    __atomic_fetch_add(&operations, done, __ATOMIC_RELAXED);
    return NULL;
}

static void check_end(void)
{
    struct prudence_stats stats;

    TORTURE_CHECK(prudence_cache_destroy(small) == 0);
    TORTURE_CHECK(prudence_cache_destroy(large) == 0);
    prudence_trim();
    prudence_stats(&stats);
    TORTURE_CHECK(stats.objects_live == 0);
    TORTURE_CHECK(stats.objects_latent == 0);
    TORTURE_CHECK(stats.bytes_latent == 0);
    TORTURE_CHECK(stats.slab_bytes == 0);
}

static int torture(const char *variant, double seconds)
{
    struct prudence_cache_stats one;

    /* A program with its own constructor starts the library first (reads options, makes the
     * tables of CPUs). So the test repeats the parts that depend on the number of CPUs, and
     * starts the helper after that, because it would read them at that time. */
    posix_topology_inject(CPUS, NODES, random_cpu);
    TORTURE_CHECK(slab_start());
    if (!strcmp(variant, "background"))
        prudence_option_set("background", "1");
    outside = CPUS;
    small = prudence_cache_create("small", sizeof(struct object), NULL);
    large = prudence_cache_create("large", 2048, NULL);
    torture_pretend_idle();
    torture_start(worker, THREADS, 1);
    for (unsigned i = 0; i < 10; i++) { /* CPUs go quiet, and come back */
        torture_sleep_us((unsigned)(seconds * 1e5));
        __atomic_store_n(&outside, i % 2 ? CPUS : 8, __ATOMIC_RELAXED);
        /* Caches stay on all CPUs, or follow the threads (abandoned.c). */
        __atomic_store_n(&posix_threads_injected, i % 4 < 2 ? THREADS : CPUS, __ATOMIC_RELAXED);
        if (i % 3 == 2)
            prudence_trim();
    }
    torture_join();
    prudence_trim(); /* objects in quarantine, or resting by shuffle, are live until then */
    prudence_cache_stats(small, &one);
    if (one.objects_live)
        torture_violation("%lld objects are live in the end, by the statistics",
                          (long long)one.objects_live);
    TORTURE_SAY({"operations", operations}, {"recognized", recognized},
                {"remote drains", one.remote_drains}, {"slabs peak", one.slabs_peak},
                {"pre-flushed", one.preflushed_objects});
    check_end();
    return torture_end(variant);
}

TORTURE(torture, {"default", ""}, {"background", ""}, {"checked", "check=1"})
