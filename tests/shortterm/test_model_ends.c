/* SPDX-License-Identifier: MIT */
/*
 * Random calls by threads that come and end, mostly two at a time, while others go on in every
 * order of ticks: objects and regions with dates by local clocks, global time, further clocks and
 * real time, across the epochs of stamps, against a model of when each date is over. The model
 * states the thesis' rules anew, in the plainest way.
 *
 *   - While the thread that gave a date lives, the model is exact: the object has not ended before
 *     all its dates are over, and with eager collection (or after scm_collect) it has ended then.
 *     A date by real time is over at most two periods of its clock later, if all threads collect.
 *   - Global time advances when the last active thread ticks, blocks or ends, and at no other call.
 *   - The numbers of threads and of short-term objects are right after every call.
 *   - Dates of an ended thread may take longer, never less: their remaining units, counted
 *     over all threads' ticks of that kind.
 *   - A region is whole, and its owner can allocate from it, while it has a date that is not over,
 *     also one that was given to an object in it. It refuses allocations when all its dates were by
 *     its owner's local clock and are over, and to all threads when it has no owner any more.
 *   - In the end nothing remains, even of bursts of more objects than one call processes. Their
 *     ends are only counted.
 *
 * The calls come one after another, so a seed (PRUDENCE_TORTURE_SEED) always gives the same run.
 */
#include "support/scm_test.h"
#include "support/test_seed.h"
#include "shortterm/regions.h"

#define SEATS   5
#define OBJECTS 40
#define REGIONS 8
#define DATES   40
#define CUTS    16
#if defined(__SANITIZE_THREAD__)
#define STEPS 5000 /* one thread runs at a time, so there is little to find, slowly */
#else
#define STEPS 30000
#endif
#define PERIODS 9 /* ms, the longest of real-time clocks */
#define MS      UINT64_C(1000000)

enum kind { BY_LOCAL, BY_GLOBAL, BY_USER, BY_REAL, LEFT_LOCAL, LEFT_GLOBAL, KINDS = LEFT_LOCAL };

struct date {
    enum kind kind;
    int seat;
    uint64_t over; /* over when its clock's time exceeds this; BY_REAL: from this ns on, */
    uint64_t late; /* or so many ns later */
};

struct dates {
    struct date date[DATES];
    unsigned count;
};

struct subject {
    void *object; /* NULL if there is none */
    struct dates dates;
};

struct cut {
    unsigned char *bytes;
    unsigned size, mark;
};

struct model_region {
    struct scm_region *region; /* NULL if there is none */
    int owner;                 /* a seat; -1: its thread has ended, or it was unregistered */
    bool others;               /* it got a date other than by its owner's local clock */
    struct dates dates;
    struct cut cuts[CUTS];
    unsigned cut_count;
};

struct seat {
    struct actor actor;
    bool taken, blocked, ticked;
    unsigned period;              /* ms */
    uint64_t local, global, user; /* times; `global` is the thread's own */
    struct scm_clock *user_clock, *real_clock;
};

static struct seat seats[SEATS];
static struct subject subjects[OBJECTS];
static struct model_region regions[REGIONS];
static uint64_t real_ns = UINT64_C(7000000000000), all_local, all_global, model_global;
static uint64_t made, gone;                            /* numbers of objects in bursts */
static uint64_t ended, regions_made, collected_before; /* numbers of other objects and regions */
static bool lazy;
static bool soon; /* all dates are over soon, so many objects share a page of descriptors */

/* Call that a seat's thread is to make. */
static struct call {
    enum {
        REGISTER,
        TICKS,
        GLOBAL_TICK,
        USER_TICK,
        CLOCKS,
        COLLECT,
        REFRESH,
        BURST,
        CLOCK_DESTROY,
        REGION_NEW,
        REGION_REFRESH,
        REGION_ALLOC,
        REGION_UNREGISTER
    } what;
    enum kind kind;
    unsigned number; /* of ticks, units or bytes */
    unsigned count;  /* of a burst */
    void *object;
    struct scm_region *region;
} call;

static uint64_t injected_time(void)
{
    return real_ns;
}

static unsigned below(unsigned bound)
{
    return (unsigned)rand() % bound;
}

/* --------------------------------------------------------------------------- what threads do */

