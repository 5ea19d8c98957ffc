/* SPDX-License-Identifier: MIT */
/*
 * Garbage never exceeds latent_limit, whatever objects it consists of: many sizes, each with an
 * open batch on each CPU, and grace periods that do not end. The test adds up the objects of every
 * cache, and does not use the account that enforces the limit. Nearly all of the limit is usable,
 * because reserved and unused space of rings is taken back before any thread waits.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "slab/latent_cache.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"
#include "support/random.h"
#include "support/slab_test.h"

#define CACHES  24
#define LARGEST ((size_t)32 << 10)

static struct prudence_cache *caches[CACHES];
static const size_t sizes[CACHES] = {16,   24,   32,   48,   64,   96,    128,   192,
                                     256,  320,  512,  640,  768,  1024,  1536,  2048,
                                     3072, 4096, 6144, 8192, 9216, 12288, 16384, 32768};
static struct prudence_domain *domain;
static uint64_t seed;

static unsigned choose(unsigned below)
{
    return random_below(&seed, below);
}

static uint64_t expiries(void)
{
    return load_relaxed(&wait_counts.expiries);
}

static size_t bytes_in_flight(void)
{
    size_t bytes = 0;

    for (unsigned i = 0; i < CACHES; i++)
        bytes += stats_of(caches[i]).objects_latent * caches[i]->body->stride;
    return bytes;
}

static void caches_make(void)
{
    domain = manual_domain();
    for (unsigned i = 0; i < CACHES; i++)
        caches[i] = fixed_cache(sizes[i], 0, domain);
}

static void caches_destroy(void)
{
    for (unsigned round = 0; round < 3; round++) {
        prudence_trim();
        prudence_manual_advance(domain);
    }
    for (unsigned i = 0; i < CACHES; i++)
        destroy_empty(caches[i]);
    assert_int_equal(limit_used(), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* Defers objects of all sizes on `cpus` CPUs, until one deferral meets wait_max. Returns the
 * maximum of bytes in flight before that. */
static size_t defer_until_the_limit(unsigned cpus, size_t limit)
{
    uint64_t before = expiries();
    size_t most = 0;

    for (;;) {
        struct prudence_cache *cache = caches[choose(CACHES)];
        void *object;

        injected_cpu = choose(cpus) * 16;
        object = prudence_cache_alloc(cache);
        assert_non_null(object);
        prudence_cache_free_deferred(cache, object);
        if (expiries() > before)
            return most;
        most = max_size(most, bytes_in_flight());
        if (most > limit)
            fail_msg("%zu bytes in flight on %u CPUs, the limit is %zu", most, cpus, limit);
    }
}

static void limit_set(size_t limit)
{
    char text[32];

    snprintf(text, sizeof text, "%zu", limit);
    assert_int_equal(prudence_option_set("latent_limit", text), 0);
}

static void on_cpus(unsigned cpus, size_t limit)
{
    size_t most;

    limit_set(limit);
    seed = cpus;
    caches_make();
    most = defer_until_the_limit(cpus, limit);
    if (most <= limit - LARGEST)
        fail_msg("waited with %zu bytes in flight, the limit is %zu", most, limit);
    limit_set(0);
    caches_destroy();
}

TEST(of_many_sizes_on_one_cpu)
{
    on_cpus(1, 4 << 20);
}

TEST(of_many_sizes_on_two_cpus)
{
    on_cpus(2, 4 << 20);
}

TEST(of_many_sizes_on_four_cpus)
{
    on_cpus(4, 4 << 20);
    on_cpus(4, 5000000);
    on_cpus(4, 32 << 20);
}

static void defer_one_of_any_size(void)
{
    struct prudence_cache *cache = caches[choose(CACHES)];

    injected_cpu = choose(4) * 16;
    prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
}

/* When no thread may wait, unused reservations are taken back each time, however recent the last
 * time was. */
TEST(inside_a_section_too)
{
    const size_t limit = 4 << 20;
    uint64_t before;

    limit_set(limit);
    seed = 7;
    caches_make();
    prudence_read_lock();
    for (before = load_relaxed(&limit_overruns); load_relaxed(&limit_overruns) == before;)
        defer_one_of_any_size();
    prudence_read_unlock();
    if (bytes_in_flight() <= limit)
        fail_msg("an overrun with %zu bytes in flight, the limit is %zu", bytes_in_flight(), limit);
    limit_set(0);
    caches_destroy();
}

/* The limit is exact even far below any sensible value. */
TEST(of_a_limit_of_a_few_objects)
{
    for (size_t limit = 2 * LARGEST; limit < 300000; limit += 15013)
        on_cpus(4, limit);
}

/* Rings and object caches are empty but have space reserved, so reservations are taken back from
 * everywhere. */
TEST(empty_rings_give_back_what_they_reserved)
{
    const struct prudence_cache *largest;

    limit_set(4 << 20);
    caches_make();
    for (injected_cpu = 0; injected_cpu < 4; injected_cpu++) {
        for (unsigned i = 0; i < CACHES; i++) {
            struct cpu_cache *cpu = NULL;

            assert_true(cpu_cache_grow(caches[i], caches[i]->body->size_min));
            cpu = cpu_cache_take(caches[i], &cpu);
            latent_cache_open(caches[i], cpu);
            cpu_cache_release(cpu);
        }
    }
    injected_cpu = 5;
    assert_true(limit_used() > 64 << 10);
    assert_int_equal(bytes_in_flight(), 0);
    largest = caches[CACHES - 1];
    for (unsigned i = 0; i < (4 << 20) / largest->body->stride; i++)
        prudence_cache_free_deferred(caches[CACHES - 1], prudence_cache_alloc(caches[CACHES - 1]));
    assert_int_equal(bytes_in_flight(), 4 << 20);
    assert_int_equal(limit_used(), 4 << 20);
    limit_set(0);
    caches_destroy();
}

SUITE(pin_thread(), inject_topology(), prudence_option_set("wait_max", "1ms"))
