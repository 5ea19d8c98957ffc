/* SPDX-License-Identifier: MIT */
/*
 * Remaining threads take over what ended threads leave, whether another one registers or not: a
 * little at each tick, local dates by local ticks, dates of global time by global ticks. No date
 * ends earlier than it would have, and nothing is lost.
 */
#include "support/scm_test.h"

static struct scm_clock *handle;

static int act_many(void *dates)
{
    int error = 0;

    for (unsigned i = 0; i < *(unsigned *)dates; i++)
        error |= scm_refresh(object_new(), i % 5);
    return error;
}

static int act_many_global(void *dates)
{
    int error = 0;

    for (unsigned i = 0; i < *(unsigned *)dates; i++)
        error |= scm_global_refresh(object_new(), i % 5);
    return error;
}

static int act_many_by_clock(void *dates)
{
    int error = 0;

    handle = scm_clock_create();
    for (unsigned i = 0; i < *(unsigned *)dates; i++)
        error |= scm_clock_refresh(handle, object_new(), i % 5);
    return error;
}

static void all_is_inherited(int (*gives)(void *), unsigned threads, unsigned dates,
                             int (*tick)(void *))
{
    struct actor actors[16];
    unsigned count = 0;

    assert_int_equal(scm_register_thread(), 0);
    end_count = 0;
    for (unsigned i = 0; i < threads; i++) {
        actor_start(&actors[i]);
        assert_int_equal(does(&actors[i], gives, &dates), 0);
    }
    for (unsigned i = 0; i < threads; i++)
        actor_end(&actors[i]);
    assert_int_equal(mem_info().num_dates, threads * dates);
    assert_int_equal(mem_info().num_short_term, threads * dates);
    assert_int_equal(mem_info().threads, 1);
    for (; mem_info().num_dates; count++) {
        assert_int_equal(tick(NULL), 0);
        assert_true(count < 500);
        assert_int_equal(mem_info().num_expired, 0);
        assert_int_equal(mem_info().num_short_term, threads * dates - end_count);
        assert_int_equal(mem_info().num_dates, threads * dates - end_count);
    }
    assert_int_equal(end_count, threads * dates);
    assert_ptr_equal(scm_orphans.next, &scm_orphans);
    expect_no_descriptors();
}

TEST(a_registered_thread_inherits, fresh)
{
    for (unsigned threads = 1; threads <= 16; threads += 5) {
        all_is_inherited(act_many, threads, 1, act_tick);
        all_is_inherited(act_many, threads, 300, act_tick);
        all_is_inherited(act_many_global, threads, 300, act_global_tick);
        all_is_inherited(act_many_by_clock, threads, 300, act_tick);
    }
}

/* Each kind of tick handles its own kind of dates. */
TEST(local_dates_wait_for_local_ticks, fresh)
{
    struct actor actor;
    void *local = object_new(), *global = object_new();

    assert_int_equal(scm_register_thread(), 0);
    actor_start(&actor);
    assert_int_equal(refreshes(&actor, local, 3), 0);
    assert_int_equal(global_refreshes(&actor, global, 3), 0);
    actor_end(&actor);
    ticks(3);
    assert_false(has_ended(local));
    ticks(20);
    assert_true(has_ended(local));
    assert_false(has_ended(global));
    global_ticks(5);
    assert_false(has_ended(global));
    global_ticks(3);
    assert_true(has_ended(global));
}

static int act_both_kinds(void *unused)
{
    int error = 0;

    for (unsigned i = 0; i < 3; i++)
        error |= scm_refresh(object_new(), i) | scm_global_refresh(object_new(), i);
    return error;
}

/* Ticks of the survivor, repeated: L is a local one, G a global one. */
static const char *const patterns[] = {"LG",   "GL",   "LLG",   "LGG",
                                       "LLGG", "LLLG", "LGLGG", "LLLLLGGG"};

/* Each ended thread had lists of both kinds. The survivor takes over one list of a kind for
 * each tick of that kind; the lists end a few ticks later. */
