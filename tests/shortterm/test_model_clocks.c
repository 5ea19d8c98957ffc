/* SPDX-License-Identifier: MIT */
/*
 * Random calls by several clocks of a thread, user and real-time ones, with other threads that
 * come, give dates by their own clocks, and end, against a model of when each date is over. No
 * object ends before all its dates are over, by the plainest count; after scm_collect each object
 * whose dates are over by the own thread's clocks has ended; in the end all have. The statistics
 * agree at every step.
 */
#include "support/scm_test.h"
#include "support/test_seed.h"

#define CLOCKS  6
#define OBJECTS 80
#define DATES   100
#define STEPS   12000

struct date {
    enum { LOCAL, USER, REAL, DEAD, OVER } kind; /* OVER: over by then, or later */
    uint64_t turn;                               /* USER: generation of the clock */
    unsigned clock;                              /* USER */
    uint64_t over; /* over when the clock's time exceeds this; REAL: from this ns on */
    uint64_t late; /* REAL: ns of possible delay */
};

struct subject {
    void *object; /* NULL if there is none */
    struct date dates[DATES];
    unsigned count;
};

struct model_clock {
    struct scm_clock *clock; /* NULL if there is none */
    uint64_t turn, now;
    unsigned period; /* ms; 0: not a real-time clock */
};

static struct subject subjects[OBJECTS];
static struct model_clock clocks[CLOCKS];
static uint64_t real_ns, local, ended, first_collected;
static bool eager;

static uint64_t injected_time(void)
{
    return real_ns;
}

static bool is_over(const struct date *date, bool surely)
{
    const struct model_clock *clock = &clocks[date->clock];

    switch (date->kind) {
    case USER:
        return !clock->clock || clock->turn != date->turn || clock->now > date->over;
    case REAL:
        return real_ns >= date->over + (surely ? date->late : 0);
    case OVER:
        return true;
    default:
        return local > date->over;
    }
}

static bool all_are_over(const struct subject *subject, bool surely)
{
    for (unsigned i = 0; i < subject->count; i++)
        if (!is_over(&subject->dates[i], surely))
            return false;
    return true;
}

/* Returns whether the object may outlive its dates: dates of dead threads may take longer. */
static bool may_take_longer(const struct subject *subject)
{
    for (unsigned i = 0; i < subject->count; i++)
        if (subject->dates[i].kind >= DEAD)
            return true;
    return false;
}

static void compare(bool collected)
{
    unsigned alive = 0;

    for (unsigned i = 0; i < OBJECTS; i++) {
        struct subject *subject = &subjects[i];

        if (!subject->object)
            continue;
        if (has_ended(subject->object)) {
            assert_true(all_are_over(subject, false));
            subject->object = NULL;
            continue;
        }
        alive++;
        if (collected && all_are_over(subject, true))
            assert_true(may_take_longer(subject));
    }
    ended += end_count;
    end_count = 0;
    assert_int_equal(mem_info().num_short_term, alive);
    assert_int_equal(mem_info().num_collected - first_collected, ended);
    assert_true(mem_info().num_dates >= alive);
}

static struct date *new_date(struct subject *subject)
{
    if (!subject->object) { /* allocated so that no object ends without a comparison */
        subject->object = prudence_malloc(48);
        assert_int_equal(scm_set_finalizer(subject->object, witness()), 0);
        subject->count = 0;
    }
    return &subject->dates[subject->count++];
}

static void refresh_by(unsigned number, struct subject *subject)
{
    struct model_clock *clock = &clocks[number];
    unsigned extension = (unsigned)rand() % (rand() % 4 ? 40 : 600);
    struct date *date = new_date(subject);

    *date = (struct date){.kind = USER, .turn = clock->turn, .clock = number};
    date->over = clock->now + extension;
    if (clock->period) {
        date->kind = REAL;
        date->over = real_ns + (uint64_t)extension * 1000000;
        date->late = (uint64_t)clock->period * 2000000;
    }
    assert_int_equal(scm_clock_refresh(clock->clock, subject->object, extension), 0);
}

static void clock_begin_or_end(unsigned number)
{
    struct model_clock *clock = &clocks[number];
    unsigned period = (unsigned)rand() % 2 ? 0 : 1 + (unsigned)rand() % 9;

    if (clock->clock && !clock->period) {
        assert_int_equal(scm_clock_destroy(clock->clock), 0);
        clock->clock = NULL;
    } else if (!clock->clock) {
        clock->clock = period ? scm_clock_create_realtime(period) : scm_clock_create();
        assert_non_null(clock->clock);
        clock->period = period;
        clock->now = 0;
        clock->turn++;
    }
}

