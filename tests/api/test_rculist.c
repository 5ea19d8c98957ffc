/* SPDX-License-Identifier: MIT */
/* RCU lists: the order after every operation, and the elements that readers at a removed one
 * find.
 *
 * ctest: not-with thread (one thread)
 */

#include <string.h>

#include <prudence/rcuhlist.h>
#include <prudence/rculist.h>

#include "support/suite.h"

struct element {
    char name;
    struct prudence_list link;
    struct prudence_hlist_node node;
};

static struct element e['z' + 1];
static char walked[64];

static int set_up(void **state)
{
    memset(e, 0, sizeof e);
    for (int c = 'a'; c <= 'z'; c++)
        e[c].name = (char)c;
    return 0;
}

/* ----------------------------------------------------------------------------------------- list */

static const char *list_text(struct prudence_list *head)
{
    struct element *at;
    char *to = walked;

    prudence_list_for_each_entry_rcu(at, head, link) *to++ = at->name;
    *to = '\0';
    for (struct prudence_list *link = head->prev; link != head; link = link->prev)
        if (prudence_list_entry(link, struct element, link)->name != *--to)
            return "backwards it differs";
    return walked;
}

static unsigned synchronized;

static void synchronize(void)
{
    synchronized++;
}

TEST(list_add_and_remove, set_up)
{
    struct prudence_list head = PRUDENCE_LIST_INIT(head);

    assert_true(prudence_list_empty(&head));
    prudence_list_add_rcu(&e['b'].link, &head);
    prudence_list_add_rcu(&e['a'].link, &head);
    prudence_list_add_tail_rcu(&e['d'].link, &head);
    prudence_list_add_rcu(&e['c'].link, &e['b'].link);
    assert_string_equal(list_text(&head), "abcd");
    prudence_list_replace_rcu(&e['b'].link, &e['x'].link);
    assert_string_equal(list_text(&head), "axcd");
    assert_ptr_equal(prudence_list_next_rcu(&e['b'].link), &e['c'].link);
    prudence_list_del_rcu(&e['a'].link);
    prudence_list_del_rcu(&e['d'].link);
    assert_string_equal(list_text(&head), "xc");
    assert_ptr_equal(prudence_list_next_rcu(&e['a'].link), &e['x'].link);
    assert_ptr_equal(prudence_list_next_rcu(&e['d'].link), &head);
    assert_false(prudence_list_empty(&head));
}

TEST(list_walks, set_up)
{
    struct prudence_list head;
    struct element *at, *following;
    char seen[8] = "";

    prudence_list_init(&head);
    assert_null(prudence_list_first_or_null_rcu(&head, struct element, link));
    for (int c = 'a'; c <= 'e'; c++)
        prudence_list_add_tail_rcu(&e[c].link, &head);
    assert_ptr_equal(prudence_list_first_or_null_rcu(&head, struct element, link), &e['a']);
    assert_ptr_equal(prudence_list_next_or_null_rcu(&head, &e['a'].link, struct element, link),
                     &e['b']);
    assert_null(prudence_list_next_or_null_rcu(&head, &e['e'].link, struct element, link));
    at = &e['c'];
    prudence_list_for_each_entry_continue_rcu(at, &head, link) seen[strlen(seen)] = at->name;
    at = &e['c'];
    prudence_list_for_each_entry_from_rcu(at, &head, link) seen[strlen(seen)] = at->name;
    assert_string_equal(seen, "decde");
    prudence_list_for_each_entry_safe(at, following, &head, link) if (at->name != 'd')
        prudence_list_del_rcu(&at->link);
    assert_string_equal(list_text(&head), "d");
}

/* A walk by links, whose current element may be removed, as in the other walks. */
TEST(list_walks_by_links, set_up)
{
    struct prudence_list head = PRUDENCE_LIST_INIT(head), *link;
    char seen[8] = "";

    prudence_list_for_each_rcu(link, &head) fail();
    assert_ptr_equal(link, &head);
    for (int c = 'a'; c <= 'd'; c++)
        prudence_list_add_tail_rcu(&e[c].link, &head);
    prudence_list_for_each_rcu(link, &head)
    {
        seen[strlen(seen)] = prudence_list_entry(link, struct element, link)->name;
        if (link == &e['b'].link)
            prudence_list_del_rcu(link);
    }
    assert_string_equal(seen, "abcd");
    assert_ptr_equal(link, &head);
    memset(seen, 0, sizeof seen);
    link = &e['a'].link;
    prudence_list_for_each_continue_rcu(link, &head)
    {
        seen[strlen(seen)] = prudence_list_entry(link, struct element, link)->name;
    }
    assert_string_equal(seen, "cd");
}

