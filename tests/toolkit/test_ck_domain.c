/* SPDX-License-Identifier: MIT */
/*
 * Caches whose objects are read inside epochs of Debian's Concurrency Kit.
 *
 * ctest: needs ck
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include <prudence/ck-domain.h>
#include <prudence/prudence.h>

#include "gp/gp_wait.h"
#include "support/suite.h"

static ck_epoch_t epoch;
static __thread ck_epoch_record_t *record;
static ck_epoch_record_t records[2];

static ck_epoch_record_t *own_record(void)
{
    return record;
}

static const struct prudence_ck_readers readers = {&epoch, own_record};
static sem_t inside, leave;

static void *read_until_told(void *unused)
{
    record = &records[1];
    ck_epoch_begin(record, NULL);
    sem_post(&inside);
    while (sem_wait(&leave))
        ;
    ck_epoch_end(record, NULL);
    return unused;
}

static pthread_t reader_start(void)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, read_until_told, NULL), 0);
    while (sem_wait(&inside))
        ;
    return thread;
}

static void reader_end(pthread_t thread)
{
    sem_post(&leave);
    pthread_join(thread, NULL);
}

static int set_up(void **unused)
{
    static bool done;

    (void)unused;
    if (done)
        return 0;
    done = true;
    ck_epoch_init(&epoch);
    ck_epoch_register(&epoch, &records[0], NULL);
    ck_epoch_register(&epoch, &records[1], NULL);
    record = &records[0];
    sem_init(&inside, 0, 0);
    return sem_init(&leave, 0, 0);
}

TEST(a_reader_in_an_epoch_keeps_an_object, set_up)
{
    struct prudence_domain *domain = prudence_ck_domain_create("epochs", &readers);
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
    struct prudence_cache *cache = prudence_cache_create("objects", 64, &attr);
    pthread_t thread = reader_start();
    void *object = prudence_cache_alloc(cache);
    prudence_gp_t cookie;

    prudence_cache_free_deferred(cache, object);
    cookie = prudence_domain_start_poll(domain);
    for (unsigned i = 0; i < 1000; i++) {
        void *other = prudence_cache_alloc(cache);

        assert_ptr_not_equal(other, object);
        prudence_cache_free(cache, other);
    }
    assert_false(prudence_domain_poll_state(domain, cookie));
    reader_end(thread);
    assert_int_equal(prudence_domain_synchronize(domain), 0);
    assert_true(prudence_domain_poll_state(domain, cookie));
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(a_thread_in_an_epoch_waits_for_nothing, set_up)
{
    struct prudence_domain *domain = prudence_ck_domain_create("epochs", &readers);
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
    struct prudence_cache *cache = prudence_cache_create("objects", 64, &attr);

    assert_false(prudence_domain_read_lock_held(domain));
    ck_epoch_begin(record, NULL);
    assert_true(prudence_domain_read_lock_held(domain));
    assert_false(gp_may_wait());
    assert_int_equal(prudence_domain_synchronize(domain), EDEADLK);
    ck_epoch_end(record, NULL);
    assert_true(gp_may_wait());
    assert_int_equal(prudence_domain_synchronize(domain), 0);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

SUITE()