static int act_refresh_by(const struct seat *seat)
{
    switch (call.kind) {
    case BY_LOCAL:
        return scm_refresh(call.object, call.number);
    case BY_GLOBAL:
        return scm_global_refresh(call.object, call.number);
    default:
        return scm_clock_refresh(call.kind == BY_USER ? seat->user_clock : seat->real_clock,
                                 call.object, call.number);
    }
}

static int act_region_refresh_by(const struct seat *seat)
{
    switch (call.kind) {
    case BY_LOCAL:
        return scm_region_refresh(call.region, call.number);
    case BY_GLOBAL:
        return scm_region_global_refresh(call.region, call.number);
    default:
        return scm_region_clock_refresh(call.kind == BY_USER ? seat->user_clock : seat->real_clock,
                                        call.region, call.number);
    }
}

static int note_burst(void *object)
{
    gone++;
    return 0;
}

/* Gives one date to more objects than fit into a page of descriptors. */
static int act_burst(const struct seat *seat)
{
    static int number = -1;
    int error = 0;

    if (number < 0)
        number = scm_register_finalizer(note_burst);
    for (unsigned i = 0; i < call.count; i++) {
        call.object = scm_malloc(48);
        error |= !call.object || scm_set_finalizer(call.object, number) || act_refresh_by(seat);
    }
    return error;
}

static int act_clock_destroy(struct seat *seat)
{
    int error = scm_clock_destroy(seat->user_clock);

    seat->user_clock = scm_clock_create();
    return error || !seat->user_clock;
}

static int act_clocks(struct seat *seat)
{
    seat->user_clock = scm_clock_create();
    seat->real_clock = scm_clock_create_realtime(seat->period);
    return !seat->user_clock || !seat->real_clock;
}

static int act_ticks(unsigned count)
{
    int error = 0;

    while (count--)
        error |= scm_tick();
    return error;
}

static int act_call(void *argument)
{
    struct seat *seat = argument;

    switch (call.what) {
    case REGISTER:
        return scm_register_thread();
    case TICKS:
        return act_ticks(call.number);
    case GLOBAL_TICK:
        return scm_global_tick();
    case USER_TICK:
        return scm_clock_tick(seat->user_clock);
    case CLOCKS:
        return act_clocks(seat);
    case COLLECT:
        return scm_collect();
    case REFRESH:
        return act_refresh_by(seat);
    case BURST:
        return act_burst(seat);
    case CLOCK_DESTROY:
        return act_clock_destroy(seat);
    case REGION_NEW:
        call.region = scm_region_create();
        return !call.region;
    case REGION_REFRESH:
        return call.object ? act_refresh_by(seat) : act_region_refresh_by(seat);
    case REGION_ALLOC:
        call.object = scm_region_alloc(call.region, call.number);
        return call.object ? 0 : errno;
    default:
        return scm_region_unregister(call.region);
    }
}

static int seat_does(unsigned seat)
{
    return does(&seats[seat].actor, act_call, &seats[seat]);
}

static void seat_must(unsigned seat)
{
    assert_int_equal(seat_does(seat), 0);
}

/* ------------------------------------------------------------------------------------ the model */

static bool is_over(const struct date *date)
{
    switch (date->kind) {
    case BY_LOCAL:
        return seats[date->seat].local > date->over;
    case BY_GLOBAL:
        return seats[date->seat].global > date->over;
    case BY_USER:
        return seats[date->seat].user > date->over;
    case BY_REAL:
        return real_ns >= date->over;
    case LEFT_LOCAL:
        return all_local > date->over;
    default:
        return all_global > date->over;
    }
}

static bool all_are_over(const struct dates *dates)
{
    for (unsigned i = 0; i < dates->count; i++)
        if (!is_over(&dates->date[i]))
            return false;
    return true;
}

/* How sure it is that objects whose dates are over have ended. */
enum collected {
    NOT_COLLECTED,
    BY_EACH_CALL, /* not where a date is by real time, which is only read now and then */
    BY_ALL_THREADS,
};

/* Returns whether all dates are from live threads, and surely over. */
static bool all_are_exact(const struct dates *dates, enum collected collected)
{
    for (unsigned i = 0; i < dates->count; i++) {
        const struct date *date = &dates->date[i];

        if (date->seat < 0 || (date->kind == BY_REAL &&
                               (collected != BY_ALL_THREADS || real_ns < date->over + date->late)))
            return false;
    }
    return true;
}

