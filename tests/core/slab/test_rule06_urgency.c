/* SPDX-License-Identifier: MIT */
/*
 * Rule 6: the helper works fast (moves all excess objects in one round) when the latent cache is
 * nearly full and frees and deferrals have outpaced allocations since its last check. Otherwise it
 * is gentle and moves two transfer batches a round, until both caches fit. The test acts as the
 * helper, so results are deterministic.
 *
 * ctest: not-with thread (one thread)
 */
#include "posix.h"
#include "slab/transfer_batch.h"
#include "slab/latent_cache.h"
#include "slab/preflush.h"
#include "support/slab_test.h"

#define ROOM   256 /* batches of 128 */
#define GENTLE (2 * TRANSFER_BATCH_MAX)

static void *objects[6 * ROOM];
static unsigned held; /* objects[0 .. held) are live */

static bool is_idle(unsigned cpu)
{
    return true;
}

/* Makes a round over the boxes, with a box for this CPU. Returns whether the helper would come
 * back. */
static bool look(struct prudence_cache *cache)
{
    bool more;

    preflush_enabled = true;
    preflush_schedule(cache, cpu_here(cache));
    more = preflush_work();
    preflush_enabled = false;
    return more;
}

static uint64_t moved(struct prudence_cache *cache)
{
    return stats_of(cache).preflushed_objects;
}

/* Makes a cache with live objects and `cached` objects in the object cache, and lets the helper
 * check once. */
static struct prudence_cache *cache_with(unsigned cached)
{
    struct prudence_cache *cache = fixed_cache(64, ROOM, manual_domain());
    struct cpu_cache *cpu;

    held = 2 * ROOM;
    allocate_all(cache, objects, held);
    cpu = cpu_here(cache);
    while (stack_count(&cpu->line) < cached)
        free_all(cache, &objects[--held], 1);
    while (stack_count(&cpu->line) > cached)
        allocate_all(cache, &objects[held++], 1);
    assert_true(held >= ROOM);
    assert_false(look(cache)); /* nothing to do now or later */
    assert_int_equal(moved(cache), 0);
    return cache;
}

/* Defers, and closes the last batch, so that all objects may be moved. */
static void defer(struct prudence_cache *cache, unsigned count)
{
    unsigned before = latent_cache_count(cpu_here(cache));
    struct cpu_cache *cpu;

    held -= count;
    defer_all(cache, objects + held, count);
    cpu = cpu_cache_take(cache, &cpu);
    assert_non_null(cpu);
    latent_cache_close(cache, cpu);
    cpu_cache_release(cpu);
    assert_int_equal(latent_cache_count(cpu), before + count);
}

/* Makes more than ROOM allocations from the object cache, and leaves there more than a gentle round
 * moves. */
static void allocate(struct prudence_cache *cache)
{
    const struct os_percpu_line *line = &cpu_here(cache)->line;
    uint64_t before = stack_pops(line);

    while (stack_pops(line) - before <= ROOM || stack_count(line) <= GENTLE) {
        assert_true(held < 5 * ROOM);
        allocate_all(cache, &objects[held++], 1);
    }
}

static void free_some(struct prudence_cache *cache, unsigned count)
{
    held -= count;
    free_all(cache, objects + held, count);
}

static bool both_fit(struct prudence_cache *cache)
{
    struct cpu_cache *cpu = cpu_here(cache);

    return stack_count(&cpu->line) + latent_cache_count(cpu) <= cpu->size;
}

static void end(struct prudence_cache *cache)
{
    check_books(cache);
    free_all(cache, objects, held);
    destroy_empty(cache);
}

TEST(quick_when_nearly_full_and_filling)
{
    struct prudence_cache *cache = cache_with(200);

    defer(cache, ROOM);
    assert_false(look(cache));
    assert_int_equal(moved(cache), 200);
    assert_true(both_fit(cache));
    end(cache);
}

/* A latent cache is nearly full above, not at, seven eighths. */
TEST(nearly_full_begins_at_seven_eighths)
{
    struct prudence_cache *cache = cache_with(200);

    defer(cache, ROOM / 8 * 7);
    assert_true(look(cache));
    assert_int_equal(moved(cache), GENTLE);
    end(cache);

    cache = cache_with(200);
    defer(cache, ROOM / 8 * 7 + 1);
    assert_false(look(cache));
    assert_int_equal(moved(cache), 200 - ROOM / 8 + 1);
    assert_true(both_fit(cache));
    end(cache);
}

/* After more allocations than deferrals, the waiting objects will be wanted. */
TEST(gentle_when_allocations_keep_up)
{
    struct prudence_cache *cache = cache_with(200);

    allocate(cache);
    defer(cache, ROOM);
    assert_true(look(cache));
    assert_int_equal(moved(cache), GENTLE);
    end(cache);
}

/* After as many plain frees as allocations, the waiting objects will not be wanted. */
TEST(plain_frees_count)
{
    struct prudence_cache *cache = cache_with(200);
    unsigned before = held;

    allocate(cache);
    free_some(cache, held - before);
    defer(cache, ROOM);
    assert_false(look(cache));
    assert_true(moved(cache) > GENTLE);
    assert_true(both_fit(cache));
    end(cache);
}

/* A refill adds objects to the object cache and a flush removes some, but neither counts as a free
 * or an allocation. */
TEST(refills_do_not_count)
{
    struct prudence_cache *cache = cache_with(200);
    uint64_t before = stats_of(cache).refilled_objects;

    while (stats_of(cache).refilled_objects - before <= ROOM)
        allocate(cache);
    defer(cache, ROOM);
    assert_true(look(cache));
    assert_int_equal(moved(cache), GENTLE);
    end(cache);
}

TEST(flushes_do_not_count)
{
    struct prudence_cache *cache = cache_with(200);
    uint64_t flushed = stats_of(cache).flushed_objects;

    while (stats_of(cache).flushed_objects - flushed <= 2 * ROOM) {
        unsigned before = held;

        allocate(cache);
        free_some(cache, held - before);
    }
    defer(cache, ROOM);
    assert_false(look(cache));
    assert_true(both_fit(cache));
    end(cache);
}

/* Operations before the last check do not count: the same operations, with a check in between. */
TEST(only_what_happened_since_the_last_look_counts)
{
    struct prudence_cache *cache = cache_with(200);
    unsigned cached;

    allocate(cache);
    look(cache);
    cached = stack_count(&cpu_here(cache)->line);
    defer(cache, ROOM);
    assert_false(look(cache));
    assert_int_equal(moved(cache), cached);
    end(cache);

    cache = cache_with(200);
    allocate(cache);
    defer(cache, ROOM);
    assert_true(look(cache));
    assert_int_equal(moved(cache), GENTLE);
    defer(cache, GENTLE); /* full again; the allocations were before the check */
    assert_false(look(cache));
    assert_true(both_fit(cache));
    end(cache);
}

TEST(gentle_rounds_end_when_both_fit)
{
    struct prudence_cache *cache = cache_with(200);
    unsigned rounds = 1;

    defer(cache, ROOM / 2);
    for (; look(cache); rounds++)
        assert_int_equal(moved(cache), rounds * GENTLE);
    assert_int_equal(rounds, (200 - ROOM / 2 + GENTLE - 1) / GENTLE);
    assert_int_equal(moved(cache), 200 - ROOM / 2);
    assert_true(both_fit(cache));
    end(cache);
}

SUITE_AGAIN(pin_thread(), posix_idle_inject(is_idle))
