/* SPDX-License-Identifier: MIT */
/*
 * A small self-checking workload: writers replace and defer a shared object, readers read the
 * object, and every object handed out must be past its grace period.
 */
#ifndef TESTS_SUPPORT_GP_WORKLOAD_H
#define TESTS_SUPPORT_GP_WORKLOAD_H

#include "support/gp_torture.h"

#define WORKLOAD_WORDS   12
#define WORKLOAD_THREADS 4 /* readers; half as many writers */

struct workload_object {
    struct torture_mark mark;
    uint64_t words[WORKLOAD_WORDS];
};

struct workload {
    struct prudence_cache *cache;
    struct workload_object *shared;
    uint64_t births, updates, reads;
    int stop; /* atomic */
};

static struct workload_object *workload_make(struct workload *work)
{
    struct workload_object *object = prudence_cache_alloc(work->cache);
    uint64_t birth = __atomic_add_fetch(&work->births, WORKLOAD_WORDS, __ATOMIC_RELAXED);

    torture_check_reuse(&object->mark, prudence_default_domain());
    __atomic_store_n(&object->mark.birth, birth, __ATOMIC_RELAXED);
    torture_mark_set(&object->mark, TORTURE_LIVE, 0);
    for (unsigned i = 0; i < WORKLOAD_WORDS; i++)
        __atomic_store_n(&object->words[i], birth + i, __ATOMIC_RELAXED);
    return object;
}

static void workload_write(struct workload *work)
{
    struct workload_object *old =
        __atomic_exchange_n(&work->shared, workload_make(work), __ATOMIC_ACQ_REL);

    torture_mark_set(&old->mark, TORTURE_RETIRED, prudence_gp_get_state().private_value);
    prudence_cache_free_deferred(work->cache, old);
    prudence_free_deferred(prudence_malloc(100));
    if (__atomic_add_fetch(&work->updates, 1, __ATOMIC_RELAXED) % 1000 == 0)
        prudence_synchronize();
}

static void workload_read(struct workload *work)
{
    struct workload_object *object;
    uint64_t birth;

    prudence_read_lock();
    object = prudence_dereference(work->shared);
    birth = __atomic_load_n(&object->mark.birth, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < WORKLOAD_WORDS; i++)
        if (__atomic_load_n(&object->words[i], __ATOMIC_RELAXED) != birth + i)
            torture_violation("object %p changed inside a section", (void *)object);
    prudence_read_unlock();
    __atomic_fetch_add(&work->reads, 1, __ATOMIC_RELAXED);
}

static void *workload_writer(void *work)
{
    while (!__atomic_load_n(&((struct workload *)work)->stop, __ATOMIC_RELAXED))
        workload_write(work);
    return NULL;
}

static void *workload_reader(void *work)
{
    while (!__atomic_load_n(&((struct workload *)work)->stop, __ATOMIC_RELAXED))
        workload_read(work);
    return NULL;
}

/* Runs the workload, calling `in_between` (or NULL) half way. Returns the number of violations. */
TORTURE_UNUSED static uint64_t workload_run(unsigned milliseconds, void (*in_between)(void))
{
    struct workload work = {
        .cache = prudence_cache_create("workload", sizeof(struct workload_object), NULL)};
    pthread_t readers[WORKLOAD_THREADS], writers[WORKLOAD_THREADS / 2];

    work.shared = workload_make(&work);
    for (unsigned i = 0; i < WORKLOAD_THREADS; i++)
        readers[i] = torture_thread(workload_reader, &work);
    for (unsigned i = 0; i < WORKLOAD_THREADS / 2; i++)
        writers[i] = torture_thread(workload_writer, &work);
    torture_sleep_us(milliseconds * 500);
    if (in_between)
        in_between();
    do /* at least half the time, and until both kinds of threads have made progress */
        torture_sleep_us(milliseconds * 500);
    while (!__atomic_load_n(&work.updates, __ATOMIC_RELAXED) ||
           !__atomic_load_n(&work.reads, __ATOMIC_RELAXED));
    __atomic_store_n(&work.stop, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < WORKLOAD_THREADS; i++)
        pthread_join(readers[i], NULL);
    for (unsigned i = 0; i < WORKLOAD_THREADS / 2; i++)
        pthread_join(writers[i], NULL);
    prudence_trim();
    torture_mark_set(&work.shared->mark, TORTURE_NEW, 0);
    prudence_cache_free_deferred(work.cache, work.shared);
    TORTURE_CHECK(prudence_cache_destroy(work.cache) == 0);
    return torture_violations;
}

#endif /* TESTS_SUPPORT_GP_WORKLOAD_H */
