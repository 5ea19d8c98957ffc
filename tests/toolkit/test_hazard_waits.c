/* SPDX-License-Identifier: MIT */
/*
 * Waits with hazard pointers that stay. Deferrals and allocations never wait for a name: wait_max
 * is so long here that the test would not end. Explicit waits are for names of the cache's own
 * deferred objects, and refuse where the thread would wait for its own name.
 */
#include <errno.h>
#include <semaphore.h>

#include <prudence/call.h>
#include <prudence/hazard.h>
#include <prudence/structure.h>

#include "slab/reclaim/limit.h"
#include "support/gp_reader.h"
#include "support/slab_test.h"
#include "support/stats.h"
#include "support/threads.h"

#define MIB  ((size_t)1 << 20)
#define MANY 40

static struct prudence_domain *hazards, *sections, *both;
static struct prudence_hazard *slots[MANY];
static void *objects[OBJECTS_MAX];

static int set_up(void **state)
{
    struct prudence_domain *members[2];

    members[0] = sections = prudence_domain_create("sections", PRUDENCE_DOMAIN_MEMB, NULL);
    members[1] = hazards = prudence_domain_create("hazards", PRUDENCE_DOMAIN_HAZARD, NULL);
    both = prudence_domain_create_set("both", members, 2);
    return prudence_option_set("wait_max", "1000000ms") ||
           prudence_option_set("latent_limit", "8M");
}

static int tear_down(void **state)
{
    return prudence_domain_destroy(both) || prudence_domain_destroy(hazards) ||
           prudence_domain_destroy(sections);
}

static struct prudence_hazard *name(const void *object)
{
    struct prudence_hazard *slot = prudence_hazard_acquire();

    prudence_hazard_set(slot, object);
    return slot;
}

/* Names and defers blocks of a MiB, far past the limit. */
static struct prudence_cache *name_blocks(struct prudence_domain *domain)
{
    struct prudence_cache *blocks = prudence_cache_create_blocks("blocks", domain);

    for (unsigned i = 0; i < MANY; i++) {
        objects[i] = prudence_cache_alloc_block(blocks, MIB, NULL);
        slots[i] = name(objects[i]);
        prudence_free_deferred(objects[i]);
    }
    return blocks;
}

static void release_and_destroy(struct prudence_cache *blocks)
{
    for (unsigned i = 0; i < MANY; i++)
        prudence_hazard_release(slots[i]);
    assert_int_equal(prudence_cache_destroy(blocks), 0);
    assert_int_equal(stats_now().bytes_named, 0);
    prudence_synchronize();
    prudence_trim();
    assert_true(limit_used() < MIB); /* the account is whole again */
}

/* What names hold is latent, and beyond the limit, which goes on for all else. */
static void defer_with_names(struct prudence_domain *domain)
{
    uint64_t overruns = stats_now().latent_overruns;
    struct prudence_cache *blocks = name_blocks(domain);

    assert_true(stats_now().bytes_latent >= MANY * MIB);
    assert_true(stats_now().bytes_named >= MANY * MIB - 8 * MIB);
    assert_true(limit_used() <= 8 * MIB);
    assert_int_equal(stats_now().latent_overruns, overruns);
    prudence_cache_shrink(blocks); /* polls again */
    assert_true(limit_used() + stats_now().bytes_named >= stats_now().bytes_latent);
    assert_true(stats_now().bytes_named <= stats_now().bytes_latent);
    for (unsigned i = 0; i < 100; i++)
        prudence_free_deferred(prudence_malloc(1000 + 300 * i));
    release_and_destroy(blocks);
}

TEST(no_deferral_waits_for_a_name)
{
    defer_with_names(hazards);
}

TEST(nor_in_a_set_with_sections)
{
    defer_with_names(both);
}

