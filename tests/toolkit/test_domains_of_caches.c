/* SPDX-License-Identifier: MIT */
/*
 * Deferred objects are handed out again when the domain of their cache allows: srcu, sets and
 * external domains. Pressure and throttling wait for domains of every kind, no longer than
 * wait_max.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"
#include "support/stats.h"

static void *objects[OBJECTS_MAX];
static uint64_t foreign_begun, foreign_over;

static uint64_t start_poll(void *unused)
{
    return ++foreign_begun;
}

static bool poll_state(void *unused, uint64_t cookie)
{
    return foreign_over >= cookie;
}

/* Checks that none of 64 deferred objects is handed out before `let_go`, and that all are merged
 * afterwards. */
static void defer_and_look(struct prudence_domain *domain, void (*let_go)(void *), void *argument)
{
    struct prudence_cache *cache = fixed_cache(128, 16, domain);
    void *fresh[64];

    allocate_all(cache, objects, 64);
    defer_all(cache, objects, 64);
    prudence_cache_shrink(cache);
    allocate_all(cache, fresh, 64);
    for (unsigned i = 0; i < 64; i++)
        assert_false(contains(objects, 64, fresh[i]));
    assert_int_equal(stats_of(cache).objects_latent, 64);
    for (unsigned round = 0; round < 6; round++) { /* batches closed late have later cookies */
        prudence_domain_poll_state(domain, prudence_domain_start_poll(domain));
        let_go(argument);
        for (unsigned i = 0; i < 4; i++)
            prudence_domain_poll_state(domain, prudence_domain_start_poll(domain));
        prudence_cache_shrink(cache);
    }
    assert_int_equal(stats_of(cache).objects_latent, 0);
    check_books(cache);
    free_all(cache, fresh, 64);
    let_go(argument);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

static void let_srcu_go(void *at)
{
    struct prudence_domain **domain = at;

    if (*domain)
        prudence_srcu_up_read(*domain, (int)(intptr_t)((void **)at)[1]);
    *domain = NULL;
}

TEST(srcu_readers_keep_them)
{
    struct prudence_domain *domain = prudence_domain_create("srcu", PRUDENCE_DOMAIN_SRCU, NULL);
    void *held[2] = {domain, (void *)(intptr_t)prudence_srcu_down_read(domain)};

    defer_and_look(domain, let_srcu_go, held);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static void let_manual_go(void *domain)
{
    prudence_manual_advance(domain);
}

TEST(one_member_of_a_set_keeps_them)
{
    struct prudence_domain *manual = manual_domain();
    struct prudence_domain *srcu = prudence_domain_create("srcu", PRUDENCE_DOMAIN_SRCU, NULL);
    struct prudence_domain *all[] = {srcu, prudence_default_domain(), manual};
    struct prudence_domain *set = prudence_domain_create_set("set", all, 3);

    /* The set waits for the manual domain, so each advance ends a grace period of the set. */
    defer_and_look(set, let_manual_go, manual);
    assert_int_equal(prudence_domain_destroy(set), 0);
    assert_int_equal(prudence_domain_destroy(srcu), 0);
}

static void let_foreign_go(void *unused)
{
    foreign_over = UINT64_MAX;
}

TEST(foreign_grace_periods_keep_them)
{
    struct prudence_domain_ops ops = {
        .size = sizeof ops, .start_poll = start_poll, .poll_state = poll_state};
    struct prudence_domain *domain = prudence_domain_create_external("foreign", &ops, NULL);

    defer_and_look(domain, let_foreign_go, NULL);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* ---------------------------------------------------------------------------- implicit waits */

/* The first deferral past the limit waits for wait_max, and later ones do not wait. After the
 * reader has ended, the limit holds again. */
static void throttle(struct prudence_domain *domain, struct prudence_domain *read_in, bool handed)
{
    struct prudence_cache *cache = fixed_cache(512, 0, domain);
    int index = handed ? prudence_srcu_down_read(read_in) : prudence_srcu_read_lock(read_in);
    struct prudence_stats before = stats_now(), after;

    for (unsigned i = 0; i < 8192; i++)
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    prudence_stats(&after);
    assert_true(after.bytes_latent > 1 << 20);
    /* A section of this thread is known, so nothing waits. A handed-over one is not known, so one
     * wait expires. */
    assert_int_equal(after.throttle_waits - before.throttle_waits, handed);
    assert_int_equal(after.throttle_expiries - before.throttle_expiries, handed);
    if (handed)
        prudence_srcu_up_read(read_in, index);
    else
        prudence_srcu_read_unlock(read_in, index);
    assert_int_equal(prudence_domain_synchronize(domain), 0);
    for (unsigned i = 0; i < 8192; i++)
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    prudence_stats(&before);
    assert_true(before.bytes_latent <= 1 << 20);
    assert_int_equal(before.throttle_expiries, after.throttle_expiries);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

TEST(waits_end_in_srcu)
{
    struct prudence_domain *domain = prudence_domain_create("srcu", PRUDENCE_DOMAIN_SRCU, NULL);

    throttle(domain, domain, false);
    throttle(domain, domain, true);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(waits_end_in_sets)
{
    struct prudence_domain *domain = prudence_domain_create("srcu", PRUDENCE_DOMAIN_SRCU, NULL);
    struct prudence_domain *both[] = {prudence_default_domain(), domain};
    struct prudence_domain *set = prudence_domain_create_set("set", both, 2);

    throttle(set, domain, false);
    throttle(set, domain, true);
    assert_int_equal(prudence_domain_destroy(set), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* Pressure drives all domains, even if there are more than it polls together. */
TEST(pressure_reaches_every_domain)
{
    enum { DOMAINS = 40 };
    struct prudence_domain *domains[DOMAINS];
    struct prudence_cache *caches[DOMAINS];

    prudence_option_set("latent_limit", "0");
    for (unsigned i = 0; i < DOMAINS; i++) {
        domains[i] = prudence_domain_create("one of many", PRUDENCE_DOMAIN_SRCU, NULL);
        caches[i] = fixed_cache(512, 16, domains[i]);
        allocate_all(caches[i], objects, 16);
        defer_all(caches[i], objects, 16);
    }
    memory_fail(0, UINT32_MAX);
    for (unsigned i = 0; i < 1000 && (objects[i] = prudence_cache_alloc(caches[0])); i++)
        ; /* until every means has failed */
    memory_succeed();
    for (unsigned i = 0; i < DOMAINS; i++)
        assert_int_equal(stats_of(caches[i]).objects_latent, 0);
    for (unsigned i = 0; i < 1000 && objects[i]; i++)
        prudence_cache_free(caches[0], objects[i]);
    for (unsigned i = 0; i < DOMAINS; i++) {
        assert_int_equal(prudence_cache_destroy(caches[i]), 0);
        assert_int_equal(prudence_domain_destroy(domains[i]), 0);
    }
    prudence_option_set("latent_limit", "1M");
}

static int set_options(void **state)
{
    return prudence_option_set("wait_max", "30ms") || prudence_option_set("latent_limit", "1M");
}

SUITE_BETWEEN(set_options, NULL, pin_thread())
