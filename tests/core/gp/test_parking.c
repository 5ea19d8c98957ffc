/* SPDX-License-Identifier: MIT */
/*
 * Readers that stay outside are parked: scans skip them until they enter again. Between any two
 * instructions of an entry, a thread may be parked, and a signal handler may read.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <prudence/prudence.h>

#define READERS 40
#include "gp/user/parking.h"
#include "gp/user/readers.h"
#include "support/seen_calls.h"
#include "support/step.h"
#include "support/suite.h"
#include "support/told_readers.h"
#include "support/threads.h"

/* Runs during a membarrier, between the parker's marks and the second check. */
static void (*at_membarrier)(void);
static unsigned membarriers;

static void sees_call(long number, long *arguments)
{
    if (number != SYS_membarrier || arguments[0] != MEMBARRIER_CMD_PRIVATE_EXPEDITED)
        return;
    membarriers++;
    if (at_membarrier)
        at_membarrier();
}

/* -------------------------------------------------------------------------------------- parking */

static unsigned awake(void)
{
    struct reader_slot *slot;
    unsigned count = 0;

    for_each_awake(walk, slot, domain) count++;
    return count;
}

static bool is_awake(const struct reader_slot *wanted)
{
    struct reader_slot *slot;

    for_each_awake(walk, slot, domain) if (slot == wanted) return true;
    return false;
}

static void round_now(void)
{
    store_relaxed(&domain->park_after, (uint64_t)0);
    parking_after_scan(domain, 1u << 20);
}

/* Parks all. The first round spares readers that were recently awake. */
static void park_all(void)
{
    round_now();
    round_now();
}

static bool is_over_after(void (*then)(void))
{
    prudence_gp_t cookie = prudence_domain_start_poll(domain);

    then();
    return prudence_domain_poll_state(domain, cookie);
}

static void nothing(void)
{
}