static void clock_tick(struct model_clock *clock)
{
    assert_int_equal(scm_clock_tick(clock->clock), 0);
    clock->now++;
}

static struct {
    void *object;
    unsigned extension, kind;
} bequest;

static int act_bequeath(void *unused)
{
    struct scm_clock *clock;

    if (bequest.kind == 0)
        return scm_refresh(bequest.object, bequest.extension);
    clock = bequest.kind == 1 ? scm_clock_create() : scm_clock_create_realtime(3);
    return !clock || scm_clock_refresh(clock, bequest.object, bequest.extension);
}

/* Another thread registers, gives a date and ends. */
static void inherit(struct subject *subject)
{
    struct date *date = new_date(subject);
    struct actor actor;

    bequest.object = subject->object;
    bequest.extension = (unsigned)rand() % 100;
    bequest.kind = (unsigned)rand() % 3;
    *date = (struct date){.kind = DEAD, .over = local + bequest.extension};
    if (bequest.kind == 2)
        *date =
            (struct date){.kind = REAL, .over = real_ns + bequest.extension * UINT64_C(1000000)};
    actor_start(&actor);
    assert_int_equal(does(&actor, act_bequeath, NULL), 0);
    actor_end(&actor);
    if (bequest.kind == 2) /* and later than by an own clock, so not compared when over */
        subject->dates[subject->count++] = (struct date){.kind = OVER};
}

static void tick(void)
{
    assert_int_equal(scm_tick(), 0);
    local++;
}

static void step(void)
{
    unsigned number = (unsigned)rand() % CLOCKS;
    struct subject *subject = &subjects[rand() % OBJECTS];
    int what = rand() % 100;

    if (subject->object && (subject->count > DATES - 3 || all_are_over(subject, false)))
        what = 50 + what / 2; /* it may end at any time, so it gets no more dates */
    if (what < 30 && clocks[number].clock) {
        refresh_by(number, subject);
    } else if (what < 45) {
        *new_date(subject) = (struct date){.kind = LOCAL, .over = local + 9};
        assert_int_equal(scm_refresh(subject->object, 9), 0);
    } else if (what < 47) {
        inherit(subject);
    } else if (what < 60 && clocks[number].clock) {
        clock_tick(&clocks[number]);
    } else if (what < 70) {
        tick();
    } else if (what < 90) {
        real_ns += (uint64_t)rand() % 5000000;
        scm_free(scm_malloc(8));
    } else if (what < 91) {
        real_ns += (uint64_t)rand() % 3000 * 1000000;
    } else if (what < 94) {
        clock_begin_or_end(number);
    } else if (what < 96) {
        assert_int_equal(scm_collect(), 0);
        compare(true);
    }
    compare(false);
}

static void run(unsigned seed)
{
    srand(seed + (unsigned)test_seed(0) * 1000);
    scm_real_time = injected_time;
    real_ns = UINT64_C(777000000000);
    local = ended = 0;
    memset(subjects, 0, sizeof subjects);
    memset(clocks, 0, sizeof clocks);
    collection(eager ? "eager" : "lazy");
    assert_int_equal(scm_register_thread(), 0);
    first_collected = mem_info().num_collected;
    for (unsigned i = 0; i < STEPS; i++)
        step();
    for (unsigned i = 0; i < CLOCKS; i++)
        if (clocks[i].clock)
            assert_int_equal(scm_clock_destroy(clocks[i].clock), 0);
    memset(clocks, 0, sizeof clocks);
    for (unsigned i = 0; i < 2000 && mem_info().num_dates; i++) {
        real_ns += 1000000000;
        tick();
        if (i % 10 == 0)
            assert_int_equal(scm_collect(), 0);
    }
    assert_int_equal(mem_info().num_dates, 0);
    assert_int_equal(mem_info().num_expired, 0);
    compare(true);
    assert_int_equal(mem_info().num_short_term, 0);
    scm_real_time = os_clock_ns;
}

TEST(lazily, fresh)
{
    eager = false;
    run(1);
}

TEST(eagerly, fresh)
{
    eager = true;
    run(3);
}

SUITE(scm_test_uses())
