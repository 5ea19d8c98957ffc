/* SPDX-License-Identifier: MIT */
/*
 * Caches whose objects are read by liburcu's readers: every flavor of Debian's liburcu.
 *
 * ctest: needs liburcu
 */
#define _GNU_SOURCE

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include <urcu/urcu-bp.h>
#include <urcu/urcu-mb.h>
#include <urcu/urcu-memb.h>
#include <urcu/urcu-qsbr.h>

#include <prudence/stats.h>
#include <prudence/urcu-domain.h>

#include "gp/user/domain.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/suite.h"

/* The headers name these by macros that are off here. */
extern const struct rcu_flavor_struct urcu_memb_flavor, urcu_mb_flavor, urcu_qsbr_flavor,
    urcu_bp_flavor;

static const struct rcu_flavor_struct *const flavors[] = {&urcu_memb_flavor, &urcu_mb_flavor,
                                                          &urcu_qsbr_flavor, &urcu_bp_flavor};
#define FLAVORS (sizeof flavors / sizeof flavors[0])

struct reader {
    const struct rcu_flavor_struct *flavor;
    pthread_t thread;
    sem_t inside, leave;
};

static void *read_until_told(void *argument)
{
    struct reader *reader = argument;

    reader->flavor->register_thread();
    reader->flavor->read_lock();
    sem_post(&reader->inside);
    while (sem_wait(&reader->leave))
        ;
    reader->flavor->read_unlock();
    reader->flavor->unregister_thread();
    return NULL;
}

static void reader_start(struct reader *reader)
{
    sem_init(&reader->inside, 0, 0);
    sem_init(&reader->leave, 0, 0);
    pthread_create(&reader->thread, NULL, read_until_told, reader);
    while (sem_wait(&reader->inside))
        ;
}

static void reader_end(struct reader *reader)
{
    sem_post(&reader->leave);
    pthread_join(reader->thread, NULL);
}

static bool is_over_within_ms(struct prudence_domain *domain, prudence_gp_t cookie, unsigned ms)
{
    unsigned long long end = now_ns() + ms * 1000000ull;

    while (!prudence_domain_poll_state(domain, cookie)) {
        if (now_ns() > end)
            return false;
        pause_ms(1);
    }
    return true;
}

TEST(a_reader_of_each_flavor_is_waited_for)
{
    for (unsigned i = 0; i < FLAVORS; i++) {
        struct prudence_domain *domain = prudence_urcu_domain_create("urcu", flavors[i]);
        struct reader reader = {.flavor = flavors[i]};
        prudence_gp_t cookie;

        assert_non_null(domain);
        assert_int_equal(prudence_domain_synchronize(domain), 0);
        reader_start(&reader);
        cookie = prudence_domain_start_poll(domain);
        assert_false(is_over_within_ms(domain, cookie, 30));
        reader_end(&reader);
        assert_true(is_over_within_ms(domain, cookie, 20000));
        assert_int_equal(prudence_domain_destroy(domain), 0);
    }
}

/* Polling and deferring never run liburcu's synchronize here: a reader that stays blocks no
 * thread. */
TEST(allocating_never_blocks_in_synchronize)
{
    struct prudence_domain *domain = prudence_urcu_domain_create("urcu", &urcu_mb_flavor);
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
    struct prudence_cache *cache = prudence_cache_create("urcu objects", 512, &attr);
    struct reader reader = {.flavor = &urcu_mb_flavor};
    struct prudence_stats before, after;

    assert_int_equal(prudence_option_set("latent_limit", "1M"), 0);
    assert_int_equal(prudence_option_set("wait_max", "20ms"), 0);
    prudence_stats(&before);
    reader_start(&reader);
    for (unsigned i = 0; i < 10000; i++)
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    prudence_stats(&after);
    assert_true(after.bytes_latent > 1 << 20);
    assert_int_equal(after.throttle_expiries - before.throttle_expiries, 1);
    reader_end(&reader);
    assert_int_equal(prudence_domain_synchronize(domain), 0);
    prudence_option_set("wait_max", "20s");
    for (unsigned i = 0; i < 10000; i++)
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    prudence_stats(&after);
    assert_true(after.bytes_latent <= 1 << 20);
    assert_int_equal(after.throttle_expiries - before.throttle_expiries, 1);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
    prudence_option_set("latent_limit", "32M");
    prudence_option_set("wait_max", "500ms");
}

TEST(a_reader_is_recognized_and_waits_for_nothing)
{
    for (unsigned i = 0; i < FLAVORS; i++) {
        struct prudence_domain *domain = prudence_urcu_domain_create("urcu", flavors[i]);
        struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
        struct prudence_cache *cache = prudence_cache_create("urcu objects", 64, &attr);

        flavors[i]->register_thread();
        flavors[i]->read_lock();
        assert_true(prudence_domain_read_lock_held(domain));
        assert_false(gp_may_wait());
        assert_int_equal(prudence_domain_synchronize(domain), EDEADLK);
        assert_int_equal(prudence_cache_destroy(cache), EDEADLK);
        prudence_synchronize(); /* of others: allowed */
        flavors[i]->read_unlock();
        flavors[i]->thread_offline(); /* qsbr */
        assert_false(prudence_domain_read_lock_held(domain));
        assert_true(gp_may_wait());
        assert_int_equal(prudence_domain_synchronize(domain), 0);
        assert_int_equal(prudence_cache_destroy(cache), 0);
        flavors[i]->thread_online();
        flavors[i]->unregister_thread();
        assert_int_equal(prudence_domain_destroy(domain), 0);
    }
}

static int go_on_in_child(void *domain)
{
    prudence_gp_t cookie = prudence_domain_start_poll(domain);

    return is_over_within_ms(domain, cookie, 20000) ? 42 : 1;
}

/* The child lacks the library's thread, and starts another. */
TEST(a_forked_child_goes_on)
{
    struct prudence_domain *domain = prudence_urcu_domain_create("urcu", &urcu_memb_flavor);

    assert_int_equal(prudence_domain_synchronize(domain), 0);
    assert_child(go_on_in_child, domain);
    assert_int_equal(prudence_domain_synchronize(domain), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(a_set_mixes_liburcu_with_ours)
{
    struct prudence_domain *urcu = prudence_urcu_domain_create("urcu", &urcu_bp_flavor);
    struct prudence_domain *pair[] = {urcu, prudence_default_domain()};
    struct prudence_domain *set = prudence_domain_create_set("both", pair, 2);
    struct reader reader = {.flavor = &urcu_bp_flavor};
    struct held_reader ours = {.domain = NULL};
    prudence_gp_t cookie;

    reader_start(&reader);
    held_reader_start(&ours);
    cookie = prudence_domain_start_poll(set);
    assert_false(is_over_within_ms(set, cookie, 10));
    reader_end(&reader);
    assert_false(is_over_within_ms(set, cookie, 50));
    held_reader_end(&ours);
    assert_true(is_over_within_ms(set, cookie, 20000));
    assert_int_equal(prudence_domain_synchronize(set), 0);
    assert_int_equal(prudence_domain_destroy(set), 0);
    assert_int_equal(prudence_domain_destroy(urcu), 0);
}

SUITE()
