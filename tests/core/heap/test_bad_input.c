/* SPDX-License-Identifier: MIT */
/*
 * Bad input that is no misuse is refused with the error that the header names, or ignored.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

#include "support/gp_child.h"

TEST(zero_bytes_are_a_unique_object)
{
    void *a = prudence_malloc(0), *b = prudence_malloc(0);

    assert_non_null(a);
    assert_non_null(b);
    assert_ptr_not_equal(a, b);
    prudence_free(a);
    prudence_free_deferred(b);
}

TEST(null_is_ignored)
{
    struct prudence_cache *cache = fixed_cache(64, 16, NULL);

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

TEST(errno_is_kept_by_frees)
{
    static void *objects[3000];

    for (unsigned i = 0; i < 3000; i++)
        objects[i] = prudence_malloc(200);
    errno = 77;
    for (unsigned i = 0; i < 3000; i++)
        (i % 2 ? prudence_free : prudence_free_deferred)(objects[i]);
    assert_int_equal(errno, 77);
}

struct bad_cache {
    const char *name;
    size_t size;
    const struct prudence_cache_attr *attr;
};

static int make_cache(void *bad_)
{
    const struct bad_cache *bad = bad_;

    errno = 0;
    return !prudence_cache_create(bad->name, bad->size, bad->attr) && errno == EINVAL ? 42 : 1;
}

/* Checks that the cache is refused, with a message that names the cause. */
static void expect_invalid(const char *name, size_t size, const struct prudence_cache_attr *attr,
                           const char *says)
{
    struct bad_cache bad = {name, size, attr};

    expect_exit(42, make_cache(&bad), "");
    if (!said(says) || said("prudence: ") != 1)
        fail_msg("expected '%s', not: %s", says, last_child.output);
}

TEST(caches_that_cannot_be)
{
    struct prudence_cache_attr attr = {.size = sizeof attr};

    expect_invalid(NULL, 64, NULL, "the name is NULL");
    expect_invalid("", 64, NULL, "the name is empty");
    expect_invalid("zero", 0, NULL, "'zero': the object size is 0");
    expect_invalid("large", 131073, NULL, "'large': the object size is 131073");
    expect_invalid("huge", SIZE_MAX, NULL, "'huge': the object size is 18446744073709551615");
    attr.alignment = 24;
    expect_invalid("odd", 64, &attr, "'odd': attr->alignment is 24");
    attr.alignment = 8192;
    expect_invalid("wide", 64, &attr, "'wide': attr->alignment is 8192");
    attr.alignment = 0;
    attr.flags = PRUDENCE_CACHE_DESTRUCT_SOON;
    expect_invalid("soon", 64, &attr, "'soon': PRUDENCE_CACHE_DESTRUCT_SOON needs a destructor");
    attr.flags = 4;
    expect_invalid("flags", 64, &attr, "'flags': attr->flags has unknown bits (0x4)");
    attr.flags = 0;
    attr.reserved = 1;
    expect_invalid("reserved", 64, &attr, "'reserved': attr->reserved is 1");
    attr.reserved = 0;
    attr.size = 0;
    expect_invalid("size", 64, &attr, "'size': attr->size is 0");
}

static void never(void *object, void *context)
{
    (void)object, (void)context;
    abort();
}

/* A program that was compiled with older headers is served, and so is one with newer headers that
 * asks for nothing that this library does not know. */
TEST(attributes_of_other_versions)
{
    struct prudence_cache_attr older = {.size = offsetof(struct prudence_cache_attr, destructor),
                                        .alignment = 64,
                                        .destructor = never};
    struct {
        struct prudence_cache_attr attr;
        unsigned char more[16];
    } newer = {.attr = {.size = sizeof newer, .alignment = 64}};
    const struct prudence_cache_attr *served[] = {&older, &newer.attr};

    for (unsigned i = 0; i < 2; i++) {
        struct prudence_cache *cache = prudence_cache_create("served", 40, served[i]);

        assert_non_null(cache);
        assert_int_equal(stats_of(cache).object_stride, 64);
        prudence_cache_free(cache, prudence_cache_alloc(cache));
        assert_int_equal(prudence_cache_destroy(cache), 0);
    }
    newer.more[9] = 1;
    expect_invalid("newer", 64, &newer.attr,
                   "'newer': byte 73 of struct prudence_cache_attr is not 0, and this library "
                   "knows only the first 64 bytes");
}

/* A truncated name ends with a whole UTF-8 character. */
TEST(names_are_cut_between_characters)
{
    const char *name = "thirty bytes and one character\xe2\x82\xac"; /* 30 bytes, and 3 */
    struct prudence_cache *cache = prudence_cache_create(name, 64, NULL);

    assert_string_equal(stats_of(cache).name, "thirty bytes and one character");
    assert_int_equal(prudence_cache_destroy(cache), 0);
    cache = prudence_cache_create(name + 2, 64, NULL);
    assert_string_equal(stats_of(cache).name, name + 2);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

TEST(names_are_copied)
{
    char name[] = "a name of more than thirty-one bytes, all told";
    struct prudence_cache *cache = prudence_cache_create(name, 64, NULL);

    memset(name, 'x', sizeof name - 1);
    assert_string_equal(stats_of(cache).name, "a name of more than thirty-one ");
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

TEST(no_memory_for_a_cache)
{
    for (unsigned call = 0; call < 3; call++) {
        memory_fail(call, 1);
        errno = 0;
        assert_null(prudence_cache_create("none", 64, NULL));
        assert_int_equal(errno, ENOMEM);
    }
    memory_succeed();
}

SUITE(pin_thread())