TEST(a_section_is_still_waited_for)
{
    struct prudence_cache *blocks, *cache = fixed_cache(4096, 0, sections);
    uint64_t expiries = stats_now().throttle_expiries;
    struct held_reader reader = {.domain = sections};

    assert_int_equal(prudence_option_set("wait_max", "1ms"), 0);
    blocks = name_blocks(hazards);
    assert_int_equal(stats_now().throttle_expiries, expiries);
    held_reader_start(&reader);
    allocate_all(cache, objects, 2300);
    defer_all(cache, objects, 2300); /* more than the limit */
    assert_true(stats_now().throttle_expiries > expiries);
    held_reader_end(&reader);
    assert_int_equal(prudence_option_set("wait_max", "1000000ms"), 0);
    release_and_destroy(blocks);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

TEST(an_object_larger_than_the_limit)
{
    struct prudence_cache *blocks = prudence_cache_create_blocks("blocks", hazards);
    void *first = prudence_cache_alloc_block(blocks, 9 * MIB, NULL);
    void *second = prudence_cache_alloc_block(blocks, 9 * MIB, NULL);
    struct prudence_hazard *slot = name(first);

    prudence_free_deferred(second);
    assert_int_equal(stats_of(blocks).objects_latent, 0);
    prudence_free_deferred(first);
    assert_int_equal(stats_of(blocks).objects_latent, 1);
    prudence_hazard_release(slot);
    assert_int_equal(prudence_cache_destroy(blocks), 0);
}

TEST(no_allocation_waits_for_a_name)
{
    struct prudence_cache *blocks = name_blocks(hazards);

    assert_int_equal(prudence_option_set("limit", "64M"), 0);
    for (unsigned i = 0; i < 10; i++)
        assert_null(prudence_malloc(64 * MIB));
    assert_int_equal(prudence_option_set("limit", "0"), 0);
    slab_growth_limit = 1;
    for (unsigned i = 0; i < 100; i++)
        prudence_free_deferred(prudence_malloc(1000 + 300 * i));
    slab_growth_limit = 0;
    release_and_destroy(blocks);
}

/* ------------------------------------------------------------------------------ explicit waits */

static void destruct(void *object, void *context)
{
}

static struct prudence_cache *cache_with(void (*destructor)(void *object, void *context),
                                         struct prudence_domain *domain)
{
    struct prudence_cache_attr attr = {
        .size = sizeof attr, .domain = domain, .destructor = destructor};

    return prudence_cache_create("waits", 64, &attr);
}

static void (*const destructors[])(void *object, void *context) = {NULL, destruct};

/* Names that are not of deferred objects of the cache block no thread, however long. */
TEST(a_barrier_waits_for_no_other_name)
{
    static char elsewhere[64];
    struct prudence_domain *domains[] = {hazards, both};

    for (unsigned i = 0; i < 4; i++) {
        struct prudence_cache *cache = cache_with(destructors[i / 2], domains[i % 2]);
        struct prudence_cache *other = cache_with(NULL, hazards);
        void *live = prudence_cache_alloc(cache), *foreign = prudence_cache_alloc(other);
        struct prudence_hazard *names[] = {name(elsewhere), name(live), name(foreign),
                                           name((char *)foreign + 4096), name((void *)16)};

        prudence_free_deferred(foreign);
        for (unsigned j = 0; j < 300; j++)
            prudence_free_deferred(prudence_cache_alloc(cache));
        assert_int_equal(prudence_cache_barrier(cache), 0);
        prudence_free_deferred(live);
        assert_int_equal(prudence_cache_barrier(cache), EDEADLK);
        prudence_hazard_release(names[1]);
        assert_int_equal(prudence_cache_barrier(cache), 0);
        assert_int_equal(prudence_cache_destroy(cache), 0);
        for (unsigned j = 0; j < 5; j++)
            if (j != 1)
                prudence_hazard_release(names[j]);
        assert_int_equal(prudence_cache_destroy(other), 0);
    }
}

static sem_t named, leave;

static void *name_until_told(void *object)
{
    struct prudence_hazard *slot = name(object);

    sem_post(&named);
    sem_wait(&leave);
    prudence_hazard_release(slot);
    return NULL;
}

TEST(a_barrier_waits_for_the_name_of_another_thread)
{
    for (unsigned i = 0; i < 2; i++) {
        struct prudence_cache *cache = cache_with(destructors[i], hazards);
        char *object = prudence_cache_alloc(cache);
        pthread_t thread;

        sem_init(&named, 0, 0);
        sem_init(&leave, 0, 0);
        assert_int_equal(pthread_create(&thread, NULL, name_until_told, object + 5), 0);
        sem_wait(&named);
        prudence_free_deferred(object);
        assert_int_equal(prudence_cache_barrier_timed(cache, 1000000), ETIMEDOUT);
        sem_post(&leave);
        assert_int_equal(prudence_cache_barrier(cache), 0);
        pthread_join(thread, NULL);
        assert_int_equal(prudence_cache_destroy(cache), 0);
    }
}

static void do_nothing(struct prudence_head *head)
{
}

TEST(no_explicit_wait_is_for_an_own_name)
{
    static struct prudence_head head;
    struct prudence_sizes *sizes = prudence_sizes_create("family", hazards);
    void *object = prudence_sizes_alloc(sizes, 64), *another = prudence_sizes_alloc(sizes, 5 * MIB);
    struct prudence_hazard *slot = name(object);

    prudence_free_deferred(object);
    prudence_free_deferred(another);
    assert_int_equal(prudence_sizes_destroy(sizes), EDEADLK);
    assert_int_equal(prudence_domain_synchronize(hazards), EDEADLK);
    assert_int_equal(prudence_domain_synchronize(both), EDEADLK);
    prudence_domain_call(hazards, &head, do_nothing);
    assert_int_equal(prudence_domain_barrier(hazards), EDEADLK);
    prudence_hazard_set(slot, another);
    assert_int_equal(prudence_sizes_destroy(sizes), EDEADLK);
    prudence_hazard_release(slot);
    assert_int_equal(prudence_domain_barrier(hazards), 0);
    assert_int_equal(prudence_sizes_destroy(sizes), 0);
    for (unsigned i = 0; i < 2; i++) {
        struct prudence_cache *cache = cache_with(destructors[i], hazards);

        slot = name(object = prudence_cache_alloc(cache));
        assert_int_equal(prudence_cache_destroy(cache), EBUSY);
        prudence_free_deferred(object);
        assert_int_equal(prudence_cache_destroy(cache), EDEADLK);
        prudence_hazard_release(slot);
        assert_int_equal(prudence_cache_destroy(cache), 0);
    }
}

SUITE_BETWEEN(set_up, tear_down)
