/* SPDX-License-Identifier: MIT */
/*
 * Rule 6: objects that are safe when a pre-flush begins, or become safe during one, go to the
 * object cache as far as there is room. Only the others move to latent slabs, whose cookie is
 * newer. Merging requires ownership of the caches, so a pre-flush on another CPU, or during another
 * owner, merges nothing.
 */
#define _GNU_SOURCE /* registers */
#include <semaphore.h>

#include <prudence/call.h>

#include "slab/cache.h"
#include "slab/latent_cache.h"
#include "slab/preflush.h"
#include "slab/transfer_batch.h"
#include "support/gp_tsan.h"
#include "support/slab_test.h"
#include "support/step.h"

#define ROOM 64 /* batches of 32 */

static struct prudence_cache *cache;
static struct cpu_cache *cpu;
static void *objects[4 * ROOM], *others[2 * ROOM];
static unsigned held; /* objects[ROOM .. held) are live */

static void close_batch(void)
{
    assert_ptr_equal(cpu_cache_take(cache, &held), cpu);
    latent_cache_close(cache, cpu);
    cpu_cache_release(cpu);
}

/* Puts `cached` objects into the object cache, and defers two closed batches: objects[0 .. ROOM /
 * 2), which are safe, and the next ROOM / 2. */
static void overfill_with(unsigned flags, void (*destructor)(void *object, void *context),
                          unsigned cached)
{
    struct prudence_cache_attr attr = {.size = sizeof attr,
                                       .flags = flags,
                                       .destructor = destructor,
                                       .domain = manual_domain(),
                                       .object_cache_bytes = ROOM * (64 + slab_redzone)};

    cache = prudence_cache_create("overfull", 64, &attr);
    assert_non_null(cache);
    held = 3 * ROOM;
    allocate_all(cache, objects, held);
    cpu = cpu_here(cache);
    assert_int_equal(cpu->size, ROOM);
    while (stack_count(&cpu->line) < cached)
        free_all(cache, &objects[--held], 1);
    while (stack_count(&cpu->line) > cached)
        allocate_all(cache, &objects[held++], 1);
    defer_all(cache, objects, ROOM / 2);
    close_batch();
    prudence_manual_advance(cache->domain);
    defer_all(cache, objects + ROOM / 2, ROOM / 2);
    close_batch();
    assert_int_equal(latent_cache_count(cpu), ROOM);
    assert_int_equal(cpu->counts.merged_objects, 0);
}

static void overfill(unsigned cached)
{
    overfill_with(0, NULL, cached);
}

static void end(void)
{
    check_books(cache);
    free_all(cache, objects + ROOM, held - ROOM);
    destroy_empty(cache);
}

static void preflush(unsigned moves, unsigned merges)
{
    assert_int_equal(preflush_cpu(cache, os_cpu_current(), 100), moves);
    assert_int_equal(cpu->counts.merged_objects, merges);
    assert_int_equal(stack_count(&cpu->line) + latent_cache_count(cpu), ROOM);
    check_books(cache);
}

TEST(what_is_safe_is_merged_first)
{
    uint64_t refills;

    overfill(20);
    preflush(20, ROOM / 2);
    assert_ptr_equal(cpu->line.ring[cpu->line.ring_head & cpu->line.ring_mask],
                     objects[ROOM / 2 + 20]); /* only unsafe objects were moved */
    refills = cpu->counts.refills;
    allocate_all(cache, others, 20 + ROOM / 2);
    for (unsigned i = 0; i < ROOM / 2; i++)
        assert_true(contains(others, 20 + ROOM / 2, objects[i]));
    assert_int_equal(cpu->counts.refills, refills); /* no allocation missed */
    assert_int_equal(cpu->counts.hits_after_merge, 0);
    free_all(cache, others, 20 + ROOM / 2);
    end();
}

TEST(no_more_is_merged_than_fits)
{
    overfill(50);
    preflush(50, ROOM - 50);
    assert_int_equal(stack_count(&cpu->line), ROOM);
    allocate_all(cache, others, ROOM);
    for (unsigned i = ROOM / 2; i < ROOM; i++)
        assert_false(contains(others, ROOM, objects[i]));
    free_all(cache, others, ROOM);
    end();
}

