/* SPDX-License-Identifier: MIT */
/*
 * Printed statistics: text and JSON name every figure, names are escaped, this library allocates
 * nothing for the output, and a stream's error is reported. test_stats_json.py reads the output
 * with a JSON parser. Programs compiled with other versions of the structures get the fields they
 * know.
 *
 * ctest: not-with thread (one thread)
 */
#include <prudence/scm.h>

#include "support/slab_test.h"

static char text[1 << 16];

static void print(enum prudence_stats_format format)
{
    FILE *file = fmemopen(text, sizeof text, "w");

    assert_int_equal(prudence_stats_print(file, format), 0);
    fclose(file);
}

static void expect(const char *part)
{
    if (!strstr(text, part))
        fail_msg("expected '%s' in: %s", part, text);
}

TEST(every_cache_stands_there)
{
    struct prudence_cache *cache = prudence_cache_create("odd \"name\"\\\n\xc3", 100, NULL);
    struct prudence_cache *unused = prudence_cache_create("never used", 100, NULL);
    void *objects[10];
    int depth = 0;

    allocate_all(cache, objects, 10);
    defer_all(cache, objects, 4);
    print(PRUDENCE_STATS_JSON);
    expect("\"odd \\\"name\\\"\\\\\\u000a\\ufffd\"");
    expect("\"objects_live\":6,");
    expect("\"deferred_frees\":4,");
    expect("\"allocations\":10,");
    assert_null(strstr(text, "never used"));
    for (const char *at = text; *at; at++) {
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        assert_true(depth >= 0);
    }
    assert_int_equal(depth, 0);
    assert_null(strstr(text, ",}"));
    assert_null(strstr(text, ",]"));
    print(PRUDENCE_STATS_TEXT);
    expect("objects_live");
    expect("total_fragmentation");
    free_all(cache, objects + 4, 6);
    destroy_empty(cache);
    assert_int_equal(prudence_cache_destroy(unused), 0);
}

TEST(bad_input_is_refused)
{
    FILE *full = fopen("/dev/full", "w");

    assert_int_equal(prudence_stats_print(NULL, PRUDENCE_STATS_TEXT), EINVAL);
    assert_int_equal(prudence_stats_print(stderr, (enum prudence_stats_format)7), EINVAL);
    setvbuf(full, NULL, _IONBF, 0);
    assert_int_not_equal(prudence_stats_print(full, PRUDENCE_STATS_JSON), 0);
    fclose(full);
}

/* A structure as a program compiled with an older or newer header knows it. */
union sized {
    struct prudence_stats total;
    struct prudence_cache_stats cache;
    struct prudence_domain_stats domain;
    struct prudence_reader_stats reader;
    struct scm_mem_info memory;
    struct scm_region_info regions;
    unsigned char bytes[1024];
};

static void expect_only(const union sized *given, const void *all, size_t known, size_t size)
{
    size_t common = size < known ? size : known;

    assert_memory_equal(given->bytes, all, common);
    for (size_t i = common; i < sizeof given->bytes; i++)
        assert_int_equal(given->bytes[i], i < size ? 0 : 0xaa);
}

/* Fills `given` as a program does that was compiled with `size` bytes of it, and `all` as this one
 * does. Returns the size of this one's structure. */
static size_t fill_of_first(unsigned which, union sized *all, union sized *given, size_t size)
{
    struct prudence_walk walks[2] = {PRUDENCE_WALK_INIT, PRUDENCE_WALK_INIT};

    switch (which) {
    case 0:
        assert_int_equal(prudence_next_cache(&walks[0], &all->cache), 0);
        assert_int_equal(prudence_next_cache_sized(&walks[1], &given->cache, size), 0);
        return sizeof all->cache;
    case 1:
        assert_int_equal(prudence_next_domain(&walks[0], &all->domain), 0);
        assert_int_equal(prudence_next_domain_sized(&walks[1], &given->domain, size), 0);
        return sizeof all->domain;
    case 2:
        assert_int_equal(prudence_next_reader(&walks[0], &all->reader), 0);
        assert_int_equal(prudence_next_reader_sized(&walks[1], &given->reader, size), 0);
        return sizeof all->reader;
    case 3:
        scm_get_mem_info(&all->memory);
        assert_int_equal(scm_get_mem_info_sized(&given->memory, size), 0);
        return sizeof all->memory;
    default:
        scm_get_region_info(&all->regions);
        assert_int_equal(scm_get_region_info_sized(&given->regions, size), 0);
        return sizeof all->regions;
    }
}

TEST(other_structures_of_other_versions_are_filled)
{
    union sized all, given;

    prudence_read_lock();
    prudence_read_unlock();
    scm_free(scm_malloc(100));
    for (unsigned which = 0; which < 5; which++)
        for (size_t size = 8; size <= sizeof given - 8; size += 8) {
            size_t known;

            memset(&all, 0, sizeof all);
            memset(&given, 0xaa, sizeof given);
            known = fill_of_first(which, &all, &given, size);
            expect_only(&given, &all, known, size);
        }
    assert_int_equal(scm_get_mem_info_sized(NULL, 8), EINVAL);
    assert_int_equal(scm_get_region_info_sized(NULL, 8), EINVAL);
}

TEST(structures_of_other_versions_are_filled)
{
    struct prudence_cache *cache = prudence_cache_create("sized", 100, NULL);
    union sized all, given;

    memset(&all, 0, sizeof all);
    for (size_t size = 8; size <= sizeof given - 8; size += 8) {
        assert_int_equal(prudence_cache_stats(cache, &all.cache), 0);
        memset(&given, 0xaa, sizeof given);
        assert_int_equal(prudence_cache_stats_sized(cache, &given.cache, size), 0);
        expect_only(&given, &all, sizeof all.cache, size);
        assert_int_equal(prudence_domain_stats(prudence_default_domain(), &all.domain), 0);
        memset(&given, 0xaa, sizeof given);
        assert_int_equal(
            prudence_domain_stats_sized(prudence_default_domain(), &given.domain, size), 0);
        expect_only(&given, &all, sizeof all.domain, size);
        assert_int_equal(prudence_stats(&all.total), 0);
        memset(&given, 0xaa, sizeof given);
        assert_int_equal(prudence_stats_sized(&given.total, size), 0);
        expect_only(&given, &all, sizeof all.total, size);
    }
    assert_int_equal(prudence_stats_sized(NULL, 8), EINVAL);
    assert_int_equal(prudence_cache_stats_sized(cache, NULL, 8), EINVAL);
    assert_int_equal(prudence_domain_stats_sized(NULL, &all.domain, 8), EINVAL);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

SUITE(pin_thread())
