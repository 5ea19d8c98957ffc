/* SPDX-License-Identifier: MIT */
/*
 * Memory pressure of a control group. Near the group's limits, when its events increase, and when
 * its tasks wait for memory, caches are emptied when the page source asks for memory; at most every
 * 10 ms, and more and more rarely while memory stays short. Without a group's figures, the stalls
 * of the machine count. Without such files nothing happens. The group is a folder of the test, and
 * the machine a file in it.
 *
 * ctest: not-with thread (one thread)
 */
#include <sys/stat.h>
#include <unistd.h>

#include "posix.h"
#include "support/slab_test.h"

#define MIB ((uint64_t)1 << 20)
#define MS  UINT64_C(1000000)

static char folder[] = "/tmp/prudence-group-XXXXXX";
static char slashed[sizeof folder + 1], machine[sizeof folder + 10];
static uint64_t now;

static uint64_t our_clock(void)
{
    return now;
}

static void set(const char *name, const char *text)
{
    char path[100];
    FILE *file;

    snprintf(path, sizeof path, "%s%s", slashed, name);
    if (!text) {
        unlink(path);
        return;
    }
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void set_bytes(const char *name, uint64_t bytes)
{
    char text[32];

    snprintf(text, sizeof text, "%llu\n", (unsigned long long)bytes);
    set(name, text);
}

static bool is_short_after(uint64_t nanoseconds, uint64_t more)
{
    now += nanoseconds;
    posix_pressure_check(more);
    return os_memory_is_short();
}

static int begin(void **state)
{
    set_bytes("memory.current", 100 * MIB);
    set("memory.high", "max\n");
    set("memory.max", "max\n");
    set("memory.events", "low 0\nhigh 3\nmax 0\noom 0\noom_kill 0\n");
    set("memory.pressure", NULL);
    set("machine", NULL);
    posix_pressure_inject(slashed, machine);
    assert_false(is_short_after(1000 * MS, 0)); /* ignores earlier events */
    return 0;
}

TEST(no_files, begin)
{
    posix_pressure_inject("/nowhere/", "/nowhere/memory");
    for (unsigned i = 0; i < 10; i++)
        assert_false(is_short_after(2000 * MS, 1 << 30));
}

TEST(odd_files, begin)
{
    set("memory.high", "gibberish");
    set("memory.max", "");
    set("memory.events", "\n\nhigh");
    set("memory.current", NULL);
    assert_false(is_short_after(20 * MS, 1 << 30));
    set_bytes("memory.high", MIB);
    assert_false(is_short_after(20 * MS, 1 << 30));
}

TEST(far_from_any_limit, begin)
{
    assert_false(is_short_after(20 * MS, 1 << 30));
    set_bytes("memory.high", 1000 * MIB);
    set_bytes("memory.max", 2000 * MIB);
    assert_false(is_short_after(20 * MS, 4 << 20));
}

TEST(near_high, begin)
{
    set_bytes("memory.high", 160 * MIB);
    assert_false(is_short_after(20 * MS, 49 * MIB));
    assert_true(is_short_after(20 * MS, 51 * MIB)); /* less than a sixteenth would remain */
    assert_false(os_memory_is_short());             /* reported once */
}

TEST(near_max, begin)
{
    set_bytes("memory.high", 1000 * MIB);
    set_bytes("memory.max", 101 * MIB);
    assert_true(is_short_after(20 * MS, 0));
}

TEST(events, begin)
{
    set("memory.events", "low 9\nhigh 4\nmax 0\noom 0\noom_kill 0\n");
    assert_true(is_short_after(20 * MS, 0));
    assert_false(is_short_after(1000 * MS, 0));
    set("memory.events", "low 9\nhigh 4\nmax 1\noom 0\noom_kill 0\n");
    assert_true(is_short_after(20 * MS, 0));
}

static void set_stall(const char *name, unsigned some_us, unsigned full_us)
{
    char text[200];

    snprintf(text, sizeof text,
             "some avg10=99.00 avg60=99.00 avg300=99.00 total=%u\n"
             "full avg10=99.00 avg60=99.00 avg300=99.00 total=%u\n",
             some_us, full_us);
    set(name, text);
}

/* Stalls count from a tenth of the time since the last check. Averages do not count, because they
 * cover old times. */
TEST(stalls_of_the_group, begin)
{
    set_stall("memory.pressure", 5000000, 1000000);
    assert_false(is_short_after(200 * MS, 0)); /* earlier stalls */
    assert_false(is_short_after(200 * MS, 0));
    set_stall("memory.pressure", 5009000, 1000000);
    assert_false(is_short_after(100 * MS, 0)); /* 9 of 100 ms */
    set_stall("memory.pressure", 5019000, 1000000);
    assert_false(is_short_after(20 * MS, 0)); /* too early */
    assert_true(is_short_after(80 * MS, 0));
    assert_false(is_short_after(200 * MS, 0));
    set_stall("memory.pressure", 5019000, 9000000); /* "some" counts */
    assert_false(is_short_after(200 * MS, 0));
    set("memory.pressure", NULL);
    assert_false(is_short_after(200 * MS, 0));
    set_stall("memory.pressure", 9000000, 9000000); /* not known to be new */
    assert_false(is_short_after(200 * MS, 0));
    set_stall("memory.pressure", 1000000, 1000000); /* of another group */
    assert_false(is_short_after(200 * MS, 0));
}

/* Checks may be rare, so a tenth of a second is enough. */
TEST(stalls_since_long, begin)
{
    set_stall("memory.pressure", 1000, 0);
    assert_false(is_short_after(200 * MS, 0));
    set_stall("memory.pressure", 91000, 0);
    assert_false(is_short_after(60000 * MS, 0));
    set_stall("memory.pressure", 191000, 0);
    assert_true(is_short_after(60000 * MS, 0));
}

TEST(stalls_of_the_machine, begin)
{
    posix_pressure_inject("/nowhere/", machine);
    set_stall("machine", 100, 100);
    assert_false(is_short_after(200 * MS, 0));
    set_stall("machine", 900000, 10000); /* only "full" counts on the machine */
    assert_false(is_short_after(200 * MS, 0));
    set_stall("machine", 900000, 40000);
    assert_true(is_short_after(200 * MS, 0));
    posix_pressure_inject(slashed, machine); /* a group without the file */
    assert_false(is_short_after(200 * MS, 0));
    set_stall("machine", 900000, 80000);
    assert_true(is_short_after(200 * MS, 0));
}

TEST(odd_stalls, begin)
{
    static const char *const texts[] = {"",        "some",          "some \n",     "some total",
                                        "total=9", "some total=\n", "some total=x"};

    set_stall("memory.pressure", 0, 0);
    assert_false(is_short_after(200 * MS, 0));
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        set("memory.pressure", texts[i]);
        assert_false(is_short_after(200 * MS, 0));
    }
}

