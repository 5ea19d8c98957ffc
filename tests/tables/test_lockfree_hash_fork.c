/* SPDX-License-Identifier: MIT */
/*
 * Forks while another thread is at any instruction of an update of a table without locks. The
 * child, which lacks that thread, looks up, walks and makes every update of the same chain, and the
 * parent's thread continues.
 *
 * ctest: cost 10
 * ctest: needs steps
 */
#define _GNU_SOURCE
#include <limits.h>

#include "support/lockfree_updates.h"
#include "support/fork_at_step.h"

#define STRIDE 3 /* fork at every third instruction */

static unsigned update;

static void enter(void)
{
    prudence_read_lock();
    prudence_read_unlock();
}

static void body(void)
{
    prudence_read_lock();
    run_update(update);
    prudence_read_unlock();
}

/* Objects that the other thread had removed may still be linked, until this process removes one
 * after them. */
static int in_child(void *unused)
{
    struct prudence_lockfree_hash_walk walk;
    struct prudence_hash_node *node;

    setenv("CMOCKA_TEST_ABORT", "1", 1); /* an assertion ends this process */
    assert_true(lockfree_stats(table).removed <= 1);
    prudence_read_lock();
    assert_non_null(find(table, 0, 0));
    for (unsigned other = 0; other < UPDATES; other++)
        if (other != update)
            run_update(other);
    assert_non_null(find(table, 0, 10));
    prudence_lockfree_hash_for_each(&walk, table, node)
        assert_int_equal(prudence_lockfree_hash_remove(table, node), 0);
    prudence_read_unlock();
    assert_int_equal(lockfree_stats(table).removed, 0);
    assert_int_equal(prudence_lockfree_hash_destroy(table, NULL, NULL), 0);
    return 42;
}

static unsigned fork_at(unsigned before)
{
    struct child_result result;
    unsigned steps;

    begin_chain();
    steps = fork_at_step(enter, body, before, 0, in_child, NULL, NULL, &result);
    if (!child_exited_with(&result, 42))
        fail_msg("update %u, step %u: status %#x: %s", update, before, (unsigned)result.status,
                 result.output);
    assert_int_equal(lockfree_stats(table).removed, 0);
    empty_and_destroy(table);
    return steps;
}

TEST(a_child_goes_on_whatever_others_were_doing)
{
    for (update = 0; update < UPDATES; update++)
        for (unsigned before = update % STRIDE; fork_at(before) > before; before += STRIDE) {
        }
}

BEFORE_CONSTRUCTORS(fork_at_step_start);

int main(void)
{
    prudence_option_set("rseq", "0"); /* steps would restart a sequence for ever */
    return suite_run(NULL, NULL);
}
