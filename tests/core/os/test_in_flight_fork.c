/* SPDX-License-Identifier: MIT */
/*
 * A signal handler forks at each instruction with which a thread begins or ends to carry objects.
 * The child goes on there, and forks again, which waits until no thread carries.
 *
 * ctest: needs steps
 */
#define _GNU_SOURCE
#include "os/os.h"
#include "support/gp_child.h"
#include "support/step.h"
#include "support/threads.h"

#define CHAIN 3 /* forks at the same instruction, each in the child of the one before */

static unsigned fork_at, steps, chain;
static pid_t child;
static bool stops; /* a fork or a walk has stopped the carriers */

static void carry(void *unused)
{
    (void)unused;
    if (!os_in_flight_try())
        return;
    os_in_flight_begin();
    os_in_flight_end();
    os_in_flight_end();
}

static void fork_here(const greg_t *registers)
{
    (void)registers;
    if (steps++ != fork_at)
        return;
    child = fork();
    step_enough = true;
    if (child == 0)
        alarm(CHILD_PATIENCE);
}

static void carry_and_fork_at(unsigned step)
{
    fork_at = step;
    steps = 0;
    child = -1;
    if (stops)
        os_in_flight_stop();
    step_through(carry, NULL, fork_here);
    if (stops)
        os_in_flight_go_on();
}

/* Forks while nothing is held, so the fork takes everything. */
static int fork_again(void)
{
    pid_t grandchild = fork();

    if (grandchild == 0)
        _exit(0);
    return status_of(grandchild);
}

static void in_the_child(void)
{
    while (++chain < CHAIN) {
        carry_and_fork_at(fork_at);
        if (child == 0)
            continue; /* the next one of the chain */
        if (status_of(child))
            _exit(1);
        break;
    }
    carry(NULL);
    _exit(fork_again() ? 2 : 0);
}

static void fork_at_each_step(void)
{
    unsigned all;

    carry(NULL); /* takes the steps that come only once */
    carry_and_fork_at(UINT32_MAX);
    all = steps;
    assert_in_range(all, 10, 10000);
    for (unsigned step = 0; step < all; step++) {
        int status;

        carry_and_fork_at(step);
        if (child == 0)
            in_the_child();
        status = status_of(child);
        if (status)
            fail_msg("the child of a fork before instruction %u ended with %#x", step, status);
    }
    assert_int_equal(fork_again(), 0);
}

TEST(a_child_that_goes_on_can_fork)
{
    fork_at_each_step();
}

TEST(so_can_one_whose_thread_was_not_let_in)
{
    stops = true;
    fork_at_each_step();
}

SUITE()
