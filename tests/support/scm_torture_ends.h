/* SPDX-License-Identifier: MIT */
/*
 * Parts of the torture of short-term memory that start without any dated object.
 *
 * Ends: groups of 1 to 8 threads end at once and leave dates of all kinds, and partly processed
 * queues. Survivors take these over by local and global ticks in some order; another thread may
 * come and inherit. Within a number of ticks nothing may remain.
 *
 * Epochs: a thread ticks more than 65,536 times, across two ends of epochs. Objects it keeps alive
 * stay alive, and an expired region is refused at each of the ticks around these ends.
 */
#ifndef TESTS_SUPPORT_SCM_TORTURE_ENDS_H
#define TESTS_SUPPORT_SCM_TORTURE_ENDS_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "support/scm_torture.h"

#define GROUP_MAX       8
#define MS              UINT64_C(1000000)
#define PERIOD_MAX      16 /* ms; period of a real-time clock */
#define AHEAD_MAX       40 /* ms; distance of a date on a real-time clock */
#define UNITS           30
#define PATIENCE_PHASES 300   /* of global time */
#define PATIENCE        10000 /* ticks of each survivor; far more than there are lists */
#define EPOCH           65536
#define EPOCH_ENDS      21 /* first at a thread's 21st tick, then every 65,536 */
#define PROCESSED_FIRST 40 /* other objects processed before a region's date */

/* L: a local tick; G: a global one. */
static const char *const tick_patterns[] = {"LG",  "GL",   "LG",   "LLG",
                                            "LGG", "LLGG", "LLLG", "LGLGG"};

static struct {
    pthread_barrier_t together;
    bool exact;        /* no thread inherits, so the ticks of the ending thread are known */
    bool by_time;      /* threads also leave dates on real-time clocks */
    uint64_t not_over; /* ns; until then, real-time dates may remain */
    const char *pattern;
    uint64_t second_ticks; /* of the second survivor; atomic */
    bool stop;             /* asks the second survivor to stop; atomic */
} ends;

/* --------------------------------------------------------------------- threads that end at once */

/* Makes one tick, and then only enough calls to process part of the expired dates. Must come
 * last. */
static void leave_expired(unsigned *seed)
{
    unsigned count = (unsigned)rand_r(seed) % 200;

    for (unsigned i = 0; i < count; i++)
        check(scm_refresh(make(seed), 0));
    check(scm_tick());
    for (unsigned i = count ? (unsigned)rand_r(seed) % count / 4 : 0; i; i--)
        scm_free(scm_malloc(8));
}

/* Leaves one date. Global dates end two units later than requested. `before`: local ticks that the
 * thread will still make. */
static void leave_date(unsigned *seed, struct scm_clock *clock, unsigned before)
{
    struct object *object = make(seed);
    unsigned units = (unsigned)rand_r(seed) % UNITS;
    bool global = !clock && rand_r(seed) % 2;

    if (ends.exact && global)
        object->ticks[GLOBAL_TICK] = units + 3;
    else if (ends.exact)
        object->ticks[LOCAL_TICK] = units + 1 - (clock ? 0 : before);
    if (clock)
        check(scm_clock_refresh(clock, object, units));
    else
        check(global ? scm_global_refresh(object, units) : scm_refresh(object, units));
}

static void leave_by_time(unsigned *seed)
{
    struct scm_clock *real = scm_clock_create_realtime(1 + (unsigned)rand_r(seed) % PERIOD_MAX);

    if (!real)
        abort();
    for (unsigned i = (unsigned)rand_r(seed) % 8; i; i--) {
        struct object *object = make(seed);
        unsigned milliseconds = (unsigned)rand_r(seed) % AHEAD_MAX;

        object->not_before = torture_time() + milliseconds * MS;
        check(scm_clock_refresh(real, object, milliseconds));
    }
}

static void leave_region(unsigned *seed)
{
    struct scm_region *region = scm_region_create();

    if (!region || !scm_region_alloc(region, (size_t)rand_r(seed) % 50000))
        abort();
    check(rand_r(seed) % 2 ? scm_region_refresh(region, (unsigned)rand_r(seed) % UNITS)
                           : scm_region_global_refresh(region, (unsigned)rand_r(seed) % UNITS));
}

static void *live_and_end(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    struct scm_clock *clock = rand_r(&seed) % 2 ? scm_clock_create() : NULL;
    bool expired = rand_r(&seed) % 2;

    check(scm_register_thread());
    for (unsigned i = (unsigned)rand_r(&seed) % 60; i; i--)
        leave_date(&seed, i % 3 ? NULL : clock, expired);
    if (ends.by_time)
        leave_by_time(&seed);
    if (rand_r(&seed) % 2)
        leave_region(&seed);
    if (expired)
        leave_expired(&seed);
    pthread_barrier_wait(&ends.together);
    return NULL;
}