/* Returns the date that a seat gives now, for `units`. */
static struct date date_of(unsigned seat, enum kind kind, unsigned units)
{
    const uint64_t now[] = {seats[seat].local, seats[seat].global + 2, seats[seat].user};

    return (struct date){kind, (int)seat,
                         kind == BY_REAL ? real_ns + units * MS : now[kind] + units,
                         2 * seats[seat].period * MS};
}

/* The seat's thread ends: its dates keep their remaining units. */
static void dates_leave(struct dates *dates, int seat)
{
    for (unsigned i = 0; i < dates->count; i++) {
        struct date *date = &dates->date[i];

        if (date->seat != seat)
            continue;
        date->seat = -1;
        if (date->kind == BY_LOCAL)
            *date = (struct date){LEFT_LOCAL, -1, all_local + date->over - seats[seat].local, 0};
        else if (date->kind == BY_USER)
            *date = (struct date){LEFT_LOCAL, -1, all_local + date->over - seats[seat].user, 0};
        else if (date->kind == BY_GLOBAL)
            *date = (struct date){LEFT_GLOBAL, -1, all_global + date->over - seats[seat].global, 0};
    }
}

/* Makes room for more dates by dropping those that are certainly over. */
static void forget_what_is_over(struct dates *dates)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < dates->count; i++)
        if (dates->date[i].kind >= BY_REAL || !is_over(&dates->date[i]))
            dates->date[kept++] = dates->date[i];
    dates->count = kept;
}

static void check_objects(enum collected collected)
{
    uint64_t alive = made - gone;

    for (unsigned i = 0; i < OBJECTS; i++) {
        struct subject *subject = &subjects[i];

        if (!subject->object)
            continue;
        if (has_ended(subject->object)) {
            assert_true(all_are_over(&subject->dates));
            subject->object = NULL;
            continue;
        }
        alive++;
        if (collected && all_are_over(&subject->dates))
            assert_false(all_are_exact(&subject->dates, collected));
    }
    ended += end_count;
    end_count = 0;
    /* regions with dates count as well */
    assert_in_range(mem_info().num_short_term, alive, alive + region_info().regions);
    assert_true(mem_info().num_dates >= alive);
    assert_true(mem_info().num_expired <= mem_info().num_dates);
    assert_in_range(mem_info().num_collected - collected_before, ended + gone,
                    ended + gone + regions_made);
}

static bool region_is_there(const struct scm_region *region)
{
    return region_owner(region_at(region), region) != 0;
}

static void check_regions(enum collected collected)
{
    for (unsigned i = 0; i < REGIONS; i++) {
        struct model_region *region = &regions[i];

        if (!region->region)
            continue;
        if (region->dates.count && all_are_over(&region->dates)) {
            if (collected && all_are_exact(&region->dates, collected))
                assert_false(region_is_there(region->region));
            continue; /* the region may have ended */
        }
        assert_true(region_is_there(region->region));
        for (unsigned c = 0; c < region->cut_count; c++)
            for (unsigned byte = 0; byte < region->cuts[c].size; byte += 13)
                assert_int_equal(region->cuts[c].bytes[byte], region->cuts[c].mark);
    }
}

static void check_threads(void)
{
    unsigned count = 0;

    for (unsigned i = 0; i < SEATS; i++)
        count += seats[i].taken;
    assert_int_equal(mem_info().threads, count);
    assert_int_equal(global_time(), model_global);
}

static void check(enum collected collected)
{
    check_objects(collected);
    check_regions(collected);
    check_threads();
}

/* -------------------------------------------------------------------------------- global time */

static bool takes_part(unsigned seat)
{
    return seats[seat].taken && !seats[seat].blocked;
}

static unsigned active(void)
{
    unsigned count = 0;

    for (unsigned i = 0; i < SEATS; i++)
        count += takes_part(i);
    return count;
}

static void phase_ends_if_all_have_ticked(void)
{
    for (unsigned i = 0; i < SEATS; i++)
        if (takes_part(i) && !seats[i].ticked)
            return;
    model_global++;
    for (unsigned i = 0; i < SEATS; i++)
        seats[i].ticked = false;
}

/* ------------------------------------------------------------------------- threads come and go */

