/* SPDX-License-Identifier: MIT */
/*
 * liburcu-cds' self-resizing hash table, on our headers, in a forked child: its worker exists
 * there, whether or not the program calls the functions that liburcu wants called around a fork.
 *
 * ctest: needs liburcu
 * ctest: not-with address (liburcu-cds makes threads during forks; ASan's list stays locked)
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children, no exit with threads)
 */
#define _GNU_SOURCE

#include <pthread.h>
#include <stdlib.h>

#include <urcu.h>
#include <urcu/rculfhash.h>

#include <prudence/prudence.h>

#include "support/gp_child.h"
#include "support/suite.h"

#define FORKS 12 /* of each kind */
#define NODES 400

struct node {
    struct cds_lfht_node link;
    unsigned long key;
    struct node *next; /* removed */
};

static unsigned long hash(unsigned long key)
{
    key *= 0xff51afd7ed558ccdul;
    return key ^ key >> 33;
}

static void add(struct cds_lfht *table, unsigned long from, unsigned long to)
{
    for (; from < to; from++) {
        struct node *node = malloc(sizeof *node);

        cds_lfht_node_init(&node->link);
        node->key = from;
        rcu_read_lock();
        cds_lfht_add(table, hash(from), &node->link);
        rcu_read_unlock();
    }
}

static struct cds_lfht *table_make(void)
{
    struct cds_lfht *table =
        cds_lfht_new_flavor(1, 1, 0, CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING, &rcu_flavor, NULL);

    assert_non_null(table);
    add(table, 0, NODES);
    return table;
}

/* Destroys the table, which waits for the worker. */
static int table_destroy(struct cds_lfht *table)
{
    struct node *node, *removed = NULL;
    struct cds_lfht_iter at;

    rcu_read_lock();
    cds_lfht_for_each_entry(table, &at, node, link)
    {
        cds_lfht_del(table, &node->link);
        node->next = removed;
        removed = node;
    }
    rcu_read_unlock();
    synchronize_rcu();
    for (; removed; removed = node) {
        node = removed->next;
        free(removed);
    }
    return cds_lfht_destroy(table, NULL);
}

static int child_with_a_table(struct cds_lfht *table, unsigned long keys)
{
    add(table, keys, keys + NODES);
    if (table_destroy(table))
        return 1;
    return table_destroy(table_make()) ? 2 : 42;
}

static void fork_and_destroy(bool with_handlers)
{
    struct cds_lfht *table = table_make();

    for (unsigned i = 0; i < FORKS; i++) {
        pid_t child;
        int status;

        add(table, NODES * (i + 1), NODES * (i + 2)); /* the worker has something to do */
        if (with_handlers)
            call_rcu_before_fork();
        child = fork();
        if (child == 0) {
            alarm(CHILD_PATIENCE);
            if (with_handlers)
                call_rcu_after_fork_child();
            _exit(child_with_a_table(table, NODES * (i + 2)));
        }
        if (with_handlers)
            call_rcu_after_fork_parent();
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    }
    assert_int_equal(table_destroy(table), 0);
}

TEST(a_program_that_calls_the_handlers)
{
    fork_and_destroy(true);
}

TEST(a_program_that_calls_none)
{
    fork_and_destroy(false);
}

static void *fork_too(void *argument)
{
    fork_and_destroy(false);
    return NULL;
}

TEST(several_threads_fork_at_once)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, fork_too, NULL), 0);
    fork_and_destroy(true);
    pthread_join(thread, NULL);
}

/* However loaded the machine is. */
SUITE(prudence_option_set("wait_max", "20s"))
