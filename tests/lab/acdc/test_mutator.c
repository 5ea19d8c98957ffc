/* SPDX-License-Identifier: MIT */
/*
 * Runs the mutator on a model of memory that watches it. The mutator frees every object exactly
 * once, at the tick of the drawn lifetime, and never accesses an object after the drawn liveness.
 * It refreshes and ticks an expiring model so that each object expires at that tick. The mutator
 * reaches every allocator through the same interface, so these results hold for all allocators.
 *
 * An object of the model is a slice of a mapping and is never used again. `state_of` has its state.
 */
#include "support/slab_test.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "mutator.h"
#include "run.h"

#define OBJECT_ROOM 64 /* bytes; no size is larger */
#define MOST_LIVE   (1u << 20)

struct state {
    uint64_t allocated_at; /* the thread's time */
    uint64_t expires_at;   /* expiring models: end of the object, 0 without a date; else the age */
    unsigned taken_back;
};

static struct run run;
static struct result result;
static struct settings settings;
static char *memory;
static struct state *state_of;
static unsigned allocated;
static uint64_t ticks, global_ticks, refreshes, last_accessed;
static double thoughts; /* what the thread must compute after its allocations */
static bool fails;

static uint64_t now(void)
{
    return run.mutator[0].time;
}

static unsigned number_of(const void *object)
{
    return (unsigned)(((const char *)object - memory) / OBJECT_ROOM);
}

static void *allocate(size_t size)
{
    unsigned number = __atomic_fetch_add(&allocated, 1, __ATOMIC_RELAXED);

    assert_true(number < MOST_LIVE && size <= OBJECT_ROOM);
    if (fails && number == 1000)
        return NULL;
    if (settings.threads == 1)
        state_of[number].allocated_at = now();
    for (uint64_t i = 0; i < settings.think; i++)
        thoughts += log(2.0 + (double)(now() + i));
    return memory + (size_t)number * OBJECT_ROOM;
}

static void take_back(void *object)
{
    struct state *of = &state_of[number_of(object)];

    assert_int_equal(__atomic_fetch_add(&of->taken_back, 1, __ATOMIC_RELAXED), 0);
}

/* ------------------------------------------------------------------------- explicit, one thread */

/* Checks the object's age. The mutator frees right after a tick, so now() is the time of that
 * tick. */
static void take_back_in_time(void *object)
{
    struct state *of = &state_of[number_of(object)];
    uint64_t age = now() - of->allocated_at;

    take_back(object);
    if (run.done) /* the run frees the remaining objects at the end */
        assert_in_range(age, 0, longest_lifetime(&settings));
    else
        assert_in_range(age, settings.min_liveness + settings.deallocation_delay,
                        longest_lifetime(&settings));
    of->expires_at = age;
}

static const struct model explicit_model = {
    .description = "a watched one", .allocate = allocate, .free = take_back_in_time};

static const struct model shared_model = {
    .description = "a watched one, of many threads", .allocate = allocate, .free = take_back};

/* ------------------------------------------------------------------------------------- expiring */

static bool refresh(void *object, unsigned extension)
{
    struct state *of = &state_of[number_of(object)];
    uint64_t expires_at = ticks + extension + 1;

    assert_true(!of->expires_at || of->expires_at > ticks); /* the object has not expired */
    if (expires_at > of->expires_at)
        of->expires_at = expires_at;
    refreshes++;
    return true;
}

/* With one thread, global time advances at each tick, and shared objects stay two units longer. */
static bool global_refresh(void *object, unsigned extension)
{
    struct state *of = &state_of[number_of(object)];
    uint64_t expires_at = global_ticks + extension + 3;

    assert_true(!of->expires_at || of->expires_at > global_ticks);
    if (expires_at > of->expires_at)
        of->expires_at = expires_at;
    return true;
}

static void tick(void)
{
    ticks++;
}

static void global_tick(void)
{
    global_ticks++;
}

static void collect(void)
{
    for (unsigned i = 0; i < allocated; i++) {
        assert_true(state_of[i].expires_at != 0);
        assert_true(state_of[i].expires_at <= ticks || state_of[i].expires_at <= global_ticks);
    }
}

