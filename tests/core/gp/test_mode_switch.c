/* SPDX-License-Identifier: MIT */
/*
 * The protocol of mode switches, instruction by instruction, with readers inside. Readers fence
 * wherever drivers skip the membarrier, and a membarrier separates the two. Covers every way to
 * switch a mode: the choice by rates, and both options.
 *
 * ctest: needs steps
 */
#define _GNU_SOURCE

#include <linux/membarrier.h>
#include <pthread.h>
#include <stdio.h>

#include <prudence/prudence.h>

#include "gp/user/domain.h"
#include "gp/user/mode.h"
#include "gp/user/parking.h"
#include "gp/user/readers.h"
#include "support/gp_reader.h"
#include "support/step.h"
#include "support/suite.h"

static struct prudence_domain *watched;
static unsigned steps, made, broken;
static bool fenced_then, skipping_then, membarrier_since, membarrier_next;

/* Runs before each instruction of a switch. */
static void watch(const greg_t *registers)
{
    bool fenced = load_relaxed(&watched->shared.fenced);
    bool skipping = load_relaxed(&watched->readers_fence_themselves);

    steps++;
    if (membarrier_next) {
        membarrier_since = true; /* the call has returned */
        made++;
    }
    membarrier_next = step_is_at_call(registers, SYS_membarrier) &&
                      registers[REG_RDI] == MEMBARRIER_CMD_PRIVATE_EXPEDITED;
    if (fenced != fenced_then)
        membarrier_since = false;
    if (skipping && !fenced)
        broken |= 1; /* drivers rely on fences that readers do not make */
    if (skipping && !skipping_then && !membarrier_since)
        broken |= 2; /* readers that had not seen the mode were not made to fence */
    fenced_then = fenced;
    skipping_then = skipping;
}

static void set_option(void *name_and_value)
{
    const char *const *text = name_and_value;

    if (prudence_option_set(text[0], text[1]))
        broken |= 4;
}

/* Chooses the mode as gp_drive does. */
static void choose(void *mode)
{
    store_relaxed(&gp_reader_mode, *(const enum reader_mode *)mode);
    store_relaxed(&watched->chosen_at, (uint64_t)0);
    mode_choose(watched);
}

static void expect_switch(void (*how)(void *argument), const void *argument, bool to_fenced)
{
    fenced_then = load_relaxed(&watched->shared.fenced);
    skipping_then = load_relaxed(&watched->readers_fence_themselves);
    assert_int_equal(fenced_then, !to_fenced);
    assert_int_equal(skipping_then, !to_fenced);
    steps = made = broken = 0;
    step_through(how, (void *)(uintptr_t)argument, watch);
    assert_true(steps > 20);
    assert_int_equal(broken, 0);
    assert_int_equal(load_relaxed(&watched->shared.fenced), to_fenced);
    assert_int_equal(load_relaxed(&watched->readers_fence_themselves), to_fenced);
    assert_true(made >= to_fenced);
}

static void expect_options_to_follow_the_protocol(void)
{
    static const char *const fenced[] = {"reader_mode", "fenced"}, *const free[] = {"reader_mode",
                                                                                    "free"};
    static const char *const without[] = {"membarrier", "0"}, *const with[] = {"membarrier", "1"};

    set_option((void *)(uintptr_t)free);
    expect_switch(set_option, fenced, true);
    expect_switch(set_option, free, false);
    expect_switch(set_option, without, true);
    expect_switch(set_option, with, false);
}

static void expect_choices_to_follow_the_protocol(void)
{
    static const enum reader_mode fenced = READER_MODE_FENCED, free = READER_MODE_FREE;

    expect_switch(choose, &fenced, true);
    expect_switch(choose, &free, false);
}

/* A section that began before the switches holds up grace periods that begin after them. */
static void expect_protected(struct held_reader *reader)
{
    prudence_gp_t cookie = prudence_domain_start_poll(watched);

    assert_false(prudence_domain_poll_state(watched, cookie));
    held_reader_end(reader);
    assert_true(prudence_domain_poll_state(watched, cookie));
}

