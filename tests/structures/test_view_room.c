/* SPDX-License-Identifier: MIT */
/*
 * Whether a replaced array may be deferred depends on the pages that it takes, not on its words.
 * The two differ if the system's pages are larger than the array, so this runs with pages of 64
 * KiB.
 *
 * ctest: not-with thread (one thread)
 */
#include "structures/views.h"
#include "support/slab_test.h"

#include "support/gp_child.h"

#define ORDER 10 /* 8 KiB of words */

static void pages_are_asked_for(void **state)
{
    struct views views;
    struct views_left left;
    bool zeroed;

    assert_int_equal(os_page_size, 64 << 10);
    assert_true(views_make(&views, "test", NULL));
    left = views_leave(&views, views_new(&views, ORDER, &zeroed));
    assert_true(left.view != 0);
    assert_int_equal(prudence_option_set("latent_limit", "32K"), 0);
    assert_false(views_may_defer(&left));
    assert_int_equal(prudence_option_set("latent_limit", "64K"), 0);
    assert_true(views_may_defer(&left));
    views_free(&views, left.view);
    views_unmake(&views);
}

static void on_larger_pages(void **state)
{
    struct child_result result;

    child_again("larger", "page_size=64K", &result);
    if (!child_exited_with(&result, 0))
        print_error("%s\n", result.output);
    assert_true(child_exited_with(&result, 0));
}

int main(int count, char **arguments)
{
    const struct CMUnitTest larger[] = {cmocka_unit_test(pages_are_asked_for)};
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_larger_pages)};

    return count > 1 ? cmocka_run_group_tests(larger, NULL, NULL)
                     : cmocka_run_group_tests(tests, NULL, NULL);
}
