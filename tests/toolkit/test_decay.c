/* SPDX-License-Identifier: MIT */
/*
 * Decay: callers give back memory unused for `decay`, a little per visit: objects that stay on
 * CPUs, safe objects, and free slabs. The test controls the clock and grace periods.
 *
 * ctest: small-pages (counts slabs)
 * ctest: not-with thread (one thread)
 */
#include "slab/all_caches.h"
#include "slab/latent_cache.h"
#include "slab/preflush.h"
#include "slab/reclaim/decay.h"
#include "slab/reclaim/limit.h"
#include "slab/transfer_batch.h"
#include "support/pages.h"

#define DECAY   UINT64_C(100000000)
#define OBJECTS 2000

static void *objects[OBJECTS_MAX];

static int begin(void **state)
{
    posix_clock_injected = our_clock;
    slab_decay = DECAY;
    os_pages_set_decay(DECAY);
    os_pages_set_retain(0);
    decay_enabled = true;
    now += 10 * DECAY;
    return 0;
}

static int end(void **state)
{
    decay_enabled = false;
    return 0;
}

/* Runs `count` whole rounds, each when it is due. */
static void rounds(unsigned count)
{
    for (uint64_t before; count; count--) {
        now += DECAY;
        before = decay_rounds();
        for (unsigned visit = 0; decay_rounds() == before; visit++) {
            assert_true(visit < 10000);
            decay_visit();
        }
        decay_drive();
        os_pages_decay();
    }
}

static unsigned slabs_of(struct prudence_cache *cache)
{
    unsigned slabs = 0;

    for (unsigned i = 0; i < os_node_count(); i++)
        slabs += cache->body->nodes[i].slabs;
    return slabs;
}

TEST(what_lies_on_quiet_cpus_goes, begin, end)
{
    struct prudence_cache *cache = fixed_cache(512, 64, manual_domain());

    for (unsigned cpu = 0; cpu < 4; cpu++) {
        injected_cpu = 16 * cpu;
        allocate_all(cache, objects, 60);
        free_all(cache, objects, 60);
    }
    assert_true(slabs_of(cache) >= 4);
    rounds(1); /* notes */
    assert_true(slabs_of(cache) >= 4);
    rounds(6); /* moves objects, then two windows of demand for slabs and pages end */
    assert_int_equal(slabs_of(cache), 0);
    assert_int_equal(pages().retained, 0);
    assert_int_equal(decay_kept(), limit_used_roughly());
    check_books(cache);
    destroy_empty(cache);
}

static void *live; /* keeps the slab */

static void defer_and_free(struct prudence_cache *cache)
{
    void *object = prudence_cache_alloc(cache);

    live = prudence_cache_alloc(cache);
    prudence_cache_free_deferred(cache, object);
    prudence_cache_free(cache, object);
    rounds(2);
    prudence_manual_advance(cache->domain);
    prudence_manual_advance(cache->domain);
    rounds(2);
}

/* Both copies come to the slab, although no thread empties the caches. */
TEST(a_double_free_on_a_quiet_cpu_is_found, begin, end)
{
    struct prudence_cache *cache = fixed_cache(512, 64, manual_domain());

    injected_cpu = 3;
    expect_death(defer_and_free(cache), "double free", "of cache 'test'", "already free");
    destroy_empty(cache);
}

/* A trickle reaches only the top of the object cache. The objects below go, and the ones in use
 * stay. */
TEST(what_a_trickle_does_not_reach_goes, begin, end)
{
    struct prudence_cache *cache = fixed_cache(4096, 32, manual_domain());
    uint64_t misses;

    injected_cpu = 3;
    allocate_all(cache, objects, 32);
    free_all(cache, objects, 32);
    assert_true(stack_count(&cpu_here(cache)->line) >= 20);
    for (unsigned i = 0; i < 5; i++) {
        rounds(1);
        allocate_all(cache, objects, 4);
        free_all(cache, objects, 4);
    }
    assert_in_range(stack_count(&cpu_here(cache)->line), 4, 16);
    misses = stats_of(cache).refills;
    for (unsigned i = 0; i < 5; i++) {
        rounds(1);
        allocate_all(cache, objects, 4);
        free_all(cache, objects, 4);
    }
    assert_int_equal(stats_of(cache).refills, misses);
    check_books(cache);
    destroy_empty(cache);
}