static void seat_begins(unsigned number)
{
    struct seat *seat = &seats[number];
    bool others = active() > 0;

    if (seat->taken)
        return;
    memset(seat, 0, sizeof *seat);
    actor_start(&seat->actor);
    seat->taken = true;
    seat->ticked = others;
    seat->period = 1 + below(PERIODS);
    call.what = CLOCKS; /* which registers the thread */
    seat_must(number);
}

/* Unregisters regions without dates, which would stay for ever. */
static void regions_leave(unsigned number)
{
    for (unsigned i = 0; i < REGIONS; i++) {
        struct model_region *region = &regions[i];

        if (region->region && region->owner == (int)number) {
            region->owner = -1;
            call.what = REGION_UNREGISTER;
            call.region = region->region;
            if (!region->dates.count && !seats[number].blocked) {
                seat_must(number);
                region->region = NULL;
            }
        }
    }
}

static void seat_resumes(unsigned number)
{
    bool others = active() > 0;

    if (!seats[number].blocked)
        return;
    assert_int_equal(does(&seats[number].actor, act_resume, NULL), 0);
    seats[number].blocked = false;
    seats[number].ticked = others;
}

static void seat_ends(unsigned number)
{
    if (!seats[number].taken)
        return;
    if (below(4))
        seat_resumes(number);
    for (unsigned i = 0; i < REGIONS; i++)
        if (regions[i].region && regions[i].owner == (int)number && !regions[i].dates.count)
            seat_resumes(number);
    regions_leave(number);
    actor_end(&seats[number].actor);
    for (unsigned i = 0; i < OBJECTS; i++)
        dates_leave(&subjects[i].dates, (int)number);
    for (unsigned i = 0; i < REGIONS; i++)
        dates_leave(&regions[i].dates, (int)number);
    seats[number].taken = false;
    if (!seats[number].blocked && active())
        phase_ends_if_all_have_ticked();
}

static void block_or_resume(unsigned number)
{
    if (seats[number].blocked) {
        seat_resumes(number);
        return;
    }
    assert_int_equal(does(&seats[number].actor, act_block, NULL), 0);
    seats[number].blocked = true;
    if (active())
        phase_ends_if_all_have_ticked();
}

/* Ends two threads, mostly, and later begins two others. */
static void ends_and_begins(void)
{
    unsigned first = below(SEATS), second = (first + 1 + below(SEATS - 1)) % SEATS;

    if (below(2)) {
        seat_begins(first);
        if (below(4))
            seat_begins(second);
        return;
    }
    seat_ends(first);
    if (below(8))
        seat_ends(second);
}

/* --------------------------------------------------------------------------------------- ticks */

static void local_ticks(unsigned number)
{
    static const unsigned counts[] = {1, 1, 1, 2, 5, 21, 4100};
    unsigned count = counts[below(sizeof counts / sizeof *counts)];

    if (below(150) == 0) /* to the end of an epoch, or slightly beyond */
        count = (unsigned)(STAMP_EPOCH - seats[number].local % STAMP_EPOCH) + below(30);
    call.what = TICKS;
    call.number = count;
    seats[number].local += count;
    all_local += count;
    seat_must(number);
}

static void global_tick(unsigned number)
{
    call.what = GLOBAL_TICK;
    seat_must(number);
    if (seats[number].ticked)
        return;
    seats[number].ticked = true;
    seats[number].global++;
    all_global++;
    phase_ends_if_all_have_ticked();
}

static void user_tick(unsigned number)
{
    call.what = USER_TICK;
    seats[number].user++;
    seat_must(number);
}

/* ----------------------------------------------------------------------------- objects, regions */

static unsigned any_units(void)
{
    return below(soon ? 3 : below(4) ? 12 : 400);
}

/* Gives the object or region of `call` some dates by one clock, in any order. */
static void give_dates(unsigned number, struct dates *dates)
{
    do {
        call.number = any_units();
        dates->date[dates->count++] = date_of(number, call.kind, call.number);
        seat_must(number);
    } while (dates->count < DATES && !all_are_over(dates) && below(3));
}

