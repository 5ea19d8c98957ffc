/* SPDX-License-Identifier: MIT */
/*
 * Lists: order of head and tail insertion, removal (also twice), removal while walking.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

struct item {
    int value;
    struct list link;
};

static void expect_order(struct list *list, const char *order)
{
    struct list *at;
    char seen[16] = "";
    unsigned count = 0;

    list_for_each(at, list)
    {
        seen[count++] = (char)('0' + list_entry(at, struct item, link)->value);
        assert_ptr_equal(at->next->previous, at);
        assert_ptr_equal(at->previous->next, at);
    }
    assert_string_equal(seen, order);
}

TEST(items_stand_where_they_were_added)
{
    struct item items[4] = {{.value = 0}, {.value = 1}, {.value = 2}, {.value = 3}};
    struct list list;

    list_init(&list);
    assert_true(list_is_empty(&list));
    assert_null(list_first(&list, struct item, link));
    list_append(&list, &items[1].link);
    list_append(&list, &items[2].link);
    list_add_head(&list, &items[0].link);
    list_append(&list, &items[3].link);
    expect_order(&list, "0123");
    assert_ptr_equal(list_first(&list, struct item, link), &items[0]);
    assert_false(list_is_empty(&list));
}

TEST(removing_twice_does_no_harm)
{
    struct item items[3] = {{.value = 0}, {.value = 1}, {.value = 2}};
    struct list list;

    list_init(&list);
    for (unsigned i = 0; i < 3; i++)
        list_append(&list, &items[i].link);
    list_remove(&items[1].link);
    list_remove(&items[1].link);
    assert_true(list_is_empty(&items[1].link));
    expect_order(&list, "02");
    list_remove(&items[0].link);
    list_remove(&items[2].link);
    assert_true(list_is_empty(&list));
}

TEST(walking_safely_allows_removal)
{
    struct item items[5] = {{.value = 0}, {.value = 1}, {.value = 2}, {.value = 3}, {.value = 4}};
    struct list list, *at, *following;
    unsigned visits = 0;

    list_init(&list);
    for (unsigned i = 0; i < 5; i++)
        list_append(&list, &items[i].link);
    list_for_each_safe(at, following, &list)
    {
        if (visits++ % 2 == 0)
            list_remove(at);
    }
    assert_int_equal(visits, 5);
    expect_order(&list, "13");
}

SUITE()