static void allocate_and_free(struct prudence_cache *cache, unsigned count)
{
    void *some[2 * TRANSFER_MAX];

    assert_true(count <= 2 * TRANSFER_MAX);
    allocate_all(cache, some, count);
    free_all(cache, some, count);
}

#define SCATTERED 4096

/* Makes a cache whose object cache has grown large under load, on its own CPU. */
static struct prudence_cache *grown_cache(void)
{
    struct prudence_cache *cache = fixed_cache(64, 0, manual_domain());

    injected_cpu = 7;
    for (unsigned i = 0; i < 20 && cpu_here(cache)->size < 8 * TRANSFER_MAX; i++) {
        allocate_all(cache, objects, OBJECTS_MAX);
        free_all(cache, objects, OBJECTS_MAX);
    }
    assert_true(cpu_here(cache)->size >= 8 * TRANSFER_MAX);
    return cache;
}

/*
 * After a load, an object cache has objects of many slabs, some of them with live objects. A CPU
 * that only trickles since then gives all its objects back, not only the unreached ones, because
 * each would keep a slab. It then refills from few slabs, and keeps those objects: a round does not
 * empty the CPU again.
 */
TEST(a_cpu_at_rest_keeps_few_slabs, begin, end)
{
    struct prudence_cache *cache = grown_cache();
    uint64_t refills;

    allocate_all(cache, objects, SCATTERED);
    for (unsigned i = 0; i < SCATTERED; i++) {
        injected_cpu =
            i % 8 ? 8
                  : 7; /* few go to 7, from all slabs; the rest to a CPU that is quiet afterwards */
        prudence_cache_free(cache, objects[i]);
    }
    injected_cpu = 7;
    assert_in_range(stack_count(&cpu_here(cache)->line), 2 * TRANSFER_MAX + 1, 8 * TRANSFER_MAX);
    assert_true(slabs_of(cache) >= 20);
    for (unsigned i = 0; i < 8; i++) {
        rounds(1);
        allocate_and_free(cache, 10);
    }
    assert_in_range(slabs_of(cache), 1, 2);
    assert_in_range(stack_count(&cpu_here(cache)->line), 10, TRANSFER_MAX);
    refills = stats_of(cache).refills;
    for (unsigned i = 0; i < 6; i++) {
        rounds(1);
        allocate_and_free(cache, 10);
    }
    assert_int_equal(stats_of(cache).refills, refills);
    check_books(cache);
    destroy_empty(cache);
}

/* A busy CPU keeps the objects it reaches, round after round. */
TEST(a_cpu_at_work_keeps_what_it_wants, begin, end)
{
    struct prudence_cache *cache = grown_cache();
    uint64_t refills = 0;

    allocate_all(cache, objects, OBJECTS);
    free_all(cache, objects, OBJECTS);
    for (unsigned i = 0; i < 10; i++) {
        if (i == 2)
            refills = stats_of(cache).refills;
        allocate_and_free(cache, TRANSFER_MAX);
        rounds(1);
    }
    assert_int_equal(stats_of(cache).refills, refills);
    destroy_empty(cache);
}

/* Safe objects in a ring leave likewise: occasional deferrals keep no more than two moves bring. */
TEST(a_ring_at_rest_is_emptied, begin, end)
{
    struct prudence_cache *cache = grown_cache();
    unsigned many = 6 * TRANSFER_MAX;

    allocate_all(cache, objects, 2 * many);
    defer_all(cache, objects, many);
    assert_int_equal(latent_cache_count(cpu_here(cache)), many);
    for (unsigned i = 0; i < 3; i++) {
        prudence_manual_advance(cache->domain);
        rounds(1);
        defer_all(cache, objects + many + i, 1);
    }
    assert_in_range(latent_cache_count(cpu_here(cache)), 1, 2 * TRANSFER_MAX);
    prudence_manual_advance(cache->domain);
    rounds(2); /* without deferrals the ring gets empty */
    prudence_manual_advance(cache->domain);
    rounds(1);
    assert_int_equal(latent_cache_count(cpu_here(cache)), 0);
    free_all(cache, objects + many + 3, many - 3);
    check_books(cache);
    destroy_empty(cache);
}

