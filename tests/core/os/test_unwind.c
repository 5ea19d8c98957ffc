/* SPDX-License-Identifier: MIT */
/*
 * Unwinding by remembered rules must find the same frames as the compiler's unwinder, at any depth,
 * in every thread, before and after a rule is remembered, and with wrong rules, which remain when
 * other code replaces code. It must stop where it cannot go on. The test includes the source, to
 * make rules wrong.
 *
 * ctest: not-with sanitizers (their backtrace() has a frame of its own)
 */
#include "support/slab_test.h"
#include "support/threads.h"

#include <execinfo.h>
#include <signal.h>

#include "os/posix/unwind.c" /* NOLINT(bugprone-suspicious-include) */

#define MOST 64

static void *ours[MOST];
static unsigned our_count;

#if UNWIND_BY_RULES

static void *theirs[MOST], *from[MOST];
static unsigned their_count, from_count, wanted = MOST;
static volatile unsigned choice;

/* Captures the frames at two places, so those of this function and below differ. */
static __attribute__((noinline)) void capture(void)
{
    struct code_range none = {0, 0};

    from_count = unwind_from(__builtin_frame_address(0), none, from, wanted);
    our_count = unwind_here(ours, wanted);
    their_count = (unsigned)backtrace(theirs, (int)wanted);
    compiler_barrier();
}

static void assert_same(void)
{
    /* `ours` begins with unwind_here and capture, `theirs` with capture. */
    unsigned deep = their_count == wanted ? our_count - 2 : their_count - 1;

    assert_true(our_count >= 3);
    if (their_count < wanted)
        assert_int_equal(our_count - 2, deep);
    for (unsigned i = 0; i < deep; i++)
        if (ours[i + 2] != theirs[i + 1])
            fail_msg("frame %u: %p is not %p", i, ours[i + 2], theirs[i + 1]);
    /* `from` begins with the call of capture. */
    assert_in_range(from_count, their_count - 1, their_count == wanted ? wanted : their_count - 1);
    for (unsigned i = 0; i + 1 < their_count; i++)
        if (from[i] != theirs[i + 1])
            fail_msg("frame %u: %p is not %p", i, from[i], theirs[i + 1]);
}

/* Makes frames of several kinds: small, large, of variable size, and with all registers in use. */
static __attribute__((noinline)) unsigned down(unsigned depth, unsigned kinds);

static __attribute__((noinline)) unsigned down_large(unsigned depth, unsigned kinds)
{
    volatile char room[5000];

    room[depth] = (char)kinds;
    return down(depth, kinds) + (unsigned)room[depth];
}

static __attribute__((noinline)) unsigned down_varied(unsigned depth, unsigned kinds)
{
    volatile char *room = __builtin_alloca(16 + kinds % 977);

    room[kinds % 16] = (char)depth;
    return down(depth, kinds) + (unsigned)room[kinds % 16];
}

static __attribute__((noinline)) unsigned down_busy(unsigned depth, unsigned kinds)
{
    unsigned a = choice, b = choice, c = choice, d = choice, e = choice, f = choice, g = choice;
    unsigned sum = down(depth, kinds);

    return sum + a * b + c * d + e * f * g + choice;
}

static unsigned down(unsigned depth, unsigned kinds)
{
    if (!depth)
        return capture(), choice;
    switch (kinds % 3) {
    case 0:
        return down_large(depth - 1, kinds / 3) + 1;
    case 1:
        return down_varied(depth - 1, kinds / 3) + 1;
    default:
        return down_busy(depth - 1, kinds / 3) + 1;
    }
}

TEST(traces_are_the_same)
{
    for (unsigned n = 0; n < 2000; n++) {
        wanted = n % 5 ? MOST : 4 + n % 20;
        down(n % 17, n * 2654435761u);
        assert_same();
    }
    wanted = MOST;
}

static void *in_a_thread(void *ignored)
{
    traces_are_the_same(ignored);
    return NULL;
}

/* Each thread begins without a known stack. */
TEST(each_thread_has_its_stack)
{
    for (unsigned i = 0; i < 3; i++) {
        in_thread(in_a_thread, NULL);
    }
}

static void make_all_rules(uint64_t rule)
{
    for (unsigned i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i])
            rules[i] = rules[i] >> RULE_BITS << RULE_BITS | rule;
}