TEST(ever_more_rarely, begin)
{
    unsigned times = 0;

    set_bytes("memory.max", 101 * MIB);
    for (unsigned i = 0; i < 1000; i++) /* steps of a millisecond */
        times += is_short_after(MS, 0);
    assert_in_range(times, 4, 8);
    set("memory.max", "max\n");
    assert_false(is_short_after(1000 * MS, 0));
    set_bytes("memory.max", 101 * MIB);
    times = 0;
    for (unsigned i = 0; i < 40; i++)
        times += is_short_after(MS, 0);
    assert_in_range(times, 1, 3); /* quick again */
}

/* Regions are large, so the runs handed out count, not the regions made. */
TEST(what_is_handed_out_is_looked_at, begin)
{
    void *first = os_pages_alloc(os_page_size, os_page_size, 0, NULL), *runs[8];

    os_pages_trim();
    set_bytes("memory.max", 101 * MIB);
    now += 20 * MS;
    for (unsigned i = 0; i < 8; i++)
        runs[i] = os_pages_alloc(MIB, os_page_size, 0, NULL);
    assert_true(os_memory_is_short());
    for (unsigned i = 0; i < 8; i++)
        os_pages_free(runs[i], MIB);
    set("memory.max", "max\n");
    now += 2000 * MS;
    for (unsigned i = 0; i < 8; i++) /* dirty runs; nothing is requested from the system */
        runs[i] = os_pages_alloc(MIB, os_page_size, 0, NULL);
    set_bytes("memory.max", 101 * MIB);
    now += 2000 * MS;
    for (unsigned i = 0; i < 8; i++)
        os_pages_free(runs[i], MIB);
    for (unsigned i = 0; i < 4; i++)
        os_pages_free(os_pages_alloc(MIB, os_page_size, 0, NULL), MIB);
    assert_false(os_memory_is_short());
    os_pages_free(first, os_page_size);
}

/* Through all layers, free memory in caches and pages goes when more is requested. */
TEST(caches_are_emptied, begin)
{
    static void *objects[20000];
    struct prudence_stats before, after;
    void *block;

    assert_int_equal(prudence_option_set("retain", "64M"), 0);
    for (unsigned i = 0; i < 20000; i++)
        objects[i] = prudence_malloc(1000);
    for (unsigned i = 0; i < 20000; i++)
        prudence_free(objects[i]);
    prudence_stats(&before);
    assert_true(before.slab_bytes + before.retained_bytes > 15 * MIB);
    set_bytes("memory.max", 101 * MIB);
    now += 20 * MS;
    block = prudence_malloc(60 * MIB);
    assert_non_null(block);
    prudence_stats(&after);
    assert_true(after.slab_bytes + after.retained_bytes <= 61 * MIB);
    prudence_free(block);
}

static int make(void **state)
{
    posix_clock_injected = our_clock;
    if (!mkdtemp(folder))
        return 1;
    snprintf(slashed, sizeof slashed, "%s/", folder);
    snprintf(machine, sizeof machine, "%smachine", slashed);
    return 0;
}

static int unmake(void **state)
{
    set("memory.current", NULL);
    set("memory.high", NULL);
    set("memory.max", NULL);
    set("memory.events", NULL);
    set("memory.pressure", NULL);
    set("machine", NULL);
    return rmdir(folder);
}

SUITE_BETWEEN(make, unmake)