/*
 * A kernel's round: a thread of each CPU takes from that CPU alone, a number of moves at a time, if
 * a check has found something there. A check that finds nothing changes nothing for other CPUs, and
 * a finding stays until taken.
 */
TEST(a_cpu_decays_by_itself, begin, end)
{
    struct prudence_cache *cache = grown_cache(), *small = fixed_cache(512, 64, cache->domain);
    unsigned many = 4 * TRANSFER_MAX, visits = 0;
    struct decay_pass pass = {.place.cpu = 7};

    allocate_all(cache, objects, many);
    free_all(cache, objects, many);
    injected_cpu = 9;
    allocate_and_free(small, 30);
    injected_cpu = 7;
    allocate_and_free(small, 30);
    drain_note(cache, 7);
    drain_note(small, 7);
    allocate_and_free(small, 30);
    allocate_and_free(cache, 10);
    assert_true(decay_is_wanted_on(7)); /* at rest */
    allocate_and_free(cache, TRANSFER_MAX - 5);
    assert_false(
        decay_is_wanted_on(7)); /* busy: these are more than one move since counters were noted */
    assert_true(decay_is_wanted_on(7));
    while (decay_pass(&pass, 1)) {
        assert_int_equal(pass.cache->body->visitors, 1);
        assert_true(visits++ < 100);
    }
    assert_in_range(visits, 4, 100);
    assert_int_equal(stack_count(&cpu_here(cache)->line), 0);
    assert_int_equal(stack_count(&cpu_here(small)->line), 0);
    injected_cpu = 9;
    assert_true(stack_count(&cpu_here(small)->line) >= 30);
    assert_false(decay_is_wanted_on(7));
    assert_false(decay_is_wanted_on(9)); /* notes */
    assert_true(decay_is_wanted_on(9));
    assert_int_equal(cache->body->visitors + small->body->visitors, 0);
    check_books(cache);
    destroy_empty(cache);
    destroy_empty(small);
}

/* A pass ends in the middle, and then holds no cache. */
TEST(a_pass_may_end_early, begin, end)
{
    struct prudence_cache *cache = grown_cache();
    struct decay_pass pass = {.place.cpu = 7};

    drain_note(cache, 7);
    assert_true(decay_pass(&pass, 0));
    assert_int_equal(cache->body->visitors, 1);
    decay_pass_end(&pass);
    assert_int_equal(cache->body->visitors, 0);
    decay_pass_end(&pass);
    destroy_empty(cache);
}

/* A stall has filled latent slabs and rings. After the stall all those objects go, although no
 * thread needs any. */
TEST(what_a_stall_left_goes, begin, end)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache *cache = fixed_cache(512, 64, domain);

    injected_cpu = 5;
    allocate_all(cache, objects, OBJECTS);
    defer_all(cache, objects, OBJECTS);
    rounds(3);
    assert_true(slabs_of(cache) * cache->body->capacity >=
                OBJECTS); /* not while readers may hold them */
    for (unsigned i = 0; i < 6; i++) {
        prudence_manual_advance(domain);
        rounds(1);
    }
    assert_int_equal(slabs_of(cache), 0);
    assert_int_equal(limit_used(), 0);
    check_books(cache);
    destroy_empty(cache);
}

/* Memory that is freed and wanted again within a window stays. */
TEST(what_demand_wants_stays, begin, end)
{
    struct prudence_cache *cache = fixed_cache(512, 64, manual_domain());
    uint64_t grows;

    injected_cpu = 5;
    for (unsigned i = 0; i < 10; i++) {
        allocate_all(cache, objects, OBJECTS);
        free_all(cache, objects, OBJECTS);
        if (i == 0)
            grows = stats_of(cache).grows;
        rounds(1);
    }
    assert_int_equal(stats_of(cache).grows, grows);
    rounds(5);
    assert_int_equal(slabs_of(cache), 0);
    destroy_empty(cache);
}

