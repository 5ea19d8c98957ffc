/* SPDX-License-Identifier: MIT */
/* Caches that are watched for bugs have no window, because their inlined paths are closed.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/window_test.h"

TEST(no_window)
{
    struct prudence_cache *cache;
    void *object;

    assert_int_equal(prudence_option_set("check", "1"), 0);
    cache = prudence_cache_create("watched", 64, NULL);
    object = prudence_cache_alloc(cache); /* by inlined code, which asks for a window */
    assert_non_null(object);
    assert_null(cache->body->window);
    assert_true(is_of(cache, object) && !is_of(cache, (char *)object + 8));
    prudence_cache_free(cache, object);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

SUITE()
