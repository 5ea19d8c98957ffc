/* SPDX-License-Identifier: MIT */
/*
 * The fresh form of a lookup (docs/how-to/structures.md): a lock and a flag in each object. A
 * thread that has found and locked an object knows that it is not deleted, whatever other threads
 * do. Without the flag, the object may be deleted.
 */
#include "support/slab_test.h"
#include "support/updates.h"
#include "support/threads.h"

#include <prudence/id_table.h>

#define SEMAPHORES 8
#define THREADS    6
#define ROUNDS     20000

struct semaphore {
    pthread_mutex_t lock;
    bool deleted; /* protected by the lock */
    unsigned uses;
};

static struct prudence_id_table *table;
static bool
    exists[SEMAPHORES]; /* by number: the resource that each semaphore's lock guards; atomic */
static uint64_t found, obsolete;

static struct semaphore *lock_semaphore(uint32_t id)
{
    struct semaphore *semaphore = prudence_id_table_lookup(table, id);

    if (!semaphore)
        return NULL;
    pthread_mutex_lock(&semaphore->lock);
    if (!semaphore->deleted)
        return semaphore;
    __atomic_fetch_add(&obsolete, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&semaphore->lock);
    return NULL;
}

static void use(uint32_t id)
{
    struct semaphore *semaphore;

    prudence_read_lock();
    semaphore = lock_semaphore(id);
    if (semaphore) {
        assert_true(__atomic_load_n(&exists[id], __ATOMIC_RELAXED));
        semaphore->uses++;
        __atomic_fetch_add(&found, 1, __ATOMIC_RELAXED);
        pthread_mutex_unlock(&semaphore->lock);
    }
    prudence_read_unlock();
}

/* Returns whether this thread has deleted the semaphore. */
static bool delete_semaphore(uint32_t id)
{
    struct semaphore *semaphore = ids_erase_found(table, id);

    if (!semaphore)
        return false;
    pthread_mutex_lock(&semaphore->lock);
    semaphore->deleted = true;
    __atomic_store_n(&exists[id], false, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&semaphore->lock);
    prudence_free_deferred(semaphore);
    return true;
}

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

/* Deletes the semaphore and makes a new one under the free number, which no thread deletes in
 * between. */
static void delete_and_make(uint32_t id)
{
    struct semaphore *semaphore;
    uint32_t got;

    pthread_mutex_lock(&making);
    if (delete_semaphore(id)) {
        semaphore = prudence_malloc(sizeof *semaphore);
        *semaphore = (struct semaphore){.lock = PTHREAD_MUTEX_INITIALIZER};
        __atomic_store_n(&exists[id], true, __ATOMIC_RELAXED);
        assert_int_equal(prudence_id_table_add(table, semaphore, &got), 0);
        assert_int_equal(got, id);
    }
    pthread_mutex_unlock(&making);
}

static void *run(void *argument)
{
    uint64_t random = (uintptr_t)argument;

    for (unsigned i = 0; i < ROUNDS; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        if (random >> 60)
            use((uint32_t)(random >> 33) % SEMAPHORES);
        else
            delete_and_make((uint32_t)(random >> 33) % SEMAPHORES);
    }
    return NULL;
}

TEST(nothing_deleted_is_locked)
{
    pthread_t threads[THREADS];
    uint32_t id;

    table = prudence_id_table_create("semaphores", NULL);
    for (uint32_t i = 0; i < SEMAPHORES; i++) {
        struct semaphore *semaphore = prudence_malloc(sizeof *semaphore);

        *semaphore = (struct semaphore){.lock = PTHREAD_MUTEX_INITIALIZER};
        exists[i] = true;
        assert_int_equal(prudence_id_table_add(table, semaphore, &id), 0);
    }
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)(i + 1)), 0);
    threads_join(threads, THREADS);
    assert_true(found > 0);
    for (uint32_t i = 0; i < SEMAPHORES; i++)
        assert_true(delete_semaphore(i));
    assert_int_equal(prudence_id_table_destroy(table, NULL, NULL), 0);
}

/* Arranges the one moment that matters: the object is found, then deleted, then locked. */
TEST(an_object_that_is_deleted_in_between_is_not_found)
{
    struct semaphore *semaphore = prudence_malloc(sizeof *semaphore), *stale;
    uint32_t id;

    table = prudence_id_table_create("semaphores", NULL);
    *semaphore = (struct semaphore){.lock = PTHREAD_MUTEX_INITIALIZER};
    assert_int_equal(prudence_id_table_add(table, semaphore, &id), 0);
    prudence_read_lock();
    stale = prudence_id_table_lookup(table, id);
    assert_true(delete_semaphore(id));
    assert_ptr_equal(stale, semaphore);
    assert_true(stale->deleted);
    assert_null(lock_semaphore(id));
    prudence_read_unlock();
    assert_int_equal(prudence_id_table_destroy(table, NULL, NULL), 0);
}

SUITE()
