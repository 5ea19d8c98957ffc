/* SPDX-License-Identifier: MIT */
/*
 * Whether a replaced array may be deferred depends on the pages that it takes, not on its words.
 * The two differ if the system's pages are larger than the array, so this runs with pages of 64
 * KiB.
 *
 * ctest: not-with thread (one thread)
 */
#include "tables/views.h"
#include "support/slab_test.h"

#include "support/gp_child.h"

#define ORDER 10 /* 8 KiB of words */

static void pages_are_asked_for(void **state)
{
    struct views views = {.small = NULL};
    struct views_left left;
    bool zeroed;

    assert_int_equal(os_page_size, 64 << 10);
    assert_true(views_make(&views, "test", NULL, NULL));
    left = views_leave(&views, views_new(&views, ORDER, &zeroed));
    assert_true(left.view != 0);
    assert_int_equal(prudence_option_set("latent_limit", "32K"), 0);
    assert_false(views_may_defer(&views, &left));
    assert_int_equal(prudence_option_set("latent_limit", "64K"), 0);
    assert_true(views_may_defer(&views, &left));
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

/* The first array is taken once, and again when it was freed or its readers have left. Meanwhile
 * others come from a cache, which is made then. */
static void first_array_is_used_again(void **state)
{
    static uintptr_t first[1 << VIEW_ORDER_SMALL] __attribute__((aligned(64)));
    struct views views = {.small = NULL};
    uintptr_t view, other;
    bool zeroed;

    assert_true(views_make(&views, "test", NULL, first));
    view = views_new(&views, VIEW_ORDER_SMALL, &zeroed);
    assert_ptr_equal(view_words(view), first);
    assert_false(zeroed);
    assert_int_equal(views_bytes(&views, view), 0);
    views_free(&views, view);
    assert_int_equal(views_new(&views, VIEW_ORDER_SMALL, &zeroed), view);
    assert_null(views.small);
    assert_true(views_may_defer(&views, &(struct views_left){.view = view}));
    prudence_read_lock();
    views_defer(&views, view);
    assert_int_equal(views_latent_bytes(&views), 0); /* it is the structure's own */
    other = views_new(&views, VIEW_ORDER_SMALL, &zeroed);
    assert_true(other && other != view);
    assert_non_null(views.small);
    assert_int_equal(views_bytes(&views, other), VIEW_FIRST_BYTES);
    views_free(&views, other);
    prudence_read_unlock();
    prudence_synchronize();
    assert_int_equal(views_new(&views, VIEW_ORDER_SMALL, &zeroed), view);
    views_unmake(&views);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest larger[] = {cmocka_unit_test(pages_are_asked_for)};
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_larger_pages),
                                       cmocka_unit_test(first_array_is_used_again)};

    return count > 1 ? cmocka_run_group_tests(larger, NULL, NULL)
                     : cmocka_run_group_tests(tests, NULL, NULL);
}