static void no_round_comes_to(struct prudence_cache *cache, struct slab_node *node)
{
    assert_true(node->decayed);
    os_lock_take(&node->lock); /* a visit would wait for the lock */
    assert_false(node_decay(cache, node));
    os_lock_release(&node->lock);
}

/* Rounds skip a node where a round found nothing to do, until a thread uses the node. */
TEST(a_decayed_node_is_passed_by, begin, end)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache *cache = fixed_cache(512, 64, domain);
    struct slab_node *node = &cache->body->nodes[0];

    injected_cpu = 0;
    rounds(1);
    no_round_comes_to(cache, node);
    allocate_all(cache, objects, OBJECTS);
    assert_false(node->decayed);
    rounds(8); /* all is live; objects of a refill in the object cache go, and so do free slabs */
    no_round_comes_to(cache, node);
    free_all(cache, objects, OBJECTS);
    assert_false(node->decayed);
    rounds(8);
    assert_int_equal(slabs_of(cache), 0);
    no_round_comes_to(cache, node);

    allocate_all(cache, objects, OBJECTS);
    defer_all(cache, objects, OBJECTS);
    rounds(8);
    assert_false(node->decayed); /* as long as objects are latent there */
    for (unsigned i = 0; i < 8; i++) {
        prudence_manual_advance(domain);
        rounds(1);
    }
    assert_int_equal(slabs_of(cache), 0);
    no_round_comes_to(cache, node);
    check_books(cache);
    destroy_empty(cache);
}

/* The idle helper hands objects over without the lock, yet the next round visits the node. */
TEST(what_is_handed_over_is_seen, begin, end)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache *cache = fixed_cache(512, 64, domain);
    struct slab_node *node = &cache->body->nodes[0];
    struct cpu_cache *cpu;

    injected_cpu = 0;
    allocate_all(cache, objects, 128);
    rounds(8);
    assert_true(node->decayed);
    free_all(cache, objects, 64);
    defer_all(cache, objects + 64, 64);
    cpu = cpu_cache_take(cache, &cpu);
    assert_non_null(cpu);
    latent_cache_close(cache, cpu);
    cpu_cache_release(cpu);
    assert_int_equal(preflush_cpu(cache, 0, TRANSFER_BATCHES), 64);
    allocate_all(cache, objects, 64); /* leaves nothing else for a round to do */
    assert_true(node->decayed);
    assert_non_null(node->handover);
    prudence_manual_advance(domain);
    rounds(1);
    assert_null(node->handover);
    assert_int_equal(node->latent, 0);
    check_books(cache);
    free_all(cache, objects, 64);
    destroy_empty(cache);
}

/* A visit does a bounded part, some caches and some batches, and remembers the place. */
TEST(a_visit_is_bounded, begin, end)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache *caches[20], *large;
    unsigned visits = 0, before;
    uint64_t ended;

    for (unsigned i = 0; i < 20; i++)
        caches[i] = fixed_cache(64, 64, domain);
    rounds(2);
    ended = decay_rounds();
    now += DECAY;
    for (; decay_rounds() == ended; visits++)
        decay_visit();
    assert_true(visits >= 5);
    for (unsigned i = 0; i < 20; i++)
        destroy_empty(caches[i]);

    large = fixed_cache(4096, 32, domain);
    injected_cpu = 1;
    allocate_all(large, objects, OBJECTS_MAX);
    free_all(large, objects, OBJECTS_MAX);
    rounds(1);
    now += 2 * DECAY;
    for (before = slabs_of(large); before; before = slabs_of(large)) {
        decay_visit();
        assert_true(before - slabs_of(large) <= 10 * NODE_SLABS_A_VISIT);
        now += DECAY;
    }
    destroy_empty(large);
}

