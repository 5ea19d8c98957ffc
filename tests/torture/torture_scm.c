/* SPDX-License-Identifier: MIT */
/*
 * Short-term memory with more threads than CPUs, for PRUDENCE_TORTURE_SECONDS. Each thread
 * allocates; refreshes its own objects by its local clock and by other ones, some of which it
 * leaves behind, and objects of a shared table by global time; ticks; blocks, resumes and ends.
 * Strategies change during the run. Every object carries a seal that its finalizer breaks: a thread
 * that finds the seal broken in an object for which it has a date has lost the object. Regions
 * likewise. Then all dates end, and nothing may remain.
 *
 * Before each such round, groups of threads end at once, and a thread lives for more than an epoch
 * (support/scm_torture_ends.h).
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <prudence/scm.h>

#include "support/scm_torture.h"
#include "support/scm_torture_ends.h"
#include "support/test_seed.h"
#include "support/torture_seconds.h"

#define THREADS 6
#define SHARED  64
#define OWN     128
#define GROUPS  8 /* of threads that end before each round */

/* Object in a region. */
struct in_region {
    uint64_t seal;
    size_t size;
    unsigned char rest[];
};

static struct object *shared[SHARED];
static struct in_region *shared_regions[SHARED];
static uint64_t rounds;
static int stop;

/*
 * A shared object is in the table for one turn of global time, and has a date by the thread that
 * put it there. A thread that finds it there may refresh it until its own next global tick, because
 * global time cannot advance by more than one before that. So the thread finds, refreshes, uses and
 * forgets it between two global ticks.
 */
static void use_shared(unsigned *seed)
{
    unsigned place = (unsigned)rand_r(seed) % SHARED;
    struct object *object = __atomic_load_n(&shared[place], __ATOMIC_ACQUIRE);

    if (object) {
        expect_seal(object);
        check(scm_global_refresh(object, (unsigned)rand_r(seed) % 3));
        expect_seal(object);
        if (rand_r(seed) % 4 == 0)
            __atomic_compare_exchange_n(&shared[place], &object, NULL, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED);
        return;
    }
    object = make(seed);
    check(scm_global_refresh(object, 1 << 10)); /* as long as it may stay in the table */
    __atomic_store_n(&shared[place], object, __ATOMIC_RELEASE);
}

/* Empties the table before the date of any object in it comes near. */
static void empty_table(void)
{
    for (unsigned i = 0; i < SHARED; i++) {
        __atomic_store_n(&shared[i], NULL, __ATOMIC_RELEASE);
        __atomic_store_n(&shared_regions[i], NULL, __ATOMIC_RELEASE);
    }
}

static void use_own(unsigned *seed)
{
    struct object *objects[OWN];
    struct scm_clock *clock = scm_clock_create();

    if (!clock)
        abort();
    for (unsigned i = 0; i < OWN; i++) {
        objects[i] = make(seed);
        check(i % 2 ? scm_refresh(objects[i], 3) : scm_clock_refresh(clock, objects[i], 3));
    }
    for (unsigned round = 0; round < 3; round++) {
        check(scm_tick());
        check(scm_clock_tick(clock));
        for (unsigned i = 0; i < OWN; i++)
            expect_seal(objects[i]);
    }
    check(scm_tick());
    check(scm_clock_destroy(clock));
}

/*
 * Regions belong to one thread, or get dates by global time and stay in the table for others.
 * Their objects have seals of their own, which no finalizer breaks; reuse overwrites them.
 */
#define REGION_OBJECTS 40

static struct in_region *cut(struct scm_region *region, unsigned *seed)
{
    size_t size = (size_t)rand_r(seed) % (rand_r(seed) % 16 ? 500 : 60000);
    struct in_region *object = scm_region_alloc(region, sizeof *object + size);

    if (!object)
        abort();
    object->seal = SEAL ^ (uintptr_t)object;
    object->size = size;
    memset(object->rest, (int)(size & 255), size);
    return object;
}

static void expect_whole(const struct in_region *object)
{
    size_t size = object->size;

    if (object->seal != (SEAL ^ (uintptr_t)object) ||
        (size && (object->rest[0] != (size & 255) || object->rest[size - 1] != (size & 255)))) {
        fprintf(stderr, "an object of a region ended before its date\n");
        abort();
    }
}

static void use_region(unsigned *seed)
{
    struct scm_region *region = scm_region_create();
    struct in_region *objects[REGION_OBJECTS];

    if (!region)
        abort();
    check(scm_region_refresh(region, 2));
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < REGION_OBJECTS; i++)
            if (round && rand_r(seed) % 4)
                expect_whole(objects[i]);
            else
                objects[i] = cut(region, seed);
        check(round < 2 ? scm_tick() : 0);
    }
    if (rand_r(seed) % 2)
        check(scm_region_unregister(region));
    if (rand_r(seed) % 4 == 0)
        check(scm_refresh(objects[0], 1 << (rand_r(seed) % 8)));
}