TEST(what_fits_is_left_alone)
{
    overfill(0);
    preflush(0, 0);
    end();
}

static void destroy(void *object, void *context)
{
    (void)object, (void)context;
}

static sem_t worker_is_held, worker_may_go_on;

static void hold(struct prudence_head *head)
{
    sem_post(&worker_is_held);
    while (sem_wait(&worker_may_go_on))
        ;
}

/* They go to their slabs, and on no stack before their destructor has run. A callback holds the
 * library's worker, which could otherwise settle the cache with PRUDENCE_CACHE_DESTRUCT_SOON at any
 * moment. */
TEST(objects_with_destructors)
{
    struct prudence_head *head = prudence_malloc(sizeof *head);

    overfill_with(0, destroy, 20);
    preflush(20, 0);
    end();
    sem_init(&worker_is_held, 0, 0);
    sem_init(&worker_may_go_on, 0, 0);
    prudence_call(head, hold);
    while (sem_wait(&worker_is_held))
        ;
    overfill_with(PRUDENCE_CACHE_DESTRUCT_SOON, destroy, 20);
    preflush(20, 0);
    end();
    sem_post(&worker_may_go_on);
    prudence_barrier();
    prudence_free(head);
}

TEST(another_owner_is_left_alone)
{
    struct cpu_cache *owned;

    overfill(20);
    owned = cpu_cache_take(cache, &held);
    assert_ptr_equal(owned, cpu);
    assert_int_equal(preflush_cpu(cache, os_cpu_current(), 100), 0);
    assert_int_equal(latent_cache_count(cpu), ROOM);
    assert_int_equal(cpu->counts.merged_objects, 0);
    cpu_cache_release(owned);
    preflush(20, ROOM / 2);
    end();
}

TEST(a_pool_that_is_used_up_stops_no_merge)
{
    struct transfer_batch *claimed[TRANSFER_BATCHES];

    overfill(20);
    for (unsigned i = 0; i < TRANSFER_BATCHES; i++)
        assert_non_null(claimed[i] = transfer_batch_claim());
    assert_int_equal(preflush_cpu(cache, os_cpu_current(), 100), 0);
    assert_int_equal(cpu->counts.merged_objects, ROOM / 2);
    for (unsigned i = 0; i < TRANSFER_BATCHES; i++)
        transfer_batch_return(claimed[i]);
    preflush(20, ROOM / 2);
    end();
}

/* The helper has moved to another CPU than the one it serves, so it merges on neither. */
TEST(on_another_cpu)
{
    unsigned here = injected_cpu;
    struct cpu_cache *there;

    overfill(20);
    injected_cpu = here + 1;
    allocate_all(cache, &objects[held++], 1);
    there = cpu_here(cache);
    assert_ptr_not_equal(there, cpu);
    assert_int_equal(preflush_cpu(cache, here, 100), 20);
    assert_int_equal(cpu->counts.merged_objects, 0);
    assert_int_equal(there->counts.merged_objects, 0);
    assert_int_equal(there->line.owner, 0);
    injected_cpu = here;
    end();
}

#if STEP_POSSIBLE

static uint64_t head_then;

/* Ends the second grace period when the helper holds the first object. */
static void end_in_between(const greg_t *registers)
{
    if (load_relaxed(&cpu->line.ring_head) == head_then + 1 && !load_relaxed(&cpu->line.owner))
        prudence_manual_advance(cache->domain);
}

static void preflush_all(void *moved)
{
    *(unsigned *)moved = preflush_cpu(cache, os_cpu_current(), 100);
}

TEST(what_becomes_safe_meanwhile_is_merged)
{
    unsigned moved = 0;

    overfill(20);
    head_then = load_relaxed(&cpu->line.ring_head) + ROOM / 2; /* after the safe objects */
    step_through(preflush_all, &moved, end_in_between);
    assert_int_equal(moved, 20);
    assert_int_equal(cpu->counts.merged_objects, ROOM - 20); /* as many as have room */
    assert_int_equal(stack_count(&cpu->line), ROOM);
    end();
}

#endif

/* Steps would restart an rseq section forever. */
SUITE(pin_thread(), inject_topology())