/* A cache is destroyed when its turn comes, and the round goes on with the next one. */
TEST(a_cache_is_destroyed_in_its_turn, begin, end)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache *caches[20];

    for (unsigned i = 0; i < 20; i++)
        caches[i] = fixed_cache(64, 64, domain);
    rounds(1);
    now += DECAY;
    for (unsigned i = 0; i < 20; i++) {
        decay_some(1, 1);
        destroy_empty(caches[i]);
    }
    rounds(2);
}

/* A thread does not work for decay while another one uses the list of caches. */
TEST(a_thread_that_cannot_decay_goes_on, begin, end)
{
    uint64_t ended = decay_rounds();

    now += DECAY;
    os_lock_take(&slab_caches_lock);
    assert_false(decay_some(4, 4));
    os_lock_release(&slab_caches_lock);
    assert_int_equal(decay_rounds(), ended);
    rounds(1);
}

#define BYPASSES (4 * BYPASSES_A_VISIT)

/* Returns how many of BYPASSES operations worked for decay; each that does ends a round. */
static unsigned came_by(struct prudence_cache *cache,
                        void (*operation)(struct prudence_cache *cache, unsigned index))
{
    uint64_t ended = decay_rounds();

    for (unsigned i = 0; i < BYPASSES; i++) {
        now += DECAY;
        operation(cache, i);
    }
    return (unsigned)(decay_rounds() - ended);
}

static void allocate_one(struct prudence_cache *cache, unsigned index)
{
    objects[index] = prudence_cache_alloc(cache);
    assert_non_null(objects[index]);
}

static void free_one(struct prudence_cache *cache, unsigned index)
{
    prudence_cache_free(cache, objects[index]);
}

static void defer_one(struct prudence_cache *cache, unsigned index)
{
    prudence_cache_free_deferred(cache, objects[index]);
}

/* While another thread owns the CPU's caches, each operation takes the slow path, and one of 16
 * works for decay. */
TEST(operations_on_owned_caches_decay_now_and_then, begin, end)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache *cache = fixed_cache(64, 64, domain);
    struct cpu_cache *cpu;
    void *owner = NULL;

    allocate_one(cache, 0);
    free_one(cache, 0);
    rounds(2);
    cpu = cpu_cache_take(cache, &owner);
    assert_ptr_equal(cpu, cpu_here(cache));
    assert_int_equal(came_by(cache, allocate_one), BYPASSES / BYPASSES_A_VISIT);
    assert_int_equal(came_by(cache, free_one), BYPASSES / BYPASSES_A_VISIT);
    assert_int_equal(came_by(cache, allocate_one), BYPASSES / BYPASSES_A_VISIT);
    assert_int_equal(came_by(cache, defer_one), BYPASSES / BYPASSES_A_VISIT);
    cpu_cache_release(cpu);
    destroy_empty(cache);
}

static unsigned foreign_calls;

static uint64_t start_poll(void *context)
{
    return ++foreign_calls;
}

static bool poll_state(void *context, uint64_t cookie)
{
    (void)context, (void)cookie;
    foreign_calls++;
    return true;
}

static void synchronize(void *context)
{
}

/* The caller of a plain free may hold a lock that the program's functions want. */
TEST(a_plain_free_calls_no_foreign_function, begin, end)
{
    struct prudence_domain_ops ops = {.size = sizeof ops,
                                      .start_poll = start_poll,
                                      .poll_state = poll_state,
                                      .synchronize = synchronize};
    struct prudence_domain *domain = prudence_domain_create_external("external", &ops, NULL);
    struct prudence_cache *cache = fixed_cache(512, 16, domain);
    struct prudence_cache *other = fixed_cache(512, 16, manual_domain());
    unsigned calls;

    injected_cpu = 0;
    allocate_all(cache, objects, 4);
    defer_all(cache, objects, 4);
    allocate_all(other, objects, 400);
    calls = foreign_calls;
    for (unsigned i = 0; i < 400; i++) { /* many take the slow path */
        now += DECAY;
        prudence_cache_free(other, objects[i]);
    }
    assert_int_equal(foreign_calls, calls);
    decay_drive(); /* as allocations and deferrals do */
    assert_true(foreign_calls > calls);
    destroy_empty(other);
    destroy_empty(cache);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

SUITE(inject_topology())
