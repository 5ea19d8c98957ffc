/* SPDX-License-Identifier: MIT */
/*
 * Walks over caches, domains and readers (<prudence/stats.h>). An element present during the whole
 * walk is visited once, and a removed one does not end the walk. A reader's figures show whether it
 * is inside, and for how long it has blocked. Also the texts of printed figures.
 */
#define _GNU_SOURCE
#include "support/slab_test.h"

#include <time.h>

#include "gp/user/domain.h"
#include "observe/output.h"
#include "support/gp_reader.h"

#define CACHES 10

static bool is_numbered(const struct prudence_cache_stats *stats, unsigned *number)
{
    return sscanf(stats->name, "numbered %u", number) == 1;
}

TEST(caches_are_visited_once_while_others_go)
{
    struct prudence_walk walk = PRUDENCE_WALK_INIT;
    struct prudence_cache_stats stats;
    struct prudence_cache *caches[CACHES], *late;
    unsigned number, seen = 0;

    for (unsigned i = 0; i < CACHES; i++) {
        char name[32];

        snprintf(name, sizeof name, "numbered %u", i);
        caches[i] = prudence_cache_create(name, 100, NULL);
    }
    while (prudence_next_cache(&walk, &stats) == 0) {
        if (!is_numbered(&stats, &number))
            continue;
        assert_int_equal(number, seen); /* 0, 1, 2, 4, 5 and so on */
        seen += number == 2 ? 2 : 1;
        if (number == 2) { /* destroys the visited one, one before, and the next */
            for (unsigned i = 1; i <= 3; i++)
                assert_int_equal(prudence_cache_destroy(caches[i]), 0);
        }
    }
    assert_int_equal(seen, CACHES);
    assert_int_equal(prudence_next_cache(&walk, &stats), ENOENT);
    late = prudence_cache_create("late", 100, NULL);
    assert_int_equal(prudence_next_cache(&walk, &stats), 0);
    assert_string_equal(stats.name, "late");
    assert_int_equal(prudence_cache_destroy(late), 0);
    for (unsigned i = 0; i < CACHES; i++)
        if (i < 1 || i > 3)
            assert_int_equal(prudence_cache_destroy(caches[i]), 0);
}

TEST(domains_are_visited_once_while_others_go)
{
    struct prudence_walk walk = PRUDENCE_WALK_INIT;
    struct prudence_domain *first = prudence_domain_create("first", PRUDENCE_DOMAIN_MEMB, NULL);
    struct prudence_domain *second = prudence_domain_create("second", PRUDENCE_DOMAIN_QSBR, NULL);
    struct prudence_domain_stats stats;
    unsigned seen = 0;

    while (prudence_next_domain(&walk, &stats) == 0) {
        seen += strcmp(stats.name, "default") == 0;
        seen += 10 * (strcmp(stats.name, "first") == 0);
        if (strcmp(stats.name, "first") == 0)
            assert_int_equal(prudence_domain_destroy(first), 0);
        if (strcmp(stats.name, "second") == 0) {
            assert_string_equal(stats.kind, "qsbr");
            seen += 100;
        }
    }
    assert_int_equal(seen, 111);
    assert_int_equal(prudence_domain_destroy(second), 0);
}

/* -------------------------------------------------------------------------------------- readers */

#define READERS 300 /* more than fit into two chunks */