static void refresh(unsigned number)
{
    struct subject *subject = &subjects[below(OBJECTS)];

    if (subject->object && all_are_over(&subject->dates))
        return;             /* the object may end at any time */
    if (!subject->object) { /* allocated so that no object ends without a comparison */
        subject->object = prudence_malloc(48);
        assert_int_equal(scm_set_finalizer(subject->object, witness()), 0);
        subject->dates.count = 0;
    }
    forget_what_is_over(&subject->dates);
    if (subject->dates.count == DATES)
        return;
    call.what = REFRESH;
    call.kind = (enum kind)below(KINDS);
    call.object = subject->object;
    give_dates(number, &subject->dates);
}

static void burst(unsigned number)
{
    call.what = BURST;
    call.kind = (enum kind)below(BY_REAL);
    call.number = below(3);
    call.count = 1 + below(300);
    made += call.count;
    seat_must(number);
}

/* The clock's dates are over, and end some time. */
static void clock_is_destroyed(struct dates *dates, int seat)
{
    for (unsigned i = 0; i < dates->count; i++)
        if (dates->date[i].kind == BY_USER && dates->date[i].seat == seat)
            dates->date[i] = (struct date){LEFT_LOCAL, -1, 0, 0};
}

static void clock_destroy(unsigned number)
{
    for (unsigned i = 0; i < OBJECTS; i++)
        clock_is_destroyed(&subjects[i].dates, (int)number);
    for (unsigned i = 0; i < REGIONS; i++)
        clock_is_destroyed(&regions[i].dates, (int)number);
    seats[number].user = 0;
    all_local++; /* so time 0 has passed */
    call.what = CLOCK_DESTROY;
    seat_must(number);
}

static void region_new(unsigned number, struct model_region *region)
{
    memset(region, 0, sizeof *region);
    regions_made++;
    call.what = REGION_NEW;
    seat_must(number);
    region->region = call.region;
    region->owner = (int)number;
}

static void region_refresh(unsigned number, struct model_region *region)
{
    if (region->dates.count && all_are_over(&region->dates))
        return;
    forget_what_is_over(&region->dates);
    if (region->dates.count == DATES)
        return;
    call.what = REGION_REFRESH;
    call.object = NULL;
    if (region->cut_count && below(2)) {
        const struct cut *cut = &region->cuts[below(region->cut_count)];

        call.object = cut->bytes + below(cut->size);
    }
    call.kind = below(2) ? BY_LOCAL : (enum kind)below(KINDS);
    call.region = region->region;
    region->others |= call.kind != BY_LOCAL || region->owner != (int)number;
    give_dates(number, &region->dates);
}

/* Allocates, by the region's owner or now and then another seat. */
static void region_alloc(struct model_region *region)
{
    bool over = region->dates.count && all_are_over(&region->dates);
    struct cut *cut = &region->cuts[region->cut_count];
    static const unsigned sizes[] = {300, 300, 300, 300, 300, 300, 5000, 100000};
    unsigned stranger = below(100); /* now and then, the number of a seat */
    int error;

    if (region->cut_count == CUTS)
        return;
    call.what = REGION_ALLOC;
    call.region = region->region;
    call.number = 1 + below(sizes[below(8)]);
    if (stranger < SEATS && takes_part(stranger) && (int)stranger != region->owner) {
        assert_int_equal(seat_does(stranger), EPERM);
        return;
    }
    error = seat_does((unsigned)region->owner);
    if (!over)
        assert_int_equal(error, 0);
    else if (!region->others)
        assert_int_equal(error, EPERM);
    if (error) {
        assert_int_equal(error, EPERM);
        region->region = NULL;
        return;
    }
    if (over)
        return; /* the region may end at any time */
    *cut = (struct cut){call.object, call.number, 1 + below(255)};
    memset(cut->bytes, (int)cut->mark, cut->size);
    region->cut_count++;
}

static void region_unregister(struct model_region *region)
{
    call.what = REGION_UNREGISTER;
    call.region = region->region;
    seat_must((unsigned)region->owner);
    region->owner = -1;
    if (!region->dates.count)
        region->region = NULL;
}

/* The region is unregistered, or its thread has ended: no thread may allocate in it. */
static void no_region_of(unsigned number, const struct model_region *region)
{
    call.what = REGION_ALLOC;
    call.region = region->region;
    call.number = 8;
    assert_int_equal(seat_does(number), EPERM);
}