static void each_kind(void (*test)(void))
{
    domain = &prudence_default;
    test();
    domain = prudence_domain_create("own", PRUDENCE_DOMAIN_MEMB, NULL);
    test();
    assert_int_equal(prudence_domain_destroy(domain), 0);
    domain = prudence_domain_create("qsbr", PRUDENCE_DOMAIN_QSBR, NULL);
    test();
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static void expect_parked_by_grace_periods(void)
{
    unsigned before;

    start_readers(READERS);
    before = awake();
    assert_true(before >= READERS);
    for (unsigned i = 0; i < 2000 && awake() > 0; i++)
        prudence_domain_synchronize(domain);
    assert_int_equal(awake(), 0);
    end_readers(READERS);
}

TEST(grace_periods_park_readers_that_stay_outside)
{
    each_kind(expect_parked_by_grace_periods);
}

static void expect_woken(void)
{
    start_readers(READERS);
    for (unsigned i = 0; i < READERS; i += 7) {
        park_all();
        assert_int_equal(awake(), 0);
        assert_true(is_over_after(nothing));
        tell(i, enter);
        assert_true(is_awake(readers[i].slot));
        assert_int_equal(awake(), 1);
        park_all(); /* the reader is inside */
        assert_true(is_awake(readers[i].slot));
        assert_false(is_over_after(nothing));
        tell(i, leave);
        assert_true(is_over_after(nothing));
    }
    end_readers(READERS);
}

TEST(a_parked_reader_holds_grace_periods_up_when_it_enters)
{
    each_kind(expect_woken);
}

TEST(few_readers_are_left_alone)
{
    domain = &prudence_default;
    start_readers(8);
    park_all();
    for (unsigned i = 0; i < 8; i++)
        tell(i, read_once);
    for (unsigned i = 0; i < 3000; i++)
        prudence_synchronize();
    assert_int_equal(awake(), 8);
    end_readers(8);
}

TEST(a_reader_that_was_just_woken_is_spared_once)
{
    domain = &prudence_default;
    start_readers(1);
    assert_true(is_awake(readers[0].slot));
    round_now();
    assert_true(is_awake(readers[0].slot));
    round_now();
    assert_false(is_awake(readers[0].slot));
    end_readers(1);
}

/* Runs between the marks and the second check. */
static void second_enters(void)
{
    tell(1, enter);
}

static void second_reads(void)
{
    tell(1, read_once);
}

static void second_leaves(void)
{
    tell(1, leave);
}

static void between(void (*what)(void))
{
    round_now();
    at_membarrier = what;
    round_now();
    at_membarrier = NULL;
}

TEST(a_reader_that_moves_meanwhile_is_not_parked)
{
    domain = &prudence_default;
    start_readers(2);
    park_all();
    tell(0, read_once);
    tell(1, read_once);
    between(second_enters); /* the word shows it */
    assert_true(is_awake(readers[1].slot));
    assert_false(is_awake(readers[0].slot));
    tell(0, read_once);
    between(second_leaves); /* it was not marked, so it could not know */
    assert_true(is_awake(readers[1].slot));
    assert_false(is_awake(readers[0].slot));
    tell(0, read_once);
    between(second_reads); /* it was marked, and has changed its bits */
    assert_true(is_awake(readers[1].slot));
    assert_false(is_awake(readers[0].slot));
    end_readers(2);
}

TEST(a_woken_reader_has_its_domains_mode)
{
    static const char *const modes[] = {"fenced", "free", "fenced", "free"};

    domain = &prudence_default;
    start_readers(2);
    tell(1, enter); /* awake throughout */
    for (unsigned i = 0; i < 4; i++) {
        int32_t expected = i % 2 ? 0 : PRUDENCE_ATTENTION_FENCE;

        park_all();
        assert_false(is_awake(readers[0].slot));
        assert_int_equal(prudence_option_set("reader_mode", modes[i]), 0);
        tell(0, read_once);
        assert_int_equal(load_relaxed(&readers[0].slot->reader.attention), expected);
        assert_int_equal(load_relaxed(&readers[1].slot->reader.attention), expected);
    }
    tell(1, leave);
    end_readers(2);
}

TEST(parking_fenced_readers_makes_a_membarrier)
{
    domain = &prudence_default;
    assert_int_equal(prudence_option_set("reader_mode", "fenced"), 0);
    start_readers(1);
    round_now();
    membarriers = 0;
    round_now();
    assert_int_equal(membarriers, 1);
    assert_false(is_awake(readers[0].slot));
    round_now(); /* no reader to park */
    assert_int_equal(membarriers, 1);
    end_readers(1);
    assert_int_equal(prudence_option_set("reader_mode", "free"), 0);
}

/* The child's copies of slot and summary may be from different moments. */
TEST(a_forked_child_is_seen)
{
    struct reader_slot *slot;
    pid_t child;

    domain = &prudence_default;
    read_once();
    slot = readers_slot_if_any(domain);
    park_all();
    assert_false(is_awake(slot));
    store_relaxed(&slot->reader.attention, 0); /* from before the thread was parked */
    child = fork();
    if (!child) {
        enter();
        _exit(is_awake(slot) && !is_over_after(nothing) ? 0 : 1);
    }
    assert_int_equal(status_of(child), 0);
    store_relaxed(&slot->reader.attention, PRUDENCE_ATTENTION_PARKED);
    read_once();
}

/* ------------------------------------------------------------------- instruction by instruction */

#if STEP_POSSIBLE

static unsigned steps, at, broken;
static bool reached, reads_too;

static void meddle(const greg_t *registers)
{
    if (steps++ != at)
        return;
    reached = true;
    park_all();
    if (!reads_too)
        return;
    enter();
    broken += !is_awake(readers_slot_if_any(domain)) || is_over_after(nothing);
    leave();
}

static void step_enter(void *unused)
{
    enter();
}

/* Begins parked if `parked`, is then parked before each instruction, and if `handler`, a handler
 * reads there. */
static void expect_awake_after_entry(bool parked, bool handler)
{
    struct reader_slot *slot;

    read_once();
    slot = readers_slot_if_any(domain);
    reads_too = handler;
    for (at = 0, reached = true; reached; at++) {
        steps = 0;
        reached = false;
        read_once();
        if (parked)
            park_all();
        step_through(step_enter, NULL, meddle);
        if (!is_awake(slot) || is_over_after(nothing))
            fail_msg("parked before instruction %u, and not awake", at);
        assert_int_equal(broken, 0);
        leave();
    }
    assert_true(at > 10);
}

static void step_entries(void)
{
    for (int i = 0; i < 4; i++)
        expect_awake_after_entry(i & 1, i & 2);
}

TEST(parked_before_any_instruction_of_an_entry)
{
    domain = &prudence_default;
    step_entries();
    domain = prudence_domain_create("stepped", PRUDENCE_DOMAIN_MEMB, NULL);
    step_entries();
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

#endif

int main(void)
{
    if (!os_membarrier_available()) {
        print_message("skipped: the system has no membarrier, so no thread is parked\n");
        return 77;
    }
    return suite_run(NULL, NULL);
}
