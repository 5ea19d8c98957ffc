/* SPDX-License-Identifier: MIT */
/*
 * No public function is a cancellation point. This holds for functions that wait, that print, and
 * that report something on the way (an unknown option, a reader that stays too long).
 */
#include "support/slab_test.h"

#include <pthread.h>

#include <prudence/call.h>
#include <prudence/scm.h>

#include "support/cancelled.h"

static FILE *file; /* unbuffered: every print writes */

static void allocating(void)
{
    for (size_t size = 0; size < 200000; size = size * 2 + 1) {
        prudence_free(prudence_realloc(prudence_calloc(1, size), size + 70000));
        prudence_free_deferred(prudence_aligned_alloc(64, size + 1));
        prudence_free_sized(prudence_malloc(100), 100);
    }
    prudence_trim();
    prudence_free(prudence_malloc((size_t)1 << 46));
}

static void of_caches(void)
{
    struct prudence_cache *cache = prudence_cache_create("cancelled", 100, NULL);
    struct prudence_cache_stats stats;
    void *objects[300];

    if (prudence_cache_alloc_bulk(cache, 300, objects) != 300)
        abort();
    prudence_cache_free_deferred_bulk(cache, 100, objects);
    prudence_cache_free_bulk(cache, 200, objects + 100);
    prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    prudence_cache_free(cache, prudence_cache_alloc(cache));
    prudence_cache_stats(cache, &stats);
    prudence_cache_barrier(cache);
    prudence_cache_shrink(cache);
    if (prudence_cache_destroy(cache))
        abort();
}

static void reading_and_waiting(void)
{
    struct prudence_domain *domain =
        prudence_domain_create("cancelled", PRUDENCE_DOMAIN_MEMB, NULL);

    prudence_read_lock();
    prudence_read_unlock();
    prudence_domain_read_lock(domain);
    prudence_domain_read_unlock(domain);
    prudence_synchronize();
    prudence_synchronize_expedited();
    prudence_gp_cond_synchronize(prudence_gp_start_poll());
    prudence_domain_synchronize(domain);
    if (prudence_domain_destroy(domain))
        abort();
}

static void callback(struct prudence_head *head)
{
    prudence_free(head);
}

static void callbacks(void)
{
    prudence_call(prudence_malloc(sizeof(struct prudence_head)), callback);
    prudence_barrier();
}

static void short_term(void)
{
    struct scm_mem_info info;

    scm_register_thread();
    scm_refresh(scm_malloc(100), 1);
    scm_refresh(scm_malloc(100), 100000000); /* an error that is reported */
    scm_tick();
    scm_tick();
    scm_collect();
    scm_get_mem_info(&info);
    scm_unregister_thread();
}

static void printing(void)
{
    struct prudence_stats stats;

    prudence_stats(&stats);
    if (prudence_stats_print(file, PRUDENCE_STATS_TEXT) ||
        prudence_stats_print(file, PRUDENCE_STATS_JSON))
        abort();
}

static void options(void)
{
    prudence_option_set("unknown", "1");
    prudence_option_set("limit", "much");
    prudence_option_set("latent_limit", "32M");
    prudence_option_set("stats", "0");
}

/* ----------------------------------------------------- a report of a reader that stays too long */

static pthread_barrier_t inside;
static uint32_t reported;

static void hook(const struct prudence_stall *stall, void *argument)
{
    store_release(&reported, 1u);
}

static void *stay(void *unused)
{
    prudence_read_lock();
    pthread_barrier_wait(&inside);
    while (!load_acquire(&reported))
        os_sleep_ns(100000);
    prudence_read_unlock();
    return NULL;
}

static void wait_for_the_reader(void)
{
    prudence_synchronize();
}

TEST(a_stall_report)
{
    pthread_t reader;

    pthread_barrier_init(&inside, NULL, 2);
    prudence_stall_hook_set(hook, NULL);
    assert_int_equal(prudence_option_set("stall_timeout", "1us"), 0);
    assert_int_equal(pthread_create(&reader, NULL, stay, NULL), 0);
    pthread_barrier_wait(&inside);
    assert_true(returns_when_cancelled(wait_for_the_reader));
    store_release(&reported, 1u); /* otherwise the reader would stay */
    pthread_join(reader, NULL);
    assert_int_equal(prudence_option_set("stall_timeout", "10s"), 0);
    prudence_stall_hook_set(NULL, NULL);
}

TEST(nothing_is_a_cancellation_point)
{
    static const struct {
        const char *name;
        void (*call)(void);
    } calls[] = {
        {"allocating", allocating}, {"caches", of_caches},      {"reading", reading_and_waiting},
        {"callbacks", callbacks},   {"short-term", short_term}, {"printing", printing},
        {"options", options},
    };

    file = fopen("/dev/null", "w");
    setvbuf(file, NULL, _IONBF, 0);
    for (unsigned i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (!returns_when_cancelled(calls[i].call))
            fail_msg("%s: there is a cancellation point", calls[i].name);
    fclose(file);
}

SUITE()
