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

static void run_one(void)
{
    prudence_read_lock();
    run_update(update);
    prudence_read_unlock();
}

/* An object that the other thread had removed may still be linked, until this process removes one
 * after it. */
static void run_others(void)
{
    assert_true(lockfree_stats(table).removed <= 1);
    prudence_read_lock();
    assert_non_null(find(table, 0, 0));
    for (unsigned other = 0; other < UPDATES; other++)
        if (other != update)
            run_update(other);
    assert_non_null(find(table, 0, 10));
    prudence_read_unlock();
}

static void empty(const struct fork_path *path)
{
    struct prudence_lockfree_hash_walk walk;
    struct prudence_hash_node *node;

    prudence_read_lock();
    prudence_lockfree_hash_for_each(&walk, table, node)
        assert_int_equal(prudence_lockfree_hash_remove(table, node), 0);
    prudence_read_unlock();
    assert_int_equal(lockfree_stats(table).removed, 0);
    assert_int_equal(prudence_lockfree_hash_destroy(table, NULL, NULL), 0);
}

static void empty_whole(void)
{
    assert_int_equal(lockfree_stats(table).removed, 0);
    empty_and_destroy(table);
}

TEST(a_child_goes_on_whatever_others_were_doing)
{
    static const struct fork_path path = {"update of a chain", begin_chain, NULL, run_one, NULL,
                                          run_others,          empty_whole, 0};

    for (update = 0; update < UPDATES; update++)
        for (unsigned before = update % STRIDE; fork_path(&path, before, 0) > before;
             before += STRIDE) {
        }
}

BEFORE_CONSTRUCTORS(fork_at_step_start);

int main(void)
{
    prudence_option_set("rseq", "0"); /* steps would restart a sequence for ever */
    fork_path_uses = empty;
    return suite_run(NULL, NULL);
}