/* Does the same as use_shared for a region with one object, by which other threads find it. */
static void use_shared_region(unsigned *seed)
{
    unsigned place = (unsigned)rand_r(seed) % SHARED;
    struct in_region *object = __atomic_load_n(&shared_regions[place], __ATOMIC_ACQUIRE);
    struct scm_region *region;

    if (object) {
        expect_whole(object);
        check(scm_global_refresh(object, (unsigned)rand_r(seed) % 3));
        expect_whole(object);
        if (rand_r(seed) % 4 == 0)
            __atomic_compare_exchange_n(&shared_regions[place], &object, NULL, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
        return;
    }
    region = scm_region_create();
    if (!region)
        abort();
    object = cut(region, seed);
    check(scm_region_global_refresh(region, 1 << 10));
    check(scm_region_unregister(region));
    __atomic_store_n(&shared_regions[place], object, __ATOMIC_RELEASE);
}

static void leave_real(struct scm_clock *real, unsigned *seed)
{
    struct object *object = make(seed);
    unsigned milliseconds = (unsigned)rand_r(seed) % 20;

    object->not_before = torture_time() + milliseconds * MS;
    check(scm_clock_refresh(real, object, milliseconds));
}

/* Leaves clocks with dates until the thread's end, and destroys others that have many. */
static void leave_clocks(unsigned *seed)
{
    struct scm_clock *left = scm_clock_create(), *real = scm_clock_create_realtime(1);
    struct scm_clock *destroyed = scm_clock_create();

    if (!left || !real || !destroyed)
        abort();
    for (unsigned i = 0; i < 30; i++) {
        check(scm_clock_refresh(left, make(seed), (unsigned)rand_r(seed) % 100));
        leave_real(real, seed);
        check(scm_clock_refresh(destroyed, make(seed), (unsigned)rand_r(seed) % 100));
    }
    check(scm_clock_destroy(destroyed));
}

static void *work(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;

    for (unsigned round = 1; round < 50 && !__atomic_load_n(&stop, __ATOMIC_RELAXED); round++) {
        use_own(&seed);
        use_region(&seed);
        for (unsigned i = 0; i < 100; i++) {
            use_shared(&seed);
            use_shared_region(&seed);
        }
        if (rand_r(&seed) % 16 == 0)
            leave_clocks(&seed);
        check(scm_global_tick());
        if (rand_r(&seed) % 8 == 0) {
            check(scm_block_thread());
            check(scm_resume_thread());
        }
        if (rand_r(&seed) % 16 == 0)
            check(prudence_option_set("scm_collection", rand_r(&seed) % 2 ? "lazy" : "eager"));
        if (__atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED) % 100 == 0)
            empty_table();
    }
    return NULL;
}

/* Checks that no date remains, and every object and region has ended. */
static void expect_nothing_left(void)
{
    struct scm_region_info regions;
    struct scm_mem_info info;

    check(scm_register_thread());
    check(scm_collect());
    scm_get_mem_info(&info);
    scm_get_region_info(&regions);
    check(scm_unregister_thread());
    if (info.num_dates || info.num_short_term || regions.regions || regions.bytes ||
        made != ended) {
        fprintf(stderr, "%lu dates remain, %lu regions, %llu objects of %llu\n", info.num_dates,
                regions.regions, (unsigned long long)(made - ended), (unsigned long long)made);
        abort();
    }
}

/* Ends every thread's dates, one heir after the other; real-time dates end as time passes. */
static void end_all(void)
{
    check(prudence_option_set("scm_collection", "eager"));
    for (unsigned i = 0; i <= THREADS; i++) {
        check(scm_register_thread());
        for (unsigned tick = 0; tick < 1100; tick++) {
            check(scm_tick());
            check(scm_global_tick());
        }
        check(scm_collect());
        check(scm_unregister_thread());
    }
    check(scm_register_thread());
    do {
        check(scm_tick());
    } while (dates_left());
    check(scm_unregister_thread());
    expect_nothing_left();
}

static void run_threads(unsigned *seed)
{
    pthread_t threads[THREADS];

    for (unsigned i = 0; i < THREADS; i++)
        check(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(*seed)++));
    for (unsigned i = 0; i < THREADS; i++)
        check(pthread_join(threads[i], NULL));
    empty_table();
}

int main(void)
{
    time_t until = time(NULL) + (time_t)torture_seconds(2);
    unsigned seed = 1 + (unsigned)test_seed(0) * 1000, groups_seed = seed;

    scm_real_time = torture_time;
    seal_breaker = scm_register_finalizer(break_seal);
    do {
        for (unsigned i = 0; i < GROUPS; i++) {
            group_ends(&groups_seed);
            expect_nothing_left();
        }
        epochs(&groups_seed);
        run_threads(&seed);
        end_all();
    } while (time(NULL) < until);
    printf("%llu objects\n", (unsigned long long)made);
}