static void threads_end(unsigned count, unsigned *seed)
{
    pthread_t threads[GROUP_MAX];

    pthread_barrier_init(&ends.together, NULL, count);
    for (unsigned i = 0; i < count; i++)
        check(pthread_create(&threads[i], NULL, live_and_end, (void *)(uintptr_t)rand_r(seed)));
    for (unsigned i = 0; i < count; i++)
        check(pthread_join(threads[i], NULL));
    pthread_barrier_destroy(&ends.together);
    ends.not_over = ends.by_time ? torture_time() + (AHEAD_MAX + 4 * PERIOD_MAX) * MS : 0;
}

/* ------------------------------------------------------------------- threads that take it over */

static void tick_by_pattern(uint64_t number)
{
    enum tick kind = ends.pattern[number % strlen(ends.pattern)] == 'L' ? LOCAL_TICK : GLOBAL_TICK;

    pass_time(MS / 10);
    ticked[kind]++;
    check(kind == LOCAL_TICK ? scm_tick() : scm_global_tick());
}

static void *survive_too(void *registered)
{
    check(scm_register_thread());
    pthread_barrier_wait(registered);
    pthread_barrier_wait(registered); /* the others have ended */
    while (!__atomic_load_n(&ends.stop, __ATOMIC_RELAXED)) {
        tick_by_pattern(__atomic_fetch_add(&ends.second_ticks, 1, __ATOMIC_RELAXED));
        sched_yield();
    }
    return NULL;
}

static void *inherit(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;

    check(scm_register_thread());
    for (unsigned i = (unsigned)rand_r(&seed) % (2 * UNITS); i; i--)
        check(rand_r(&seed) % 2 ? scm_tick() : scm_global_tick());
    return NULL;
}

static void an_heir_comes_and_goes(unsigned *seed)
{
    pthread_t heir;

    check(pthread_create(&heir, NULL, inherit, (void *)(uintptr_t)rand_r(seed)));
    check(pthread_join(heir, NULL));
}

static unsigned long dates_left(void)
{
    struct scm_mem_info info;

    scm_get_mem_info(&info);
    return info.num_dates;
}

/* Progress of time for every survivor: ticks of each, and phases of global time, which need all of
 * them. */
struct progress {
    uint64_t ticks, second_ticks, phases;
};

static struct progress progress(uint64_t ticks)
{
    return (struct progress){.ticks = ticks,
                             .second_ticks = __atomic_load_n(&ends.second_ticks, __ATOMIC_RELAXED),
                             .phases = gp_phases_ended(scm_phases)};
}

static bool is_long_ago(const struct progress *then, const struct progress *now, bool second)
{
    return now->ticks - then->ticks > PATIENCE && now->phases - then->phases > PATIENCE_PHASES &&
           (!second || now->second_ticks - then->second_ticks > PATIENCE);
}

/* Ticks until no date remains. The patience starts when no more heirs come and no real-time date
 * can remain. */
static void take_all_over(bool second, unsigned heirs, unsigned *seed)
{
    struct progress begun = {.ticks = 0}, now;

    for (uint64_t number = 1; number % 16 || dates_left(); number++) {
        if (heirs && number % 16 == 1) {
            heirs--;
            an_heir_comes_and_goes(seed);
        }
        tick_by_pattern(number);
        if (second)
            sched_yield();
        now = progress(number);
        if (heirs || !begun.ticks) {
            begun = now;
            begun.ticks = heirs || torture_time() < ends.not_over ? 0 : number;
        } else if (is_long_ago(&begun, &now, second)) {
            fprintf(stderr, "%lu dates of ended threads remain for ever\n", dates_left());
            abort();
        }
    }
}

