/* SPDX-License-Identifier: MIT */
/*
 * A thread that has asked readers to fence checks again after 512 objects, or after 256 KiB of
 * large ones, which should return while they are in the CPU's memory caches. Checks that come too
 * early for the next question become rarer, because each costs some 60 ns.
 */
#define READERS 1
#include "gp/user/parking.h"
#include "slab/latent_cache.h"
#include "support/slab_test.h"
#include "support/told_readers.h"

#define LOOKS (2 * UINT16_MAX) /* more than are counted */

static void *objects[OBJECTS_MAX];
static struct prudence_cache *cache;

static int make_domain(void **state)
{
    domain = prudence_domain_create("look again", PRUDENCE_DOMAIN_MEMB, NULL);
    domain->choosing = 1; /* by another thread, so the domain's mode stays unchanged */
    domain->shared.fenced = domain->readers_fence_themselves = false;
    parking_follow_mode(domain, false);
    start_readers(1);
    return 0;
}

static int destroy_domain(void **state)
{
    end_readers(1);
    return prudence_domain_destroy(domain);
}

/* Makes a cache with room for `room` objects, a batch of which is latent. */
static void make_cache(size_t size, unsigned room)
{
    cache = fixed_cache(size, room, domain);
    allocate_all(cache, objects, cache->body->batch);
    defer_all(cache, objects, cache->body->batch);
}

static void end_cache(void)
{
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

/* Closes the batch, tries to end its grace period, and returns the number of batches after which
 * the next try is due. */
static unsigned passed_over(void)
{
    unsigned token = 0;
    struct cpu_cache *cpu = cpu_cache_take(cache, &token);

    assert_non_null(cpu);
    cpu->not_at_once = 0;
    latent_cache_close(cache, cpu);
    latent_cache_end_at_once(cache, cpu);
    token = cpu->not_at_once;
    cpu_cache_release(cpu);
    return token;
}

/* By the clock, the time of the next question has come, or is far away. */
static void question(bool is_due)
{
    domain->asked_at = is_due ? 0 : UINT64_MAX / 2;
}

/* A reader that does not answer is parked by the next membarrier, and then asleep. */
static void parked_reader(void)
{
    question(true);
    gp_try(domain, gp_snapshot(domain), 0);
    gp_drive(domain);
    assert_int_equal(parking_count_awake(domain), 0);
}

static void asked_then_answered(size_t size, unsigned room, unsigned expected)
{
    make_cache(size, room);
    question(true);
    assert_int_equal(passed_over(), expected);
    assert_int_equal(passed_over(), expected); /* not answered yet */
    tell(0, read_once);
    assert_int_equal(passed_over(), 0);
    end_cache();
}

TEST(small_objects_after_512_objects, make_domain, destroy_domain)
{
    asked_then_answered(64, 512, 1); /* batches of 256 */
    asked_then_answered(512, 512, 1);
    asked_then_answered(64, 64, 15); /* batches of 32 */
}

TEST(large_objects_after_256_kilobytes, make_domain, destroy_domain)
{
    asked_then_answered(1024, 480, 0);
    asked_then_answered(4096, 126, 0);
    asked_then_answered(4096, 32, 3); /* batches of 16 */
    asked_then_answered(32768, 16, 0);
}

/* The next question may not be asked yet. Each check in a row passes over one batch more, up to
 * `most`, and stays there. */
static void early_looks(size_t size, unsigned room, unsigned first, unsigned most)
{
    make_cache(size, room);
    question(false);
    for (unsigned i = 0; i < LOOKS; i++)
        assert_int_equal(passed_over(), min_size(first + i, most));
    question(true);
    assert_int_equal(passed_over(), first - 1);
    tell(0, read_once);
    assert_int_equal(passed_over(), 0);
    end_cache();
}

TEST(early_looks_become_rarer, make_domain, destroy_domain)
{
    asked_then_answered(64, 512, 1);
    early_looks(4096, 126, 1, 8);
    early_looks(4096, 32, 4, 31);
    early_looks(1024, 480, 1, 2);
}

TEST(small_objects_are_looked_for_as_before, make_domain, destroy_domain)
{
    asked_then_answered(64, 512, 1);
    make_cache(64, 512);
    question(false);
    for (unsigned i = 0; i < 40; i++)
        assert_int_equal(passed_over(), 1);
    end_cache();
}

/* Without readers, another CPU ends grace periods at once, also those of this CPU's batches. */
TEST(with_another_cpu_after_512_objects, make_domain, destroy_domain)
{
    make_cache(4096, 126);
    domain->tried_on = UINT32_MAX;
    parked_reader();
    question(false);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(passed_over(), 8);
    end_cache();
}

TEST(refused_after_32_batches, make_domain, destroy_domain)
{
    make_cache(4096, 126);
    domain->parking = 1; /* another thread asks at this moment */
    assert_int_equal(passed_over(), 32);
    domain->parking = 0;
    end_cache();
}

SUITE(pin_thread())
