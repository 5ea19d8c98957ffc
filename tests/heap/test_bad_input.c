/* SPDX-License-Identifier: MIT */
/* Bad input that is no misuse: refused with the error that the header names, or ignored. */
#include "support/slab_test.h"

static void zero_bytes_are_a_unique_object(void **state)
{
    void *a = prudence_malloc(0), *b = prudence_malloc(0);

    (void)state;
    assert_non_null(a);
    assert_non_null(b);
    assert_ptr_not_equal(a, b);
    prudence_free(a);
    prudence_free_deferred(b);
}

static void null_is_ignored(void **state)
{
    struct prudence_cache *cache = fixed_cache(64, 16, NULL);

    (void)state;
    errno = 77;
    prudence_free(NULL);
    prudence_free_sized(NULL, 10);
    prudence_free_deferred(NULL);
    prudence_cache_free(cache, NULL);
    prudence_cache_free_deferred(cache, NULL);
    assert_int_equal(errno, 77);
    assert_int_equal(stats_of(cache).frees, 0);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

static void errno_is_kept_by_frees(void **state)
{
    static void *objects[3000];

    (void)state;
    for (unsigned i = 0; i < 3000; i++)
        objects[i] = prudence_malloc(200);
    errno = 77;
    for (unsigned i = 0; i < 3000; i++)
        (i % 2 ? prudence_free : prudence_free_deferred)(objects[i]);
    assert_int_equal(errno, 77);
}

static void expect_invalid(const char *name, size_t size, const struct prudence_cache_attr *attr)
{
    errno = 0;
    assert_null(prudence_cache_create(name, size, attr));
    assert_int_equal(errno, EINVAL);
}

static void caches_that_cannot_be(void **state)
{
    struct prudence_cache_attr attr = {.size = sizeof attr};

    (void)state;
    expect_invalid(NULL, 64, NULL);
    expect_invalid("", 64, NULL);
    expect_invalid("zero", 0, NULL);
    expect_invalid("large", 32769, NULL);
    expect_invalid("huge", SIZE_MAX, NULL);
    attr.alignment = 24;
    expect_invalid("alignment", 64, &attr);
    attr.alignment = 8192;
    expect_invalid("alignment", 64, &attr);
    attr.alignment = 0;
    attr.flags = 2;
    expect_invalid("flags", 64, &attr);
    attr.flags = 0;
    attr.reserved = 1;
    expect_invalid("reserved", 64, &attr);
    attr.reserved = 0;
    attr.size = 0;
    expect_invalid("size", 64, &attr);
}

static void names_are_copied(void **state)
{
    char name[] = "a name of more than thirty-one bytes, all told";
    struct prudence_cache *cache = prudence_cache_create(name, 64, NULL);

    (void)state;
    memset(name, 'x', sizeof name - 1);
    assert_string_equal(stats_of(cache).name, "a name of more than thirty-one ");
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

static void no_memory_for_a_cache(void **state)
{
    (void)state;
    for (unsigned call = 0; call < 3; call++) {
        memory_fail(call, 1);
        errno = 0;
        assert_null(prudence_cache_create("none", 64, NULL));
        assert_int_equal(errno, ENOMEM);
    }
    memory_succeed();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_bytes_are_a_unique_object),
        cmocka_unit_test(null_is_ignored),
        cmocka_unit_test(errno_is_kept_by_frees),
        cmocka_unit_test(caches_that_cannot_be),
        cmocka_unit_test(names_are_copied),
        cmocka_unit_test(no_memory_for_a_cache),
    };

    pin_thread();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