static void survive_by(const char *pattern, unsigned threads)
{
    enum { LISTS = 3, LATER = 8 };
    struct actor actors[8];
    unsigned local = 0, global = 0, i;

    end_count = 0;
    assert_int_equal(scm_register_thread(), 0);
    for (i = 0; i < threads; i++) {
        actor_start(&actors[i]);
        assert_int_equal(does(&actors[i], act_both_kinds, NULL), 0);
    }
    for (i = 0; i < threads; i++)
        actor_end(&actors[i]);
    assert_int_equal(mem_info().num_dates, 2 * LISTS * threads);
    for (i = 0; local < LISTS * threads + LATER || global < LISTS * threads + LATER; i++) {
        bool is_local = pattern[i % strlen(pattern)] == 'L';

        assert_int_equal(is_local ? scm_tick() : scm_global_tick(), 0);
        local += is_local;
        global += !is_local;
    }
    assert_int_equal(mem_info().num_dates, 0);
    assert_int_equal(end_count, 2 * LISTS * threads);
    assert_ptr_equal(scm_orphans.next, &scm_orphans);
}

TEST(whatever_the_order_of_ticks_all_is_taken, fresh)
{
    for (unsigned i = 0; i < sizeof patterns / sizeof *patterns; i++)
        for (unsigned threads = 1; threads <= 8; threads++)
            survive_by(patterns[i], threads);
}

/* A thread that never ticks by one of the clocks does not keep dates that another thread could
 * end. */
TEST(any_tick_takes_over, fresh)
{
    struct actor actor, local_ticker, global_ticker;
    void *local = object_new(), *global = object_new();

    actor_start(&local_ticker);
    actor_start(&global_ticker);
    does(&local_ticker, act_register, NULL);
    does(&global_ticker, act_register, NULL);
    actor_start(&actor);
    assert_int_equal(refreshes(&actor, local, 1), 0);
    assert_int_equal(global_refreshes(&actor, global, 1), 0);
    actor_end(&actor);
    for (unsigned i = 0; i < 10; i++) {
        does(&local_ticker, act_tick, NULL);
        does(&global_ticker, act_global_tick, NULL);
        does(&local_ticker, act_global_tick, NULL);
    }
    assert_true(has_ended(local));
    assert_true(has_ended(global));
    actor_end(&local_ticker);
    actor_end(&global_ticker);
}

static struct refreshing again;

static int act_refresh_again(void *clock)
{
    handle = scm_clock_create();
    return scm_clock_refresh(handle, again.object, again.extension) ||
           scm_refresh(again.object, again.extension);
}

/* Dates never end earlier, whichever thread takes them over. */
TEST(nothing_is_earlier, fresh)
{
    static const unsigned extensions[] = {0, 1, 2, 15, 16, 17, 63, 64, 65, 200, 4095};

    for (unsigned i = 0; i < sizeof extensions / sizeof *extensions; i++) {
        for (unsigned kind = 0; kind < 2; kind++) {
            struct actor actor;

            again = (struct refreshing){object_new(), extensions[i]};
            actor_start(&actor);
            assert_int_equal(does(&actor, kind ? act_refresh_again : act_refresh, &again), 0);
            if (kind)
                does(&actor, act_tick, NULL); /* a tick seen by the heir, not by the clock */
            scm_register_thread();
            actor_end(&actor);
            ticks(extensions[i]);
            assert_false(has_ended(again.object));
            ticks(3);
            assert_true(has_ended(again.object));
            scm_unregister_thread();
        }
    }
}

static int act_eight_clocks(void *dates)
{
    int error = 0;

    for (unsigned i = 0; i < 8; i++) {
        struct scm_clock *clock = scm_clock_create();

        for (unsigned j = 0; j < *(unsigned *)dates; j++)
            error |= scm_clock_refresh(clock, object_new(), 5);
    }
    return error;
}

/* Lists of one date become one list, and each date counts once, whether their pages are filled
 * up or linked. */