static void use_region(unsigned number)
{
    struct model_region *region = &regions[below(REGIONS)];
    unsigned what = below(16);

    if (!region->region || (region->owner < 0 && all_are_over(&region->dates)))
        region_new(number, region);
    else if (what < 5)
        region_refresh(number, region);
    else if (region->owner < 0)
        no_region_of(number, region);
    else if (!seats[region->owner].blocked && what < 15)
        region_alloc(region);
    else if (!seats[region->owner].blocked)
        region_unregister(region);
}

/* Allocates in the seat's regions while dates that have just expired may not be processed yet. */
static void use_own_regions(unsigned number)
{
    for (unsigned i = 0; i < REGIONS; i++)
        if (regions[i].region && regions[i].owner == (int)number)
            region_alloc(&regions[i]);
}

/* ---------------------------------------------------------------------------------------- runs */

static void all_collect(void)
{
    call.what = COLLECT;
    for (unsigned i = 0; i < SEATS; i++) {
        if (!seats[i].taken)
            continue;
        seat_resumes(i);
        seat_must(i);
    }
    check(BY_ALL_THREADS);
}

static void step(void)
{
    unsigned number = below(SEATS), what = below(100);

    if (what < 2) {
        ends_and_begins();
    } else if (what < 5) {
        real_ns += below(below(4) ? 9000000 : 400000000);
    } else if (!seats[number].taken) {
        return;
    } else if (what < 8) {
        block_or_resume(number);
    } else if (seats[number].blocked) {
        return;
    } else if (what < 45) {
        refresh(number);
    } else if (what < 65) {
        use_region(number);
    } else if (what < 78) {
        local_ticks(number);
        if (below(3) == 0)
            use_own_regions(number);
    } else if (what < 92) {
        global_tick(number);
    } else if (what < 96) {
        user_tick(number);
    } else if (what < 98) {
        burst(number);
    } else if (what < 99) {
        call.what = REGISTER; /* it is, so nothing happens */
        seat_must(number);
    } else {
        clock_destroy(number);
    }
    check(lazy ? NOT_COLLECTED : BY_EACH_CALL);
    if (below(60) == 0)
        all_collect();
}

static void drain(void)
{
    for (unsigned i = 1; i < SEATS; i++)
        seat_ends(i);
    seat_begins(0);
    seat_resumes(0);
    for (unsigned i = 0; i < 20000 && (mem_info().num_dates || region_info().regions); i++) {
        call = (struct call){.what = TICKS, .number = 1};
        seats[0].local++;
        all_local++;
        seat_must(0);
        global_tick(0);
        user_tick(0);
        real_ns += 2 * MS;
        check(NOT_COLLECTED);
        if (i == 100) /* regions that got no date end with their owner */
            regions_leave(0);
    }
    call.what = COLLECT;
    seat_must(0);
    check(NOT_COLLECTED);
    seat_ends(0);
    for (unsigned i = 0; i < OBJECTS; i++)
        assert_null(subjects[i].object);
    assert_int_equal(gone, made);
    assert_int_equal(mem_info().num_dates, 0);
    assert_int_equal(mem_info().num_short_term, 0);
    assert_int_equal(region_info().regions, 0);
    assert_ptr_equal(scm_orphans.next, &scm_orphans);
    expect_no_descriptors();
}

static void run(bool lazily, unsigned seed)
{
    lazy = lazily;
    srand(seed + (unsigned)test_seed(0) * 1000);
    collection(lazy ? "lazy" : "eager");
    scm_real_time = injected_time;
    collected_before = mem_info().num_collected;
    made = gone = ended = regions_made = 0;
    memset(subjects, 0, sizeof subjects);
    memset(regions, 0, sizeof regions);
    for (unsigned i = 0; i < SEATS; i += 2)
        seat_begins(i);
    model_global = global_time();
    for (unsigned i = 0; i < STEPS; i++)
        step();
    drain();
    scm_real_time = os_clock_ns;
}

TEST(with_eager_collection, fresh)
{
    run(false, 1);
    run(false, 2);
}

TEST(with_lazy_collection, fresh)
{
    run(true, 3);
    run(true, 4);
}

/* Runs with clocks that own no stamps, and owners that are reused. */
TEST(with_few_owners, fresh)
{
    scm_owners = 4;
    run(false, 5);
    run(true, 6);
    soon = true;
    run(false, 7);
    run(true, 8);
    soon = false;
    scm_owners = STAMP_OWNERS;
}

SUITE(scm_test_uses())