static void group_ends(unsigned *seed)
{
    unsigned count = 1 + (unsigned)rand_r(seed) % GROUP_MAX, heirs = (unsigned)rand_r(seed) % 6;
    bool second = rand_r(seed) % 4 == 0;
    pthread_barrier_t steps;
    pthread_t survivor;

    heirs = heirs > 2 ? 0 : heirs;
    memset(&ends, 0, sizeof ends);
    ends.exact = !heirs;
    ends.by_time = rand_r(seed) % 3 == 0;
    ends.pattern =
        tick_patterns[(unsigned)rand_r(seed) % (sizeof tick_patterns / sizeof *tick_patterns)];
    check(prudence_option_set("scm_collection", rand_r(seed) % 4 ? "lazy" : "eager"));
    check(scm_register_thread());
    pthread_barrier_init(&steps, NULL, 2);
    if (second) {
        check(pthread_create(&survivor, NULL, survive_too, &steps));
        pthread_barrier_wait(&steps);
    }
    threads_end(count, seed);
    ticked[LOCAL_TICK] = ticked[GLOBAL_TICK] = 0;
    if (second)
        pthread_barrier_wait(&steps);
    take_all_over(second, heirs, seed);
    __atomic_store_n(&ends.stop, true, __ATOMIC_RELAXED);
    if (second)
        check(pthread_join(survivor, NULL));
    pthread_barrier_destroy(&steps);
    check(scm_unregister_thread());
}

/* --------------------------------------------------------------------------------------- epochs */

static struct scm_region *region_new(void)
{
    struct scm_region *region = scm_region_create();

    if (!region || !scm_region_alloc(region, 40))
        abort();
    return region;
}

/* Refreshes other objects, so that lazy collection does not yet process the date of the next
 * refreshed object in the calls after the tick. */
static void refresh_others(unsigned units, unsigned *seed)
{
    for (unsigned i = 0; i < PROCESSED_FIRST; i++)
        check(scm_refresh(make(seed), units));
}

static void end_global_dates(void)
{
    for (unsigned i = 0; i < 4; i++)
        check(scm_global_tick());
    check(scm_collect());
}

enum { PLAIN, GIVEN_TWICE, KEPT_BEFORE, WAYS };

static void expect_refused(struct scm_region *region)
{
    if (scm_region_alloc(region, 40) || errno != EPERM) {
        fprintf(stderr, "an expired region was allocated in\n");
        abort();
    }
}

static void expect_allocation(struct scm_region *region)
{
    if (!scm_region_alloc(region, 40)) {
        fprintf(stderr, "a region that has a date was refused\n");
        abort();
    }
}

/* Makes two ticks. All local dates of the regions expire at the second. One region gets another
 * date after the first tick, one had a global date that has ended, and one gets a global date,
 * which keeps that region alive. */
static void regions_expire(unsigned *seed)
{
    struct scm_region *regions[WAYS], *kept = region_new();

    refresh_others(1, seed);
    check(scm_region_refresh(kept, 1));
    for (unsigned way = 0; way < WAYS; way++) {
        regions[way] = region_new();
        check(scm_region_refresh(regions[way], 1));
        check(way == KEPT_BEFORE ? scm_region_global_refresh(regions[way], 0) : 0);
    }
    end_global_dates();
    check(scm_tick());
    check(scm_region_global_refresh(kept, 0));
    for (unsigned way = 0; way < WAYS; way++) {
        check(way == GIVEN_TWICE ? scm_region_refresh(regions[way], 0) : 0);
        expect_allocation(regions[way]);
    }
    check(scm_tick());
    expect_allocation(kept);
    for (unsigned way = 0; way < WAYS; way++)
        expect_refused(regions[way]);
    end_global_dates();
}

static void tick_twice(unsigned first, unsigned *seed)
{
    unsigned in_epoch = first % EPOCH;

    if (in_epoch + 3 > EPOCH_ENDS && in_epoch < EPOCH_ENDS + 3)
        regions_expire(seed);
    else
        check(scm_tick() | scm_tick());
}

/* Ticks so that the epoch ends once at the first and once at the second of two ticks. */
static void *live_for_epochs(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    struct scm_region *region = region_new();
    struct object *kept = make(&seed);
    uint64_t *in_region = scm_region_alloc(region, sizeof *in_region);

    if (!in_region)
        abort();
    *in_region = SEAL;
    for (unsigned tick = 1; tick < EPOCH + 2 * EPOCH_ENDS; tick += 2) {
        check(scm_refresh(kept, 2 + tick % 3));
        check(scm_region_refresh(region, 2 + tick % 5));
        tick_twice(tick, &seed);
        if (tick == EPOCH / 2 + 1) {
            tick++;
            check(scm_tick());
        }
        expect_seal(kept);
        if (*in_region != SEAL || (tick % 1024 == 1 && !scm_region_alloc(region, 8)))
            abort();
    }
    return NULL;
}

static void epochs(unsigned *seed)
{
    pthread_t thread;

    check(prudence_option_set("scm_collection", "lazy"));
    check(pthread_create(&thread, NULL, live_for_epochs, (void *)(uintptr_t)rand_r(seed)));
    check(pthread_join(thread, NULL));
}

#endif /* TESTS_SUPPORT_SCM_TORTURE_ENDS_H */
