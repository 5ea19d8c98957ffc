/* SPDX-License-Identifier: MIT */
/*
 * Whichever call for memory fails, the result is ENOMEM, and nothing has happened. An object whose
 * refresh was refused keeps its earlier dates; without any, it may be freed. In the end nothing is
 * short-term.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "support/scm_test.h"
#include "support/slab_test.h"

#define OBJECTS 300

struct plan {
    unsigned first, count; /* the calls that fail */
};

static bool accepted(int error)
{
    if (error && error != ENOMEM)
        abort();
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
    if (*kept && *until >= now && has_ended(*kept))
        abort();
    if (*kept && *until < now) /* it may have ended, because refreshes were refused */
        *kept = NULL;
    if (!*kept && i % 10)
        return;
    if (!*kept) {
        *kept = scm_malloc(48);
        end_count = 0;
        if (!*kept || !accepted(scm_set_finalizer(*kept, witness()))) {
            scm_free(*kept);
            *kept = NULL;
            return;
        }
        *until = now;
        if (!accepted(scm_refresh(*kept, 1))) {
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
        if (errno != ENOMEM)
            abort();
        return;
    }
    for (unsigned j = 0; j < 10; j++) {
        size_t size = j == 5 ? 60000 : 16 + (i + j) % 5 * 900;
        void *object = scm_region_alloc(region, size);

        if (object)
            memset(object, 1, size);
        else if (errno != ENOMEM)
            abort();
    }
    dated = accepted(scm_region_refresh(region, i % 4));
    dated |= accepted(scm_region_global_refresh(region, i % 100));
    if (!dated && scm_region_unregister(region))
        abort();
}

static void all_ends(struct scm_clock *clock)
{
    struct scm_mem_info info;

    memory_succeed();
    if (clock && scm_clock_destroy(clock))
        abort();
    accepted(scm_register_thread());
    for (unsigned i = 0; i < 110; i++)
        if (scm_tick() || scm_global_tick())
            abort();
    scm_collect();
    scm_get_mem_info(&info);
    if (info.num_dates || info.num_short_term || info.num_expired || region_info().regions ||
        region_info().bytes)
        abort();
}

static void scenario(void *argument)
{
    const struct plan *plan = argument;
    struct scm_clock *clock;
    void *objects[OBJECTS];
    void *kept = NULL;
    unsigned calls, until = 0, now = 0;

    memory_fail(plan->first, plan->count);
    clock = scm_clock_create();
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
    calls = memory_calls;
    all_ends(clock);
    for (unsigned i = 0; i < OBJECTS; i++)
        scm_free(objects[i]); /* all refreshes were refused, so this is no misuse */
    fprintf(stderr, "calls=%u", calls);
}

static void every_call(unsigned count)
{
    struct plan plan = {.count = count};
    unsigned calls = UINT32_MAX;
    char output[4096];

    for (; plan.first < calls; plan.first++) {
        const char *found;

        expect_life(scenario, &plan, output, sizeof output);
        found = strstr(output, "calls=");
        assert_non_null(found);
        calls = (unsigned)strtoul(found + 6, NULL, 10);
    }
    assert_true(plan.first > 20);
}

TEST(one_call_fails)
{
    every_call(1);
}

TEST(all_calls_fail_from_then_on)
{
    every_call(UINT32_MAX);
}

SUITE(scm_test_uses(), pin_thread())
