/* SPDX-License-Identifier: MIT */
/*
 * Each function of the malloc interface behaves as documented. Compiled twice: under the real names
 * with libprudence-malloc, and under a prefix, which sanitizers leave alone.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "preload/interface.h"
#include "support/gp_child.h"
#include "support/suite.h"

#define M(name) MALLOC_NAME(name)

/* Hide values from the compiler, which knows these functions and drops useless calls. */
static void *volatile sink;
static volatile size_t number;

static size_t secret(size_t value)
{
    number = value;
    return number;
}

static void *keep(void *object)
{
    sink = object;
    return sink;
}

static bool is_aligned(const void *object, size_t alignment)
{
    return (uintptr_t)object % alignment == 0;
}

TEST(malloc_gives_what_was_asked_for)
{
    for (size_t size = 0; size < 200000; size += 1 + size / 20) {
        char *object = keep(M(malloc)(size));

        assert_true(is_aligned(object, 16));
        assert_true(M(malloc_usable_size)(object) >= size);
        memset(object, 1, M(malloc_usable_size)(object));
        M(free)(object);
    }
    assert_int_equal(M(malloc_usable_size)(NULL), 0);
}

TEST(zero_bytes_are_a_unique_object)
{
    void *first = keep(M(malloc)(secret(0))), *second = keep(M(malloc)(secret(0)));
    void *third = keep(M(calloc)(secret(0), 8)), *fourth = keep(M(calloc)(8, secret(0)));
    void *fifth = keep(M(realloc)(NULL, secret(0)));

    assert_true(first && second && third && fourth && fifth);
    assert_true(first != second && third != fourth && fourth != fifth);
    M(free)(first);
    M(free)(second);
    M(free)(third);
    M(free)(fourth);
    M(free)(fifth);
}

TEST(calloc_gives_zeros_where_there_was_something)
{
    for (size_t size = 1; size < 100000; size += 1 + size / 5) {
        for (unsigned round = 0; round < 3; round++) {
            char *object = keep(M(calloc)(1, size));

            for (size_t i = 0; i < size; i++)
                assert_int_equal(object[i], 0);
            memset(object, 0xff, M(malloc_usable_size)(object));
            M(free)(object);
        }
    }
}

TEST(realloc_keeps_the_bytes)
{
    unsigned char *object = NULL;
    size_t old = 0;

    for (size_t size = 1; size < 300000; size += 1 + size / 3) {
        object = keep(M(realloc)(object, size));
        for (size_t i = 0; i < old; i++)
            assert_int_equal(object[i], i % 251);
        for (size_t i = old; i < size; i++)
            object[i] = (unsigned char)(i % 251);
        old = size;
    }
    for (size_t size = old; size; size /= 3) {
        object = keep(M(reallocarray)(object, size, 1));
        for (size_t i = 0; i < size; i++)
            assert_int_equal(object[i], i % 251);
    }
    M(free)(object);
}

TEST(realloc_to_nothing_frees)
{
    struct mallinfo2 before, after;

    before = M(mallinfo2)();
    for (unsigned i = 0; i < 1000; i++) {
        errno = 77;
        assert_null(keep(M(realloc)(keep(M(malloc)(500)), secret(0))));
        assert_null(keep(M(reallocarray)(keep(M(malloc)(500)), secret(0), 5)));
        assert_int_equal(errno, 77);
    }
    after = M(mallinfo2)();
    assert_int_equal(before.uordblks, after.uordblks);
}

TEST(free_keeps_errno)
{
    for (size_t size = 1; size < 10000000; size *= 3) {
        void *object = keep(M(malloc)(size));

        errno = 4711;
        M(free)(object);
        M(free)(NULL);
        M(cfree)(NULL);
        assert_int_equal(errno, 4711);
    }
}

static int free_locked_memory(void *unused)
{
    static void *blocks[5000];
    size_t count = 0;

    (void)unused;
    if (prudence_option_set("decay", "0") || prudence_option_set("retain", "0"))
        return 1;
    for (size_t size = 4096; size <= (size_t)16 << 20; size *= 64)
        for (size_t bytes = 0; bytes < (size_t)16 << 20; bytes += size)
            blocks[count++] = memset(keep(M(malloc)(size)), 1, size);
    if (mlockall(MCL_CURRENT | MCL_FUTURE))
        return 77;
    errno = 4711; /* only frees follow, so that one of them is the first that the kernel refuses */
    while (count > 0)
        M(free)(blocks[--count]);
    return errno == 4711 ? 0 : 2;
}

