/* SPDX-License-Identifier: MIT */
/*
 * A walk over the heap gets past a slab of as many objects as a slab can have: of bytes, in pages
 * of 64 KiB. The program runs itself with such pages.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

#include <prudence/heap_walk.h>

#include "observe/walk.h"
#include "slab/cache.h"
#include "support/gp_child.h"

static int count(const struct prudence_heap_slab *slab, const struct prudence_heap_object *object,
                 void *objects)
{
    if (!object)
        assert_true(slab->objects <= WALK_OBJECTS);
    *(uint64_t *)objects += object && object->state == PRUDENCE_OBJECT_LIVE;
    return 0;
}

/* Returns the number of objects in a slab. */
static unsigned walk_over(size_t size)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .alignment = 1};
    struct prudence_cache *cache = prudence_cache_create("bytes", size, &attr);
    void *object = prudence_cache_alloc(cache);
    uint64_t shown = 0;
    unsigned capacity;
    FILE *file = fopen("/dev/null", "w");

    assert_non_null(object);
    capacity = slab_of(object)->capacity;
    assert_int_equal(prudence_heap_walk(cache, count, &shown), 0);
    assert_int_equal(shown, 1);
    assert_int_equal(prudence_heap_walk(NULL, count, &shown), 0);
    assert_int_equal(prudence_heap_print(cache, file, PRUDENCE_STATS_JSON), 0);
    fclose(file);
    prudence_cache_free(cache, object);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    return capacity;
}

static void slabs_of_all_capacities(void **state)
{
    assert_int_equal(os_page_size, 64 << 10);
    for (size_t size = 1; size <= 4; size++) /* sanitizers have red zones between the objects */
        assert_int_equal(walk_over(size), (64 << 10) / max_size(size + slab_redzone, 2));
}

static void on_pages_of_64_kib(void **state)
{
    expect_again(0, "walk", "page_size=64K", "");
}

int main(int arguments, char **words)
{
    const struct CMUnitTest larger[] = {cmocka_unit_test(slabs_of_all_capacities)};
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_pages_of_64_kib)};

    return arguments > 1 ? cmocka_run_group_tests(larger, NULL, NULL)
                         : cmocka_run_group_tests(tests, NULL, NULL);
}
