/* SPDX-License-Identifier: MIT */
/*
 * Whichever call for memory fails, the result is ENOMEM, and nothing has happened. An object whose
 * refresh was refused keeps its earlier dates; without any, it may be freed. In the end nothing is
 * short-term (support/every_call.h).
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "support/scm_test.h"
#include "support/every_call.h"
#include "support/stats.h"

#define OBJECTS 300

static bool accepted(int error)
{
    assert_true(!error || error == ENOMEM);
    return !error;
}

/* Returns sizes that need pages of their own, so that the allocation of each object's slab and
 * each list may fail. */
static size_t size_of(unsigned i)
{
    return i % 50 == 0 ? 100000 : 16 + i % 7 * 500;
}

static bool refresh(void *object, unsigned i, struct scm_clock *clock)
{
    bool accepted_any = accepted(scm_refresh(object, i % 3 ? 0 : 100));

    accepted_any |= accepted(scm_global_refresh(object, i % 2));
    return accepted_any | (clock && accepted(scm_clock_refresh(clock, object, 5)));
}

/* An object that is refreshed all the time stays alive, although the descriptor may not be
 * queued again at once. */
static void keep(void **kept, unsigned *until, unsigned now, unsigned i)
{
    assert_false(*kept && *until >= now && has_ended(*kept));
    if (*kept && *until < now) /* it may have ended, because refreshes were refused */
        *kept = NULL;
    if (!*kept && i % 10)
        return;
    if (!*kept) {
        *kept = scm_malloc(48);
        end_count = 0;
        *until = now;
        if (!*kept || !accepted(scm_set_finalizer(*kept, witness())) ||
            !accepted(scm_refresh(*kept, 1))) {
            scm_free(*kept);
            *kept = NULL;
            return;
        }
    }
    if (accepted(scm_refresh(*kept, i % 3)) && *until < now + i % 3)
        *until = now + i % 3;
}

/* Allocates objects of all sizes in a region, as far as memory allows. Unregisters the region if
 * its dates were refused. */
static void use_region(unsigned i)
{
    struct scm_region *region = scm_region_create();
    bool dated;

    if (!region) {
        assert_int_equal(errno, ENOMEM);
        return;
    }
    for (unsigned j = 0; j < 10; j++) {
        size_t size = j == 5 ? 60000 : 16 + (i + j) % 5 * 900;
        void *object = scm_region_alloc(region, size);

        assert_true(object || errno == ENOMEM);
        if (object)
            memset(object, 1, size);
    }
    dated = accepted(scm_region_refresh(region, i % 4));
    dated |= accepted(scm_region_global_refresh(region, i % 100));
    if (!dated)
        assert_int_equal(scm_region_unregister(region), 0);
}

static void all_ends(struct scm_clock *clock)
{
    struct scm_mem_info info;

    failures_end();
    if (clock)
        assert_int_equal(scm_clock_destroy(clock), 0);
    ticks(0); /* registers the thread */
    for (unsigned i = 0; i < 110; i++)
        assert_false(scm_tick() || scm_global_tick());
    scm_collect();
    info = mem_info();
    assert_false(info.num_dates || info.num_short_term || info.num_expired);
    assert_false(region_info().regions || region_info().bytes);
}

static void use_all(void)
{
    struct scm_clock *clock = scm_clock_create();
    void *objects[OBJECTS];
    void *kept = NULL;
    unsigned until = 0, now = 0;

    for (unsigned i = 0; i < OBJECTS; i++) {
        objects[i] = scm_malloc(size_of(i));
        if (!objects[i])
            continue;
        if (i % 4 == 0)
            accepted(scm_set_finalizer(objects[i], witness()));
        if (refresh(objects[i], i, clock))
            objects[i] = NULL;
        keep(&kept, &until, now, i);
        if (i % 30 == 7)
            use_region(i);
        if (i % 20 == 0 && !scm_tick())
            now++;
    }
    all_ends(clock);
    for (unsigned i = 0; i < OBJECTS; i++)
        scm_free(objects[i]); /* all refreshes were refused, so this is no misuse */
    scm_unregister_thread();
    prudence_synchronize();
    assert_int_equal(stats_now().objects_live, 0); /* all others had the dates that were accepted */
}

static const struct failure_row row = {"short-term memory", use_all, .least = 20};

TEST(failures_lose_nothing)
{
    every_call_of(&row, 1);
}

SUITE(scm_test_uses(), pin_thread())