TEST(lists_that_meet_are_counted, fresh)
{
    for (unsigned dates = 1; dates <= 300; dates += dates < 10 ? 3 : 59) {
        struct actor actor;

        collection("lazy");
        scm_unregister_thread();
        end_count = 0;
        actor_start(&actor);
        assert_int_equal(does(&actor, act_eight_clocks, &dates), 0);
        actor_end(&actor);
        assert_int_equal(scm_clock_destroy(scm_clock_create()), 0); /* the heir moves the lists */
        ticks(5);
        assert_int_equal(mem_info().num_expired, 0);
        ticks(1);
        assert_int_equal(mem_info().num_expired, 8 * dates);
        assert_int_equal(mem_info().num_dates, 8 * dates);
        assert_int_equal(scm_collect(), 0);
        assert_int_equal(end_count, 8 * dates);
        assert_int_equal(mem_info().num_dates, 0);
    }
}

/* The next tick of any thread frees expired and destroyed objects. */
static int act_expires_much(void *unused)
{
    struct scm_clock *clock = scm_clock_create();
    int error = 0;

    for (unsigned i = 0; i < 1000; i++)
        error |= scm_refresh(object_new(), 0) | scm_clock_refresh(clock, object_new(), i);
    return error | scm_tick() | scm_clock_destroy(clock) | scm_tick();
}

TEST(expired_objects_are_inherited, fresh)
{
    struct actor actor;

    collection("lazy");
    scm_register_thread();
    actor_start(&actor);
    assert_int_equal(does(&actor, act_expires_much, NULL), 0);
    actor_end(&actor);
    assert_int_equal(mem_info().num_expired, 2000 - end_count);
    ticks(1);
    assert_int_equal(mem_info().num_expired, 2000 - end_count);
    assert_int_equal(mem_info().num_dates, 2000 - end_count);
    assert_int_equal(scm_collect(), 0);
    assert_int_equal(end_count, 2000);
    assert_int_equal(mem_info().num_expired, 0);
    assert_int_equal(mem_info().num_dates, 0);
}

#define OF_ONE_DATE 150 /* more than a page of descriptors */

static unsigned given; /* dates */

/* 150 of them have expired, and each call takes four of these; the others wait for their date. */
static int act_takes_a_part(void *calls)
{
    int error = 0;

    for (unsigned i = 0; i < given; i++)
        error |= scm_refresh(object_new(), i / OF_ONE_DATE);
    error |= scm_tick();
    for (unsigned i = 0; i < *(unsigned *)calls; i++)
        scm_free(scm_malloc(8));
    return error;
}

static void expect_counts_of_what_is_left(unsigned own)
{
    assert_int_equal(mem_info().num_dates, given + own - end_count);
    assert_int_equal(mem_info().num_short_term, given + own - end_count);
    assert_true(mem_info().num_expired <= mem_info().num_dates);
}

enum taken_over { BY_TICK, BY_GLOBAL_TICK, BY_COLLECT, BY_HEIR, WAYS };

static int take_over(enum taken_over way)
{
    switch (way) {
    case BY_TICK:
        return scm_tick();
    case BY_GLOBAL_TICK:
        return scm_global_tick();
    case BY_COLLECT:
        return scm_collect();
    default:
        return 0;
    }
}

/* The survivor has a queue of its own, and has taken a part of it. */
static void survivor_takes_a_part(unsigned dates)
{
    assert_int_equal(scm_register_thread(), 0);
    for (unsigned i = 0; i < dates; i++)
        assert_int_equal(scm_refresh(object_new(), 0), 0);
    assert_int_equal(scm_tick(), 0);
    scm_free(scm_malloc(8));
}

/* `own`: number of the survivor's dates. */
static void hand_over(unsigned calls, enum taken_over way, unsigned own)
{
    struct actor actor, heir;

    scm_unregister_thread();
    end_count = 0;
    if (way != BY_HEIR)
        survivor_takes_a_part(own);
    else
        own = 0;
    actor_start(&actor);
    assert_int_equal(does(&actor, act_takes_a_part, &calls), 0);
    actor_end(&actor);
    expect_counts_of_what_is_left(own);
    assert_int_equal(take_over(way), 0);
    expect_counts_of_what_is_left(own);
    actor_start(&heir);
    assert_int_equal(does(&heir, act_register, NULL), 0);
    expect_counts_of_what_is_left(own);
    for (unsigned i = 0; i < (given + own) / TAKEN_PER_CALL + 8; i++) {
        assert_int_equal(does(&heir, act_tick, NULL), 0);
        assert_int_equal(way == BY_HEIR ? 0 : scm_tick(), 0);
        expect_counts_of_what_is_left(own);
    }
    assert_int_equal(mem_info().num_dates, 0);
    assert_int_equal(end_count, given + own);
    actor_end(&heir);
}

