/* SPDX-License-Identifier: MIT */
/*
 * After prudence_epoch_outlive(), a section in which the thread ends protects as long as the
 * process, no thread reports the end, and no thread waits for it implicitly. Sections that the
 * thread ends are as before, and the slot of a thread that ends outside serves another, which is
 * reported.
 */
#include <prudence/epoch.h>
#include <prudence/prudence.h>

#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/suite.h"
#include "support/threads.h"

static int *object;
static prudence_gp_t cookie;

static void *outlives_inside(void *unused)
{
    prudence_epoch_outlive();
    prudence_read_lock();
    cookie = prudence_gp_start_poll();
    return unused;
}

static bool is_over_soon(void)
{
    for (unsigned i = 0; i < 300; i++) {
        if (prudence_gp_poll_state(cookie))
            return true;
        pause_ms(1); /* drivers ask for a gone reader after 5 ms, thoroughly after 100 ms */
    }
    return false;
}

static int keeps_for_ever(void *unused)
{
    (void)unused;
    object = prudence_malloc(sizeof *object);
    *object = 7;
    in_thread(outlives_inside, NULL);
    prudence_free_deferred(object);
    if (is_over_soon() || *object != 7)
        return 1;
    return 42;
}

/* There, what threads leave is ended in their last round, because none is found to be gone. */
static int keeps_in_a_sandbox(void *unused)
{
    return prudence_option_set("sandbox", "1") ? 2 : keeps_for_ever(unused);
}

TEST(a_section_outlives_its_thread)
{
    struct child_result result;

    assert_child(keeps_in_a_sandbox, NULL);
    child_run(keeps_for_ever, NULL, &result);
    if (!child_exited_with(&result, 42))
        fail_msg("status %#x, '%s'", (unsigned)result.status, result.output);
    assert_int_equal(child_count(&result, "exits inside"), 0);
}

static void *outlives_outside(void *unused)
{
    prudence_read_lock();
    prudence_epoch_outlive();
    prudence_read_unlock();
    return unused;
}

static void *ends_inside(void *unused)
{
    prudence_read_lock();
    cookie = prudence_gp_start_poll();
    return unused;
}

static int slot_serves_another(void *unused)
{
    (void)unused;
    in_thread(outlives_outside, NULL);
    in_thread(ends_inside, NULL);
    return is_over_soon() ? 42 : 1;
}

TEST(the_next_owner_of_the_slot_is_reported)
{
    struct child_result result;

    child_run(slot_serves_another, NULL, &result);
    if (!child_exited_with(&result, 42))
        fail_msg("status %#x, '%s'", (unsigned)result.status, result.output);
    assert_int_equal(child_count(&result, "exits inside"), 1);
}

SUITE()
