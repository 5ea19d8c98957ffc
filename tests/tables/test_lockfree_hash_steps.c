/* SPDX-License-Identifier: MIT */
/*
 * Every update of the table without locks is stopped before each of its instructions, and another
 * update of the same chain runs there from beginning to end, as in a signal handler, or in another
 * thread while the first has been preempted. The second never waits, and the results and the final
 * chain of both match one order or the other. Readers look at each instruction, and are stopped at
 * each of theirs.
 *
 * ctest: cost 10
 * ctest: needs steps
 */
#define _GNU_SOURCE
#include "support/lockfree_updates.h"
#include "support/deep.h"
#include "support/step.h"

/* These cover all cases: at the bucket, in the middle, next to each other, and for one object. */
static const unsigned meeting[] = {1, 5, 6, 9, 10, 11};
#define MEETING (sizeof meeting / sizeof meeting[0])

/* Results of two updates, and the chain after them: objects' numbers, in their order. */
struct outcome {
    int first, second;
    int chain[CHAIN + 3], length;
};

static void note_chain(struct outcome *outcome)
{
    struct prudence_lockfree_hash_walk walk;
    struct prudence_hash_node *node;

    prudence_lockfree_hash_for_each(&walk, table, node) outcome->chain[outcome->length++] =
        (int)(item_of(node) - items);
}

static struct outcome one_after_the_other(unsigned first, unsigned second, bool swapped)
{
    struct outcome outcome = {.length = 0};

    begin_chain();
    if (swapped)
        outcome.second = run_update(second).result;
    outcome.first = run_update(first).result;
    if (!swapped)
        outcome.second = run_update(second).result;
    note_chain(&outcome);
    empty_and_destroy(table);
    return outcome;
}

/* --------------------------------------------------------------------------- updates in updates */

/* Returns whether the bucket leads to the object, removed or not. */
static bool is_linked(int number)
{
    uintptr_t link = *prudence_lockfree_hash_bucket_(table, prudence_hash_spread_(0));

    while (link && prudence_lockfree_hash_node_(link) != &items[number].node)
        link = prudence_lockfree_hash_node_(link)->next & ~PRUDENCE_LOCKFREE_HASH_REMOVED;
    return link;
}

static unsigned outer, inner, here, steps;
static struct update_result outer_result, inner_result;

static void run_inner(const greg_t *registers)
{
    if (steps++ != here)
        return;
    inner_result = run_update(inner);
    assert_false(inner_result.gone >= 0 && is_linked(inner_result.gone));
    step_enough = true;
}

static void run_outer(void *unused)
{
    outer_result = run_update(outer);
}

static bool run_at(struct outcome *outcome)
{
    begin_chain();
    steps = 0;
    step_through(run_outer, NULL, run_inner);
    if (steps > here) {
        assert_false(outer_result.gone >= 0 && is_linked(outer_result.gone));
        assert_int_equal(lockfree_stats(table).removed, 0);
        *outcome = (struct outcome){.first = outer_result.result, .second = inner_result.result};
        note_chain(outcome);
    }
    empty_and_destroy(table);
    return steps > here;
}

TEST(every_two_updates)
{
    const unsigned stride = deep_stride(5);

    for (outer = 0; outer < UPDATES; outer++) {
        for (unsigned i = 0; i < MEETING; i++) {
            struct outcome one, other, outcome;

            inner = meeting[i];
            if (inner == outer)
                continue;
            one = one_after_the_other(outer, inner, false);
            other = one_after_the_other(outer, inner, true);
            for (here = i % stride; memset(&outcome, 0, sizeof outcome), run_at(&outcome);
                 here += stride)
                if (memcmp(&outcome, &one, sizeof one) && memcmp(&outcome, &other, sizeof other))
                    fail_msg(
                        "update %u inside update %u, before its instruction %u: results %d and "
                        "%d, %d objects",
                        inner, outer, here, outcome.second, outcome.first, outcome.length);
            assert_true(here > 10);
        }
    }
}

/* --------------------------------------------------------------------------- readers in updates */

static void look_at_all(const greg_t *registers)
{
    struct prudence_lockfree_hash_walk walk;
    struct prudence_hash_node *node;
    unsigned seen[32] = {0};

    steps++;
    prudence_lockfree_hash_for_each(&walk, table, node) seen[item_of(node)->key]++;
    for (unsigned key = 0; key < CHAIN; key++) {
        bool stays = key == 0 || outer < 8 || key != outer - 7;

        if (!!find(table, 0, key) != !!seen[key] || seen[key] > 1 || (stays && !seen[key]))
            fail_msg("key %u is found by %u walks and %d lookups, update %u", key, seen[key],
                     find(table, 0, key) != NULL, outer);
    }
}

TEST(at_every_instruction_what_stays_is_found)
{
    for (outer = 0; outer < UPDATES; outer++) {
        begin_chain();
        steps = 0;
        step_through(run_outer, NULL, look_at_all);
        assert_true(steps > 10);
        empty_and_destroy(table);
    }
}

/* --------------------------------------------------------------------------- updates in readers */

static unsigned first_update;
static const struct item *found_item;

static void run_two(const greg_t *registers)
{
    if (steps++ != here)
        return;
    run_update(first_update);
    run_update(inner);
    step_enough = true;
}

static void look_for_key(void *key)
{
    found_item = find(table, 0, *(const uint64_t *)key);
}

/* Stops lookups of keys 0 and 2: the last of the chain, and one that these updates replace but
 * do not remove. */
static void stop_lookup(uint64_t key)
{
    const unsigned stride = deep_stride(5);

    for (here = (first_update + inner) % stride;; here += stride) {
        begin_chain();
        steps = 0;
        step_through(look_for_key, &key, run_two);
        if (!found_item || found_item->key != key)
            fail_msg("key %u is not found beside updates %u and %u", (unsigned)key, first_update,
                     inner);
        empty_and_destroy(table);
        if (steps <= here)
            break;
    }
}

TEST(a_lookup_may_be_stopped_anywhere)
{
    for (unsigned i = 0; i < MEETING * MEETING; i++) {
        first_update = meeting[i / MEETING];
        inner = meeting[i % MEETING];
        if (inner == first_update)
            continue;
        stop_lookup(0);
        if (first_update != 9 && inner != 9)
            stop_lookup(2);
    }
}

/* Steps would restart a sequence for ever. */
SUITE(prudence_option_set("rseq", "0"))