TEST(list_splices, set_up)
{
    struct prudence_list head = PRUDENCE_LIST_INIT(head), other = PRUDENCE_LIST_INIT(other);

    prudence_list_splice_init_rcu(&other, &head, synchronize);
    assert_int_equal(synchronized, 0); /* nothing to wait for */
    for (int c = 'c'; c <= 'd'; c++)
        prudence_list_add_tail_rcu(&e[c].link, &head);
    for (int c = 'a'; c <= 'b'; c++)
        prudence_list_add_tail_rcu(&e[c].link, &other);
    prudence_list_splice_init_rcu(&other, &head, synchronize);
    assert_string_equal(list_text(&head), "abcd");
    assert_true(prudence_list_empty(&other));
    for (int c = 'e'; c <= 'f'; c++)
        prudence_list_add_tail_rcu(&e[c].link, &other);
    prudence_list_splice_tail_init_rcu(&other, &head, synchronize);
    assert_string_equal(list_text(&head), "abcdef");
    assert_int_equal(synchronized, 2);
}

/* ---------------------------------------------------------------------------------------- hlist */

static const char *hlist_text(struct prudence_hlist_head *head)
{
    struct prudence_hlist_node **pprev = &head->first;
    struct element *at;
    char *to = walked;

    prudence_hlist_for_each_entry_rcu(at, head, node)
    {
        if (at->node.pprev != pprev)
            return "a pprev is wrong";
        pprev = &at->node.next;
        *to++ = at->name;
    }
    *to = '\0';
    return walked;
}

TEST(hlist_add_and_remove, set_up)
{
    struct prudence_hlist_head head = PRUDENCE_HLIST_HEAD_INIT;

    assert_true(prudence_hlist_empty(&head));
    prudence_hlist_add_tail_rcu(&e['b'].node, &head);
    prudence_hlist_add_head_rcu(&e['a'].node, &head);
    prudence_hlist_add_tail_rcu(&e['e'].node, &head);
    prudence_hlist_add_before_rcu(&e['d'].node, &e['e'].node);
    prudence_hlist_add_behind_rcu(&e['c'].node, &e['b'].node);
    assert_string_equal(hlist_text(&head), "abcde");
    prudence_hlist_replace_rcu(&e['e'].node, &e['x'].node);
    prudence_hlist_replace_rcu(&e['a'].node, &e['y'].node);
    assert_string_equal(hlist_text(&head), "ybcdx");
    assert_ptr_equal(e['a'].node.next, &e['b'].node);
    prudence_hlist_del_rcu(&e['c'].node);
    assert_ptr_equal(e['c'].node.next, &e['d'].node);
    assert_true(prudence_hlist_unhashed(&e['c'].node));
    prudence_hlist_del_init_rcu(&e['y'].node);
    prudence_hlist_del_init_rcu(&e['y'].node);
    prudence_hlist_del_init_rcu(&e['x'].node);
    assert_string_equal(hlist_text(&head), "bd");
}

TEST(hlist_walks_and_swaps, set_up)
{
    struct prudence_hlist_head head, other;
    struct element *at;
    char seen[8] = "";

    prudence_hlist_init(&head);
    prudence_hlist_init(&other);
    for (int c = 'a'; c <= 'd'; c++)
        prudence_hlist_add_tail_rcu(&e[c].node, &head);
    at = &e['b'];
    prudence_hlist_for_each_entry_continue_rcu(at, node) seen[strlen(seen)] = at->name;
    assert_null(at);
    at = &e['c'];
    prudence_hlist_for_each_entry_from_rcu(at, node) seen[strlen(seen)] = at->name;
    assert_string_equal(seen, "cdcd");
    prudence_hlists_swap_heads_rcu(&head, &other);
    assert_string_equal(hlist_text(&head), "");
    assert_string_equal(hlist_text(&other), "abcd");
    prudence_hlist_add_head_rcu(&e['x'].node, &head);
    prudence_hlists_swap_heads_rcu(&head, &other);
    assert_string_equal(hlist_text(&head), "abcd");
    assert_string_equal(hlist_text(&other), "x");
}

SUITE()