static const struct model expiring_model = {.description = "an expiring one",
                                            .allocate = allocate,
                                            .expires = true,
                                            .refresh = refresh,
                                            .global_refresh = global_refresh,
                                            .tick = tick,
                                            .global_tick = global_tick,
                                            .collect = collect};

/* ----------------------------------------------------------------------- expiring, many threads */

static __thread unsigned self;

static bool thread_start(const struct settings *of, unsigned thread)
{
    self = thread;
    return true;
}

static bool refresh_any(void *object, unsigned extension)
{
    (void)object, (void)extension;
    return true;
}

/* Yields between the last read of the inbox and the global tick, so that others can put objects
 * in. */
static void tick_slowly(void)
{
    for (unsigned i = 0; i < 3; i++)
        sched_yield();
}

/* Checks that the ticking thread holds the lock of its inbox, which is empty, or that the run is
 * over. */
static void global_tick_of_many(void)
{
    struct inbox *inbox = &run.mutator[self].inbox;

    if (!inbox->closed) {
        assert_int_not_equal(pthread_mutex_trylock(&inbox->lock), 0);
        assert_null(inbox->first);
    }
}

static void nothing_to_collect(void)
{
}

static const struct model many_model = {.description = "an expiring one, of many threads",
                                        .thread_start = thread_start,
                                        .allocate = allocate,
                                        .expires = true,
                                        .refresh = refresh_any,
                                        .global_refresh = refresh_any,
                                        .tick = tick_slowly,
                                        .global_tick = global_tick_of_many,
                                        .collect = nothing_to_collect};

/* ------------------------------------------------------------------------------------ the tests */

