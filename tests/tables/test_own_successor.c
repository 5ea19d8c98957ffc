/* SPDX-License-Identifier: MIT */
/*
 * To replace an element of a list by itself faults. Otherwise the caller would own the element, and
 * defer it, while readers find it in the list. (Tables refuse: test_contract.c.)
 *
 * ctest: not-with sanitizers (UBSan stops at the store to NULL before the process faults)
 */
#include <signal.h>

#include <prudence/rcuhlist.h>
#include <prudence/rculist.h>

#include "support/gp_child.h"
#include "support/suite.h"

static int replaces_an_element(void *unused)
{
    struct prudence_list head, element;

    (void)unused;
    prudence_list_init(&head);
    prudence_list_add_rcu(&element, &head);
    prudence_list_replace_rcu(&element, &element);
    return 0;
}

static int replaces_a_node(void *unused)
{
    struct prudence_hlist_head head = PRUDENCE_HLIST_HEAD_INIT;
    struct prudence_hlist_node node;

    (void)unused;
    prudence_hlist_add_head_rcu(&node, &head);
    prudence_hlist_replace_rcu(&node, &node);
    return 0;
}

static void faults(int (*body)(void *))
{
    struct child_result result;

    child_run(body, NULL, &result);
    assert_true(WIFSIGNALED(result.status));
    assert_int_equal(WTERMSIG(result.status), SIGSEGV);
}

TEST(lists)
{
    faults(replaces_an_element);
    faults(replaces_a_node);
}

SUITE()