/* The first page begins anywhere. The rest of the expired queue goes to the survivor's tick or
 * scm_collect, or to an heir; dates that have not passed then go to an heir that has nothing
 * expired. Nothing is lost or ended twice. */
TEST(a_queue_that_was_taken_in_part_is_handed_over, fresh)
{
    collection("lazy");
    for (given = OF_ONE_DATE; given <= 4 * OF_ONE_DATE; given += 3 * OF_ONE_DATE)
        for (unsigned calls = 0; calls <= OF_ONE_DATE / TAKEN_PER_CALL + 1; calls += 9)
            for (enum taken_over way = BY_TICK; way < WAYS; way++)
                for (unsigned own = 0; own <= 100; own += 50)
                    hand_over(calls, way, own);
}

/* scm_collect alone suffices, because it handles expired objects of all threads. */
TEST(collecting_takes_over_what_has_expired, fresh)
{
    struct actor actor;

    collection("lazy");
    scm_register_thread();
    actor_start(&actor);
    assert_int_equal(does(&actor, act_expires_much, NULL), 0);
    actor_end(&actor);
    assert_int_equal(scm_collect(), 0);
    assert_int_equal(end_count, 2000);
}

/* A thread that leaves nothing keeps no memory. */
TEST(a_thread_that_leaves_nothing_is_gone, fresh)
{
    struct actor actor;
    uint64_t before = mem_info().overhead;

    for (unsigned i = 0; i < 10; i++) {
        actor_start(&actor);
        does(&actor, act_register, NULL);
        actor_end(&actor);
    }
    assert_ptr_equal(scm_orphans.next, &scm_orphans);
    assert_true(mem_info().overhead <= before); /* slabs may have been freed, with their words */
}

/* Heirs of heirs and clocks of clocks, over many generations. */
static int act_generation(void *number)
{
    unsigned n = *(unsigned *)number;
    struct scm_clock *clock = scm_clock_create(), *real = scm_clock_create_realtime(1 + n % 40);
    int error = 0;

    for (unsigned i = 0; i < 10; i++)
        error |= scm_clock_refresh(clock, object_new(), i * n % 100) |
                 scm_clock_refresh(real, object_new(), i * n % 1000) |
                 scm_refresh(object_new(), n % 30) | scm_global_refresh(object_new(), n % 20);
    return error | (n % 3 ? scm_tick() : scm_global_tick());
}

static uint64_t real_ns = UINT64_C(5000000000000);

static uint64_t injected_time(void)
{
    return real_ns;
}

TEST(generations_lose_nothing, fresh)
{
    enum { GENERATIONS = 100 };

    scm_real_time = injected_time;
    for (unsigned survivor = 0; survivor < 2; survivor++) {
        struct scm_mem_info info;

        end_count = 0;
        scm_unregister_thread();
        for (unsigned n = 0; n < GENERATIONS; n++) {
            struct actor actor;

            if (survivor && n % 10 == 5) {
                scm_register_thread();
                scm_tick();
                scm_global_tick();
            }
            actor_start(&actor);
            assert_int_equal(does(&actor, act_generation, &n), 0);
            actor_end(&actor);
            real_ns += 3000000;
        }
        scm_register_thread();
        for (unsigned i = 0; i < 20000 && mem_info().num_dates; i++) {
            ticks(1);
            global_ticks(1);
            real_ns += 5000000;
        }
        info = mem_info();
        assert_int_equal(info.num_dates, 0);
        assert_int_equal(info.num_short_term, 0);
        assert_int_equal(info.num_expired, 0);
        assert_int_equal(end_count, GENERATIONS * 40);
        expect_no_descriptors();
    }
    scm_real_time = os_clock_ns;
}

SUITE(scm_test_uses())
