/* SPDX-License-Identifier: MIT */
/*
 * Without readers, a writer's grace periods end at once, so that at most two batches of objects
 * circulate, however many objects are deferred. A reader inside a section keeps the objects it may
 * see. A reader that enters all the time without a fence costs a few more batches, because it is
 * asked to fence.
 *
 * ctest: small-pages (bounds the bytes of slabs)
 */
#include "slab/latent_cache.h"
#include "support/slab_test.h"

#include "gp/user/domain.h"
#include "support/gp_reader.h"

#define PAIRS 200000

static struct prudence_domain *domain;
static struct prudence_cache *cache;

static int make_of(size_t size)
{
    domain = prudence_domain_create("at once", PRUDENCE_DOMAIN_MEMB, NULL);
    cache =
        prudence_cache_create("at once", size,
                              &(struct prudence_cache_attr){
                                  .size = sizeof(struct prudence_cache_attr), .domain = domain});
    return domain && cache ? 0 : -1;
}

static int make(void **state)
{
    return make_of(64);
}

static int make_of_pages(void **state)
{
    return make_of(4096);
}

static int destroy(void **state)
{
    return prudence_cache_destroy(cache) || prudence_domain_destroy(domain);
}

static void pairs(unsigned count)
{
    while (count--)
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
}

TEST(few_are_in_flight, make, destroy)
{
    struct cpu_cache *cpu = cpu_here(cache);
    struct prudence_cache_stats stats;

    pairs(PAIRS);
    assert_true(cpu->size <= 2 * cache->body->batch); /* no need to grow */
    for (unsigned i = 0; i < 1000; i++) {
        pairs(7);
        assert_true(latent_cache_count(cpu) <= cache->body->batch);
    }
    assert_true(domain->at_once >= PAIRS / cache->body->batch / 2);
    assert_true(load_relaxed(&domain->membarriers) < 100); /* only while the caches grew */
    stats = stats_of(cache);
    assert_true(stats.slabs_peak * stats.slab_size < 64 << 10);
    check_books(cache);
}

/* The ring gets long while a reader stays, and empties again afterwards. */
TEST(a_long_ring_empties, make, destroy)
{
    struct cpu_cache *cpu = cpu_here(cache);
    struct held_reader reader = {.domain = domain};
    unsigned while_it_stayed;

    held_reader_start(&reader);
    pairs(PAIRS / 20);
    while_it_stayed = latent_cache_count(cpu);
    assert_true(while_it_stayed > 4 * cache->body->batch);
    held_reader_end(&reader); /* also unregisters the thread */
    pairs(PAIRS);
    assert_true(latent_cache_count(cpu) <= cache->body->batch);
    check_books(cache);
}

TEST(a_reader_keeps_what_it_may_see, make, destroy)
{
    static void *objects[1000];
    struct held_reader reader = {.domain = domain};

    pairs(PAIRS / 10);
    allocate_all(cache, objects, 1000);
    held_reader_start(&reader);
    defer_all(cache, objects, 1000);
    for (unsigned i = 0; i < 2000; i++) {
        void *object = prudence_cache_alloc(cache);

        assert_false(contains(objects, 1000, object));
        prudence_cache_free_deferred(cache, object);
    }
    held_reader_end(&reader);
    pairs(PAIRS / 10);
    check_books(cache);
}

static sem_t go, done;
static bool reader_ends;

static void *reads_when_told(void *unused)
{
    for (;;) {
        while (sem_wait(&go))
            ;
        if (reader_ends)
            return NULL;
        prudence_domain_read_lock(domain);
        prudence_domain_read_unlock(domain);
        sem_post(&done);
    }
}

static void reader_reads(void)
{
    sem_post(&go);
    while (sem_wait(&done))
        ;
}

/* Defers in small steps, each followed by a section of the reader. Independent of the clock. */
static void do_pairs(unsigned steps)
{
    while (steps--) {
        pairs(cache->body->batch / 2);
        domain->asked_at = 0;
        reader_reads();
    }
}

static void few_with_a_reader(void)
{
    struct cpu_cache *cpu = cpu_here(cache);
    pthread_t thread;

    sem_init(&go, 0, 0);
    sem_init(&done, 0, 0);
    reader_ends = false;
    assert_int_equal(pthread_create(&thread, NULL, reads_when_told, NULL), 0);
    reader_reads();
    domain->choosing = 1; /* set as if by another thread, so readers stay fence-free */
    pairs(PAIRS / 10);    /* the reader does not respond, so the ring grows */
    do_pairs(400);
    for (unsigned i = 0; i < 200; i++) {
        do_pairs(1);
        assert_true(latent_cache_count(cpu) <= 6 * cache->body->batch);
    }
    reader_ends = true;
    sem_post(&go);
    pthread_join(thread, NULL);
    check_books(cache);
}

TEST(few_are_in_flight_with_a_reader, make, destroy)
{
    few_with_a_reader();
}

/* Large objects are in batches of few, and readers' answers are searched for as soon. */
TEST(few_pages_are_in_flight_with_a_reader, make_of_pages, destroy)
{
    few_with_a_reader();
}

SUITE(pin_thread())
