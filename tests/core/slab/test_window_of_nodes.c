/* SPDX-License-Identifier: MIT */
/* With several NUMA nodes a cache has no window, and inlined code finds its objects by the page
 * map.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/window_test.h"

TEST(no_window)
{
    struct prudence_cache *cache = prudence_cache_create("of all nodes", 64, NULL);
    void *object;

    want_window(cache);
    object = prudence_cache_alloc(cache);
    assert_non_null(object);
    assert_null(cache->body->window);
    assert_true(is_of(cache, object) && !is_of(cache, (char *)object + 8));
    prudence_cache_free(cache, object);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

SUITE(inject_topology())