TEST(each_reader_is_visited_once)
{
    static struct held_reader readers[READERS];
    struct prudence_domain *domain = prudence_domain_create("crowd", PRUDENCE_DOMAIN_MEMB, NULL);
    struct prudence_walk walk = PRUDENCE_WALK_INIT;
    struct prudence_reader_stats stats;
    static unsigned seen[READERS];

    for (unsigned i = 0; i < READERS; i++) {
        readers[i].domain = domain;
        held_reader_start(&readers[i]);
    }
    while (prudence_next_reader(&walk, &stats) == 0)
        for (unsigned i = 0; i < READERS; i++)
            if (stats.thread == readers[i].tid && strcmp(stats.domain, "crowd") == 0) {
                assert_int_equal(stats.nesting, 1);
                seen[i]++;
            }
    for (unsigned i = 0; i < READERS; i++) {
        assert_int_equal(seen[i], 1);
        held_reader_end(&readers[i]);
    }
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* Returns this thread's reader of that domain, at its first place in a walk. */
static struct prudence_reader_stats me_in(const char *domain)
{
    struct prudence_walk walk = PRUDENCE_WALK_INIT;
    struct prudence_reader_stats stats;

    while (prudence_next_reader(&walk, &stats) == 0)
        if (stats.thread == gettid() && strcmp(stats.domain, domain) == 0)
            return stats;
    fail_msg("this thread is not there");
    return stats;
}

TEST(a_reader_is_told_as_it_is)
{
    struct prudence_domain *domain = prudence_domain_create("mine", PRUDENCE_DOMAIN_MEMB, NULL);
    struct prudence_domain_stats of_domain;
    struct prudence_reader_stats me;
    prudence_gp_t cookie;

    prudence_domain_read_lock(domain);
    prudence_domain_read_lock(domain);
    me = me_in("mine");
    assert_string_equal(me.thread_name, "observe_test_st");
    assert_int_equal(me.nesting, 2);
    assert_int_equal(me.inside_ns, 0); /* no thread waits */
    assert_int_equal(me.frame_count, 0);
    cookie = prudence_domain_start_poll(domain);
    assert_int_equal(prudence_domain_poll_state(domain, cookie), false);
    while (me_in("mine").inside_ns == 0)
        prudence_domain_poll_state(domain, cookie);
    me = me_in("mine");
    assert_true(me.grace_periods_begun > 0);
    assert_int_equal(prudence_domain_stats(domain, &of_domain), 0);
    assert_int_equal(of_domain.readers_inside, 1);
    assert_true(of_domain.longest_inside_ns >= me.inside_ns);
    prudence_domain_read_unlock(domain);
    prudence_domain_read_unlock(domain);
    me = me_in("mine");
    assert_int_equal(me.nesting, 0);
    assert_int_equal(me.inside_ns, 0);
    assert_int_equal(prudence_domain_stats(domain, &of_domain), 0);
    assert_int_equal(of_domain.readers_inside, 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* ---------------------------------------------------------------------------------- other input */

TEST(other_versions_and_bad_input)
{
    struct prudence_walk walk = PRUDENCE_WALK_INIT;
    union {
        struct prudence_reader_stats reader;
        unsigned char bytes[1024];
    } given;

    assert_int_equal(prudence_next_cache_sized(NULL, (void *)&given, 8), EINVAL);
    assert_int_equal(prudence_next_domain_sized(NULL, (void *)&given, 8), EINVAL);
    assert_int_equal(prudence_next_reader_sized(&walk, NULL, 8), EINVAL);
    prudence_read_lock();
    prudence_read_unlock();
    memset(&given, 0xaa, sizeof given);
    assert_int_equal(prudence_next_reader_sized(&walk, &given.reader, 16), 0);
    assert_int_equal(given.bytes[16], 0xaa);
    walk = (struct prudence_walk)PRUDENCE_WALK_INIT;
    assert_int_equal(prudence_next_reader_sized(&walk, &given.reader, sizeof given), 0);
    assert_int_equal(given.bytes[sizeof given - 1], 0);
}

/* ---------------------------------------------------------------------------------------- texts */

static const char *printed(void (*print)(struct output *, uint64_t), uint64_t value)
{
    static char text[64];
    struct output output = {.file = fmemopen(text, sizeof text, "w")};

    print(&output, value);
    fclose(output.file);
    return text;
}

TEST(figures_are_printed_in_their_units)
{
    assert_string_equal(printed(output_bytes, 0), "0 bytes");
    assert_string_equal(printed(output_bytes, 1023), "1023 bytes");
    assert_string_equal(printed(output_bytes, 1024), "1.0 KB");
    assert_string_equal(printed(output_bytes, 562036736), "536.0 MB");
    assert_string_equal(printed(output_bytes, UINT64_MAX), "17179869183.9 GB");
    assert_string_equal(printed(output_duration, 999), "999 ns");
    assert_string_equal(printed(output_duration, 1500), "1.5 us");
    assert_string_equal(printed(output_duration, 41299999999), "41.2 s");
}

/* libc's calendar gives the same results for each day of 130 years. */
TEST(times_are_printed_as_libc_does)
{
    for (uint64_t day = 0; day < 130 * 366; day++) {
        uint64_t seconds = day * 86400 + day % 86400;
        time_t time = (time_t)seconds;
        char wanted[64];
        struct tm tm;

        strftime(wanted, sizeof wanted, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&time, &tm));
        assert_string_equal(printed(output_time, seconds), wanted);
    }
}

SUITE()