TEST(of_the_default_domain)
{
    struct held_reader reader = {.domain = NULL};

    watched = &prudence_default;
    held_reader_start(&reader);
    expect_options_to_follow_the_protocol();
    expect_choices_to_follow_the_protocol();
    expect_protected(&reader);
}

TEST(of_every_other_domain)
{
    struct held_reader reader;

    watched = prudence_domain_create("other", PRUDENCE_DOMAIN_MEMB, NULL);
    reader = (struct held_reader){.domain = watched};
    held_reader_start(&reader);
    expect_options_to_follow_the_protocol();
    expect_choices_to_follow_the_protocol();
    expect_protected(&reader);
    assert_int_equal(prudence_domain_destroy(watched), 0);
}

/* One thread switches at a time, because two at once could undo each other's half. */
static void *set_fenced(void *unused)
{
    assert_int_equal(prudence_option_set("reader_mode", "fenced"), 0);
    return unused;
}

TEST(two_switches_wait_for_each_other)
{
    pthread_t setter;
    bool early;

    assert_int_equal(prudence_option_set("reader_mode", "free"), 0);
    store_relaxed(&prudence_default.choosing, 1u);
    pthread_create(&setter, NULL, set_fenced, NULL);
    pause_ms(30); /* time for a broken build to go wrong */
    early = load_relaxed(&prudence_default.shared.fenced);
    store_release(&prudence_default.choosing, 0u);
    pthread_join(setter, NULL);
    assert_false(early);
    assert_true(load_relaxed(&prudence_default.readers_fence_themselves));
}

/* ---------------------------------------------------------------------------- the reader's part */

static unsigned flip_at;
static bool flipped, published_then;

/* Sets the mode as a switch does, except for the word that drivers read. */
static void tell_mode(uint32_t fenced)
{
    store_relaxed(&watched->shared.fenced, fenced);
    parking_follow_mode(watched, fenced);
}

/* Switches to fenced before one of the instructions of an entry. Does everything that a switcher
 * does up to its membarrier, which fences this CPU here. */
static void flip(const greg_t *registers)
{
    if (steps++ != flip_at)
        return;
    flipped = true;
    published_then = load_relaxed(&readers_slot_if_any(watched)->reader.word) != 0;
    tell_mode(1);
}

static void enter_default(void *unused)
{
    prudence_read_lock();
}

static void enter_watched(void *unused)
{
    prudence_domain_read_lock(watched);
}

/* A reader whose word that membarrier does not publish must see the mode. */
static void expect_published_or_fenced(void (*enter)(void *unused))
{
    unsigned before = 0, after = 0;

    enter(NULL);
    prudence_domain_read_unlock(watched);
    for (flip_at = 0, flipped = true; flipped; flip_at++) {
        struct prudence_reader *reader = &readers_slot_if_any(watched)->reader;
        uint64_t entries = load_relaxed(&reader->entries);

        steps = 0;
        flipped = false;
        tell_mode(0);
        step_through(enter, NULL, flip);
        if (flipped && !published_then && load_relaxed(&reader->entries) == entries)
            fail_msg("missed: flipped before instruction %u, not published, not fenced", flip_at);
        before += flipped && !published_then;
        after += flipped && published_then;
        prudence_domain_read_unlock(watched);
    }
    tell_mode(0);
    print_message("flipped before %u instructions, behind publishing before %u\n", before, after);
    assert_true(before > 3 && after > 3);
}

TEST(readers_test_the_mode_after_publishing)
{
    assert_int_equal(prudence_option_set("reader_mode", "free"), 0);
    watched = &prudence_default;
    expect_published_or_fenced(enter_default);
    watched = prudence_domain_create("stepped", PRUDENCE_DOMAIN_MEMB, NULL);
    expect_published_or_fenced(enter_watched);
    assert_int_equal(prudence_domain_destroy(watched), 0);
}

int main(void)
{
    if (!os_membarrier_available()) {
        print_message("skipped: no membarrier, one mode\n");
        return 77;
    }
    return suite_run(NULL, NULL);
}