/* The kernel refuses to discard locked pages, and gives a reason. */
TEST(free_of_locked_memory_keeps_errno)
{
    struct child_result result;

    child_run(free_locked_memory, NULL, &result);
    if (child_exited_with(&result, 77))
        skip();
    assert_true(child_exited_with(&result, 0));
}

TEST(memalign_rounds_alignments_up)
{
    void *object = keep(M(memalign)(secret(100), 10));

    assert_true(is_aligned(object, 128));
    M(free)(object);
    object = keep(M(memalign)(secret(0), 10));
    assert_true(is_aligned(object, 16));
    M(free)(object);
}

TEST(pages)
{
    void *object = keep(M(valloc)(10));

    assert_true(is_aligned(object, 4096));
    M(free)(object);
    object = keep(M(pvalloc)(5000));
    assert_true(is_aligned(object, 4096));
    assert_true(M(malloc_usable_size)(object) >= 8192);
    M(free)(object);
    object = keep(M(pvalloc)(secret(0)));
    assert_non_null(object);
    M(free)(object);
}

TEST(sized_frees)
{
    for (size_t size = 0; size < 100000; size = size * 2 + 1) {
        M(free_sized)(keep(M(malloc)(size)), size);
        M(free_aligned_sized)(keep(M(aligned_alloc)(256, size)), 256, size);
        M(cfree)(keep(M(malloc)(size)));
    }
    M(free_sized)(NULL, 10);
    M(free_aligned_sized)(NULL, 16, 10);
}

/* ----------------------------------------------------------------------------------- misuse */

static int free_foreign(void *object)
{
    M(free)(object);
    return 0;
}

static int realloc_foreign(void *object)
{
    sink = M(realloc)(object, 0);
    return 0;
}

static int free_sized_wrongly(void *object)
{
    M(free_sized)(object, 5000);
    return 0;
}

static int free_aligned_wrongly(void *object)
{
    M(free_aligned_sized)(object, 3, 100);
    return 0;
}

static void assert_dies(int (*body)(void *), void *argument, const char *text)
{
    struct child_result result;

    assert_int_equal(prudence_option_set("harmless_misuse", "abort"), 0);
    child_run(body, argument, &result);
    if (!child_died(&result) || !child_said(&result, text))
        print_error("status %#x: %s\n", (unsigned)result.status, result.output);
    assert_true(child_died(&result) && child_said(&result, text));
}

TEST(misuse_is_reported_by_name)
{
    char *object = keep(M(malloc)(100));
    int local;

    assert_dies(free_foreign, &local, "free: foreign pointer");
    assert_dies(free_foreign, object + 16, "free: ");
    assert_dies(realloc_foreign, &local, "realloc: foreign pointer");
    assert_dies(free_sized_wrongly, object, "free_sized");
    assert_dies(free_aligned_wrongly, object, "free_aligned_sized");
    expect_survival(free_aligned_wrongly(NULL), ""); /* as C23 says */
    M(free)(object);
}

/* -------------------------------------------------------------------------------- information */

TEST(mallinfo_follows_what_happens)
{
    struct mallinfo2 before, with;
    struct mallinfo old;
    void *objects[100], *large;

    before = M(mallinfo2)();
    for (unsigned i = 0; i < 100; i++)
        objects[i] = keep(M(malloc)(1000));
    large = keep(M(malloc)(1 << 20));
    with = M(mallinfo2)();
    old = M(mallinfo)();
    assert_true(with.uordblks >= before.uordblks + 100 * 1000);
    assert_true(with.uordblks <= before.uordblks + 100 * 1200);
    assert_int_equal(with.hblks, before.hblks + 1);
    assert_true(with.hblkhd >= before.hblkhd + (1 << 20));
    assert_true(with.arena >= with.uordblks);
    assert_int_equal(with.arena, with.uordblks + with.fordblks);
    assert_int_equal(with.usmblks, 0);
    assert_int_equal(old.hblks, (int)with.hblks);
    assert_int_equal(old.uordblks, (int)with.uordblks);
    for (unsigned i = 0; i < 100; i++)
        M(free)(objects[i]);
    M(free)(large);
    with = M(mallinfo2)();
    assert_int_equal(with.uordblks, before.uordblks);
    assert_int_equal(with.hblks, before.hblks);
}

