/* SPDX-License-Identifier: MIT */
/*
 * A handler comes before each instruction of the calls that acquire and release slots. It acquires
 * more slots than are free, so it takes back those that another thread has returned. Afterwards all
 * slots are free, and none is lost.
 *
 * ctest: needs steps
 */
#define _GNU_SOURCE
#include <prudence/hazard.h>

#include "toolkit/domains/hazard_slots.h"
#include "support/step.h"
#include "support/suite.h"
#include "support/threads.h"

#if STEP_POSSIBLE

#define ALL  ((1u << PRUDENCE_HAZARDS) - 1)
#define MANY (2 * PRUDENCE_HAZARDS) /* more than two records have free */

static unsigned steps, at, broken;
static bool reached;
static struct prudence_hazard *kept; /* of a record that is not the thread's first any more */

static void acquire_many(void)
{
    struct prudence_hazard *hazards[MANY];

    for (unsigned i = 0; i < MANY; i++)
        hazards[i] = i % 2 ? prudence_hazard_acquire_movable() : prudence_hazard_acquire();
    for (unsigned i = 0; i < MANY; i++)
        prudence_hazard_release(hazards[i]);
}

static void handler(const greg_t *registers)
{
    (void)registers;
    if (steps++ != at)
        return;
    reached = true;
    step_enough = true;
    acquire_many();
}

static void *release_two(void *slots)
{
    struct prudence_hazard *const *hazards = slots;

    prudence_hazard_release(hazards[0]);
    prudence_hazard_release(hazards[1]);
    return NULL;
}

static void use_slots(void *unused)
{
    struct prudence_hazard *plain = prudence_hazard_acquire();
    struct prudence_hazard *movable = prudence_hazard_acquire_movable();

    prudence_hazard_set(plain, &steps);
    prudence_hazard_release(plain);
    prudence_hazard_release(movable);
}

static void release_slowly(void *unused)
{
    prudence_hazard_release(kept);
}

/* Returns whether each slot of the record is either free or returned, and no free one is marked
 * movable. */
static bool is_whole(const struct prudence_hazards *record)
{
    return (record->free ^ record->returned) == ALL && record->movable == record->returned;
}

static void acquire_two(struct prudence_hazard **movable)
{
    movable[0] = prudence_hazard_acquire_movable();
    movable[1] = prudence_hazard_acquire_movable();
}

static void *step_into_uses(void *unused)
{
    struct prudence_hazard *movable[2];

    acquire_two(movable);
    in_thread(release_two, movable);
    steps = 0;
    step_through(use_slots, NULL, handler);
    broken += !is_whole(prudence_hazard_record_(movable[0]));
    return NULL;
}

static void *step_into_a_slow_release(void *is_movable)
{
    struct prudence_hazard *movable[2], *row;

    acquire_two(movable);
    kept = is_movable ? prudence_hazard_acquire_movable() : prudence_hazard_acquire();
    row = prudence_hazard_acquire_row(PRUDENCE_HAZARDS); /* makes another record the first */
    assert_ptr_not_equal(prudence_hazards_self, prudence_hazard_record_(kept));
    for (unsigned i = 0; i < PRUDENCE_HAZARDS; i++)
        prudence_hazard_release(row + i);
    in_thread(release_two, movable);
    steps = 0;
    step_through(release_slowly, NULL, handler);
    broken += !is_whole(prudence_hazard_record_(kept));
    return NULL;
}

/* Lets the handler come before each instruction in turn, until there is none any more. */
static void at_each_step(void *(*run)(void *), void *argument)
{
    broken = 0;
    reached = true;
    for (at = 0; reached; at++) {
        reached = false;
        in_thread(run, argument);
    }
    assert_true(at > 20);
    assert_int_equal(broken, 0);
}

TEST(a_handler_loses_no_slot_of_the_code_that_it_interrupts)
{
    at_each_step(step_into_uses, NULL);
}

TEST(a_handler_loses_no_slot_that_is_given_back_to_an_older_record)
{
    at_each_step(step_into_a_slow_release, NULL);
    at_each_step(step_into_a_slow_release, &at);
}

#endif

SUITE()