static int setup(void **state)
{
    memory = mmap(NULL, (size_t)MOST_LIVE * OBJECT_ROOM, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    state_of = calloc(MOST_LIVE, sizeof *state_of);
    allocated = 0;
    ticks = global_ticks = refreshes = last_accessed = 0;
    thoughts = 0;
    fails = false;
    settings_defaults(&settings);
    settings.max_size = 6;
    settings.time_quantum = 4096;
    return memory == MAP_FAILED || !state_of ? -1 : 0;
}

static int teardown(void **state)
{
    free(state_of);
    return munmap(memory, (size_t)MOST_LIVE * OBJECT_ROOM);
}

static void run_it(const struct model *model)
{
    char why[256];

    assert_true(settings_check(&settings, why, sizeof why));
    assert_true(run_all(&settings, model, false, &run, &result, why, sizeof why));
}

static void all_came_back(void)
{
    for (unsigned i = 0; i < allocated; i++)
        assert_int_equal(state_of[i].taken_back, 1);
    assert_int_equal(result.allocated_objects, allocated);
    assert_int_equal(result.freed_objects, allocated);
    assert_int_equal(result.freed_bytes, result.allocated_bytes);
}

/* The mutator frees objects at the ages that were drawn as livenesses. */
TEST(each_object_lives_as_long_as_was_drawn, setup, teardown)
{
    uint64_t ages[13] = {0}, cut = 0;

    settings.deallocation_delay = 2;
    settings.tree_share = 30;
    settings.access = true;
    run_it(&explicit_model);
    all_came_back();
    for (unsigned i = 0; i < allocated; i++)
        ages[state_of[i].expires_at]++;
    for (unsigned i = 0; i < 10; i++) {
        /* The end of the run cuts lives short, so young ages may have too many. No object is too
         * old. */
        if (ages[i + 3] > result.liveness_objects[i])
            cut += ages[i + 3] - result.liveness_objects[i];
    }
    cut += ages[0] + ages[1] + ages[2];
    assert_true(cut <= result.live_objects);
}

TEST(the_clock_stops_at_the_duration, setup, teardown)
{
    settings.duration = 20; /* twice the longest liveness */
    run_it(&explicit_model);
    assert_int_equal(run.mutator[0].time, 20);
    assert_int_equal(run.trace.count, 20);
    assert_int_equal(run.trace.sample[19].time, 20);
    assert_int_equal(run.trace.sample[19].live_objects, result.live_objects);
    assert_int_equal(run.trace.sample[19].live_bytes, result.live_bytes);
}

TEST(dates_are_those_of_the_lifetimes, setup, teardown)
{
    uint64_t ages[13] = {0};

    settings.deallocation_delay = 2;
    run_it(&expiring_model);
    assert_int_equal(ticks, settings.duration + longest_lifetime(&settings) + 4);
    for (unsigned i = 0; i < allocated; i++)
        ages[state_of[i].expires_at - state_of[i].allocated_at]++;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(ages[i], 0);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(ages[i + 3], result.liveness_objects[i]);
    /* A live object is refreshed at each tick, except the last. */
    assert_true(refreshes > allocated);
}

TEST(shared_objects_live_by_global_time, setup, teardown)
{
    settings.shared = true;
    settings.share_ratio = 100;
    run_it(&expiring_model);
    assert_int_equal(refreshes, 0);
    assert_int_equal(ticks, global_ticks);
    for (unsigned i = 0; i < allocated; i++) /* min_liveness is 1, plus two units */
        assert_true(state_of[i].expires_at - state_of[i].allocated_at >= 3);
}

TEST(nobody_ticks_global_time_with_something_unseen, setup, teardown)
{
    settings.threads = 4;
    settings.multiplier = 4;
    settings.duration = 200;
    settings.time_quantum = 2048;
    settings.shared = true;
    settings.share_ratio = 60;
    run_it(&many_model);
    assert_true(result.received_objects > result.shared_objects);
}

TEST(the_last_of_many_receivers_frees, setup, teardown)
{
    settings.threads = 70; /* more than the 58 of the thesis */
    settings.multiplier = 70;
    settings.duration = 15;
    settings.time_quantum = 2048;
    settings.max_liveness = 4;
    settings.shared = true;
    settings.share_ratio = 50;
    settings.receiver_ratio = 50;
    settings.max_drift = 2;
    settings.access = true;
    settings.false_sharing = true;
    run_it(&shared_model);
    all_came_back();
    assert_true(result.shared_objects > 0);
    assert_true(result.received_objects > result.shared_objects * 10);
    assert_true(result.received_objects <= result.shared_objects * receivers(&settings));
}

TEST(running_out_of_memory_is_said, setup, teardown)
{
    fails = true;
    run_it(&explicit_model);
    assert_true(result.out_of_memory);
    assert_int_equal(result.allocated_objects, 1000);
}

TEST(thinking_computes_logarithms_after_each_allocation, setup, teardown)
{
    settings.think = 3;
    run_it(&explicit_model);
    assert_true(thoughts > 0);
    assert_true(run.mutator[0].thought == thoughts);
}

TEST(writes_are_the_ratio_of_accesses, setup, teardown)
{
    settings.access = true;
    settings.write_ratio = 37;
    run_it(&explicit_model);
    assert_true(result.reads > 0);
    assert_int_equal(result.writes, result.reads * 37 / 100);
}

/* Three rounds of ten objects: after each one, all objects so far are accessed. */
TEST(original_accesses_follow_each_round, setup, teardown)
{
    settings.original = true;
    settings.access = true;
    settings.objects = 10;
    settings.min_size = 5;
    settings.min_liveness = 5;
    settings.time_quantum = 3 * 10 * 32;
    settings.duration = 1;
    run_it(&explicit_model);
    assert_int_equal(result.allocated_bytes, settings.time_quantum);
    assert_int_equal(result.reads, 10 * (1 + 2 + 3));
    all_came_back();
}

/* Two of the four threads receive a round that is shared. */
TEST(original_rounds_are_shared_as_a_whole, setup, teardown)
{
    settings.original = true;
    settings.threads = 4;
    settings.duration = 20;
    settings.time_quantum = 16384;
    settings.shared = true;
    settings.share_ratio = 50;
    settings.receiver_ratio = 50;
    run_it(&shared_model);
    all_came_back();
    assert_in_range(result.shared_objects, 1, result.allocated_objects - 1);
    assert_in_range(result.received_objects, result.shared_objects, 2 * result.shared_objects);
}

SUITE()