/* Returns the number after the text `before`. */
static uint64_t size_after(const char *text, const char *before)
{
    const char *at = strstr(text, before);

    assert_non_null(at);
    return strtoull(at + strlen(before), NULL, 10);
}

TEST(malloc_info_writes_xml)
{
    static char text[100000];
    FILE *file = fmemopen(text, sizeof text, "w");

    assert_int_equal(M(malloc_info)(0, file), 0);
    fclose(file);
    assert_ptr_equal(strstr(text, "<malloc version=\"1\">"), text);
    assert_non_null(strstr(text, "<heap nr=\"0\">"));
    assert_in_range(size_after(text, "<system type=\"current\" size=\""), 1,
                    size_after(text, "<system type=\"max\" size=\""));
    assert_non_null(strstr(text, "</malloc>\n"));
    errno = 0;
    assert_int_equal(M(malloc_info)(1, stdout), -1);
    assert_int_equal(errno, EINVAL);
}

static int print_stats(void *unused)
{
    (void)unused;
    M(malloc_stats)();
    return 0;
}

TEST(malloc_stats_go_to_standard_error)
{
    struct child_result result;

    child_run(print_stats, NULL, &result);
    assert_true(child_exited_with(&result, 0) && child_said(&result, "allocations"));
}

TEST(trim_tells_whether_it_gave_anything_back)
{
    void *objects[300];

    for (unsigned i = 0; i < 300; i++)
        objects[i] = keep(M(malloc)(30000));
    for (unsigned i = 0; i < 300; i++)
        M(free)(objects[i]);
    assert_int_equal(M(malloc_trim)(0), 1);
    M(malloc_trim)(0);
    assert_int_equal(M(malloc_trim)(0), 0);
}

TEST(mallopt_accepts_what_it_knows)
{
    assert_int_equal(M(mallopt)(M_MMAP_THRESHOLD, 1 << 20), 1);
    assert_int_equal(M(mallopt)(M_ARENA_MAX, 1), 1);
    assert_int_equal(M(mallopt)(M_TRIM_THRESHOLD, -1), 1);
    assert_int_equal(M(mallopt)(12345, 1), 0);
}

/* ----------------------------------------------------------------- with the rest of the library */

TEST(what_malloc_gave_can_be_deferred)
{
    struct prudence_cache *cache = prudence_cache_create("cache", 100, NULL);

    for (unsigned i = 0; i < 1000; i++) {
        prudence_free_deferred(keep(M(malloc)(i * 40)));
        prudence_free(keep(M(malloc)(i)));
        M(free)(prudence_malloc(i));
        M(free)(prudence_cache_alloc(cache));
        assert_true(prudence_usable_size(keep(M(calloc)(1, i))) >= i);
        prudence_free(sink);
    }
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

static int at_the_limit(void *unused)
{
    void *last = NULL, *refused;
    unsigned blocks = 0;

    (void)unused;
    if (prudence_option_set("limit", "20M"))
        return 1;
    for (void **block; (block = keep(M(malloc)(10000))); blocks++) {
        *block = last;
        last = block;
    }
    if (errno != ENOMEM || blocks < 1000 || blocks > 2500)
        return 2;
    errno = 0;
    if (keep(M(calloc)(1, 10000)) || errno != ENOMEM)
        return 3;
    if (M(posix_memalign)(&refused, 64, 10000) != ENOMEM)
        return 3;
    for (void *block; (block = last);) {
        last = *(void **)block;
        M(free)(block);
    }
    return keep(M(malloc)(10000)) ? 42 : 4;
}

TEST(the_limit_holds)
{
    assert_child(at_the_limit, NULL);
}

SUITE()
