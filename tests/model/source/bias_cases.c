/* SPDX-License-Identifier: MIT */
/*
 * Cases of numbers that threads hold (os/posix/bias.c): the holder steps in and out, without a
 * fence, while threads claim its line, take its number away, or want all lines.
 */
#include "explorer.h"
#include "bias.h"
#include "os/os.h"
#include "posix.h"

static struct os_percpu_line *lines;
static unsigned owners;
static bool two_owners;
static unsigned value; /* plain, so the explorer also checks the order of owners */

static void start(void)
{
    posix_membarrier_start(true);
    posix_percpu_start(false);
    bias_start(true);
    lines = explore_alloc_aligned(2 * OS_PERCPU_STRIDE, OS_PERCPU_STRIDE);
    os_percpu_line_init(lines, 0);
    os_percpu_line_init((void *)((char *)lines + OS_PERCPU_STRIDE), 1);
    owners = value = 0;
    two_owners = false;
}

static void own(void)
{
    two_owners |= load_relaxed(&owners) != 0;
    store_relaxed(&owners, 1u);
    value++;
    two_owners |= load_relaxed(&owners) != 1;
    store_relaxed(&owners, 0u);
}

static void one_at_a_time(void)
{
    explore_assert(!two_owners);
}

static void steps_in(void *unused)
{
    (void)unused;
    bias_take(0, true);
    if (!os_percpu_step_in(lines))
        return;
    own();
    os_percpu_step_out();
    explore_note();
}

static void claims(void *unused)
{
    char token;

    (void)unused;
    if (!os_percpu_take_remote(lines, &token))
        return;
    own();
    os_percpu_release(lines);
}

/* Finds the number held or shared, and shares it with the holder before. */
static void shares(void *unused)
{
    char token;

    (void)unused;
    bias_take(0, false);
    if (!os_percpu_claim(lines, &token))
        return;
    if (bias_is_out(lines, false))
        own();
    os_percpu_release(lines);
}

/* As fork and destruction do. */
static void wants_all(void *unused)
{
    char token;

    (void)unused;
    if (!os_percpu_claim(lines, &token))
        return;
    if (os_percpu_fence_all() && os_percpu_confirm(lines, &token))
        own();
    os_percpu_unclaim(lines, &token);
}

CASE_THEN("held-during-a-claim", held_during_a_claim, one_at_a_time, 3, 5)
{
    start();
    explore_thread_on(0, steps_in, NULL);
    explore_thread_on(1, claims, NULL);
}

CASE_THEN("held-with-one-that-shares", held_with_one_that_shares, one_at_a_time, 3, 4)
{
    start();
    explore_thread_on(0, steps_in, NULL);
    explore_thread_on(1, shares, NULL);
}

CASE_THEN("held-by-two", held_by_two, one_at_a_time, 2, 4)
{
    start();
    explore_thread_on(0, steps_in, NULL);
    explore_thread_on(1, steps_in, NULL);
}

CASE_THEN("held-shared-and-claimed", held_shared_and_claimed, one_at_a_time, 1, 3)
{
    start();
    explore_thread_on(0, steps_in, NULL);
    explore_thread_on(1, shares, NULL);
    explore_thread_on(2, shares, NULL);
}

CASE_THEN("held-shared-and-held-by-another", held_shared_and_held_by_another, one_at_a_time, 2, 3)
{
    start();
    explore_thread_on(0, steps_in, NULL);
    explore_thread_on(1, shares, NULL);
    explore_thread_on(1, steps_in, NULL);
}

CASE_THEN("held-with-one-that-wants-all", held_with_one_that_wants_all, one_at_a_time, 3, 4)
{
    start();
    explore_thread_on(0, steps_in, NULL);
    explore_thread_on(1, wants_all, NULL);
}