/* Wrong rules lead out of the stack, by either register. Rules from the tables replace them. */
TEST(wrong_rules_are_replaced)
{
    for (unsigned n = 0; n < 8; n++) {
        down(9, n * 2654435761u);
        make_all_rules(UINT64_C(0xffff) << 10 | (n % 2 ? RULE_FROM_RBP : 0));
        assert_int_equal(unwind_rule_at((uintptr_t)ours[2] - 1),
                         rule_from_tables((uintptr_t)ours[2]));
        down(9, n * 2654435761u);
        assert_same();
        assert_int_equal(remembered((uintptr_t)ours[2]), unwind_rule_at((uintptr_t)ours[2] - 1));
    }
}

/* Only the first frames are skipped, as long as they are in that code. The count excludes skipped
 * frames. */
static __attribute__((noinline)) void unwind_past(struct code_range skipped, unsigned count)
{
    their_count = (unsigned)backtrace(theirs, MOST);
    our_count = unwind_from(__builtin_frame_address(0), skipped, ours, count);
    compiler_barrier();
}

static __attribute__((noinline)) void call_unwind_past(struct code_range skipped, unsigned count)
{
    unwind_past(skipped, count);
    compiler_barrier();
}

TEST(frames_of_some_code_are_skipped)
{
    struct code_range code = {0, 0};

    call_unwind_past(code, MOST);
    assert_int_equal(our_count, their_count - 1);
    code.start = (uintptr_t)theirs[1];
    code.end = code.start + 1;
    call_unwind_past(code, MOST);
    assert_int_equal(our_count, their_count - 2);
    assert_ptr_equal(ours[0], theirs[2]);
    call_unwind_past(code, 2);
    assert_int_equal(our_count, 2);
    assert_ptr_equal(ours[1], theirs[3]);
    code.start = (uintptr_t)theirs[4];
    code.end = code.start + 1;
    call_unwind_past(code, MOST);
    assert_int_equal(our_count, their_count - 1);
    assert_ptr_equal(ours[3], theirs[4]);
}

/* Rules that stay inside the stack may lead anywhere there, but nothing else is read. */
TEST(wrong_rules_do_no_harm)
{
    for (uint64_t words = 1; words < 2000; words += words / 16 + 1) {
        down(9, (unsigned)words);
        make_all_rules(words << 10 | words % 64 << 2 | (words % 3 ? 0 : RULE_FROM_RBP));
        down(9, (unsigned)words);
        memset(rules, 0, sizeof rules);
        down(9, (unsigned)words);
        assert_same();
    }
}

TEST(what_is_no_code_has_no_rule)
{
    static char data[64];
    char *heap = prudence_malloc(64);

    assert_int_equal(unwind_rule_at((uintptr_t)data), 0);
    assert_int_equal(unwind_rule_at((uintptr_t)heap), 0);
    assert_int_equal(unwind_rule_at(0), 0);
    assert_int_equal(unwind_rule_at(UINTPTR_MAX), 0);
    prudence_free(heap);
}

/* Checks the rules of the last trace, frame by frame, whether remembered or read from the
 * tables. */
TEST(recent_rules_are_known)
{
    for (unsigned n = 0; n < 20; n++) {
        if (n == 10)
            memset(rules, 0, sizeof rules);
        down(n % 9, n * 2654435761u);
        for (unsigned i = 0; i + 1 < our_count && i < RECENT; i++)
            assert_ptr_equal(&rules[recent[i]], unwind_slot_of((uintptr_t)ours[i]));
    }
}

/* A place has one word, and is never mistaken for another place. */
TEST(rules_are_told_apart)
{
    uint64_t random = 1;

    memset(rules, 0, sizeof rules);
    for (unsigned n = 0; n < 100000; n++) {
        uintptr_t pc = (random = random * 6364136223846793005u + 1) >> 17,
                  other = pc ^ (1ul << n % 47);

        *unwind_slot_of(pc) = tag_of(pc) | 5u << 10;
        assert_int_equal(remembered(pc), 5u << 10);
        assert_int_equal(remembered(other), 0);
        assert_int_equal(remembered(pc | (uintptr_t)1 << 50), 0);
        *unwind_slot_of(pc) = 0;
    }
}

#endif

/* A signal's frame has no ordinary rule. */
static void in_handler(int number)
{
    our_count = unwind_here(ours, MOST);
}

TEST(behind_a_signal_it_ends)
{
    signal(SIGUSR1, in_handler);
    our_count = 1;
    raise(SIGUSR1);
    compiler_barrier();
    assert_int_equal(our_count, 0);
    signal(SIGUSR1, SIG_DFL);
}

SUITE()
