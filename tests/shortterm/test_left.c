/* SPDX-License-Identifier: MIT */
/*
 * Remaining threads take over what ended threads leave, whether another one registers or not: a
 * little at each tick, local dates by local ticks, dates of global time by global ticks. No date
 * ends earlier than it would have, and nothing is lost.
 */
#include "support/scm_test.h"

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

SUITE(scm_test_uses())
