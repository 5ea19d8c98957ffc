/* SPDX-License-Identifier: MIT */
/*
 * The limit of deferred bytes in force: latent_limit with a reader that blocks or stays, and up
 * to latent_ceiling while the blocking reader lacks a CPU. The test says how readers fare,
 * instead of the system, and ends grace periods by hand.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "os/posix/posix.h"

#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"
#include "support/gp_reader.h"
#include "support/gp_reader_told.h"
#include "support/slab_test.h"
#include "support/stats.h"

#define MIB     ((uint64_t)1 << 20)
#define OBJECT  4096
#define UNIT    (256 * stride) /* about a MiB */
#define LIMIT   (4 * UNIT)
#define CEILING (16 * UNIT)
#define MOST    4096u /* objects of CEILING */
#define MORE    256   /* more objects than CPUs have reserved ahead */

static uint64_t stride; /* bytes of an object in the account */
static void *objects[MOST + MORE];
static struct prudence_cache *cache;
static struct held_reader reader;

static void set(const char *name, uint64_t bytes, int error)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
    assert_int_equal(prudence_option_set(name, text), error);
}

/* Begins with nothing deferred, latent_limit in force, a reader inside and `most` objects. */
static void begin(uint64_t ceiling)
{
    set("latent_limit", 0, 0);
    set("latent_ceiling", ceiling, 0);
    set("latent_limit", LIMIT, 0);
    limit_fall();
    reader = (struct held_reader){.domain = NULL};
    cache = fixed_cache(OBJECT, 0, NULL);
    allocate_all(cache, objects, MOST + MORE);
    held_reader_start(&reader);
}

/* Ends the section, and the cache, of which `deferred` objects were deferred. */
static void end(unsigned deferred)
{
    held_reader_end(&reader);
    free_all(cache, objects + deferred, MOST + MORE - deferred);
    set("latent_limit", 0, 0);
    destroy_empty(cache);
}

static uint64_t latent(void)
{
    return stats_of(cache).bytes_latent;
}

/* Defers until `bytes` are latent. */
static unsigned defer_up_to(uint64_t bytes)
{
    defer_all(cache, objects, (unsigned)(bytes / stride));
    return (unsigned)(bytes / stride);
}

/* Defers one by one, from the object `next` on, until a wait was without success. Returns the most
 * bytes that were latent before. */
static uint64_t defer_until_expiry(unsigned *next)
{
    uint64_t before = stats_now().throttle_expiries, most = latent();

    while (*next < MOST + MORE) {
        prudence_cache_free_deferred(cache, objects[(*next)++]);
        if (stats_now().throttle_expiries > before)
            return most;
        most = max_size(most, latent());
    }
    fail_msg("%llu bytes were deferred without a wait", (unsigned long long)most);
    return 0;
}

/* ------------------------------------------------------------------------------------ defaults */

static char root[] = "/tmp/prudence-ceiling-XXXXXX";

static void write_file(const char *path, const char *text)
{
    char whole[200];
    FILE *file;

    snprintf(whole, sizeof whole, "%s%s", root, path);
    file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void make_folder(const char *path)
{
    char whole[200];

    snprintf(whole, sizeof whole, "%s%s", root, path);
    assert_int_equal(mkdir(whole, 0700), 0);
}

/* A machine of 64 GiB, and a control group of 4 GiB. */
static void make_machine(void)
{
    assert_non_null(mkdtemp(root));
    make_folder("/proc");
    make_folder("/proc/self");
    make_folder("/sys");
    make_folder("/sys/fs");
    make_folder("/sys/fs/cgroup");
    make_folder("/sys/fs/cgroup/a");
    write_file("/proc/meminfo", "MemTotal:       67108864 kB\nMemFree: 1 kB\n");
    write_file("/proc/self/cgroup", "0::/a\n");
    write_file("/sys/fs/cgroup/a/cgroup.type", "domain\n");
    write_file("/sys/fs/cgroup/a/memory.current", "0\n");
    write_file("/sys/fs/cgroup/a/memory.max", "4294967296\n");
}

static void remove_machine(void)
{
    static const char *const paths[] = {"/sys/fs/cgroup/a/memory.max",
                                        "/sys/fs/cgroup/a/memory.current",
                                        "/sys/fs/cgroup/a/cgroup.type",
                                        "/proc/self/cgroup",
                                        "/proc/meminfo",
                                        "/sys/fs/cgroup/a",
                                        "/sys/fs/cgroup",
                                        "/sys/fs",
                                        "/sys",
                                        "/proc/self",
                                        "/proc",
                                        ""};
    char whole[200];

    for (unsigned i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        snprintf(whole, sizeof whole, "%s%s", root, paths[i]);
        assert_int_equal(remove(whole), 0);
    }
}

/* Runs before any test that sets latent_limit: the default is asked for once. */
TEST(by_default_a_part_of_what_the_process_may_use)
{
    make_machine();
    posix_pressure_inject_root(root);
    assert_int_equal(stats_now().latent_limit, 32 * MIB);
    assert_int_equal(stats_now().latent_ceiling, 64 * MIB);
    assert_int_equal(stats_now().latent_limit_in_force, 32 * MIB);
    posix_pressure_inject_root("");
    remove_machine();
    set("latent_limit", 8 * MIB, 0);
    assert_int_equal(stats_now().latent_ceiling, 8 * MIB);
    set("latent_limit", 0, 0);
    assert_int_equal(stats_now().latent_ceiling, 0);
}

/* -------------------------------------------------------------------------------- rise and fall */

TEST(rises_while_the_reader_lacks_a_cpu)
{
    struct prudence_stats before = stats_now(), after;

    say(true, true, 0);
    begin(CEILING);
    for (unsigned i = 0; i < MOST; i++) {
        prudence_cache_free_deferred(cache, objects[i]);
        assert_true(latent() <= stats_now().latent_limit_in_force);
        assert_true(stats_now().latent_limit_in_force <= CEILING);
    }
    after = stats_now();
    assert_int_equal(after.bytes_latent, CEILING);
    assert_int_equal(after.latent_limit_in_force, CEILING);
    assert_int_equal(after.latent_overruns, before.latent_overruns);
    assert_int_equal(after.throttle_expiries, before.throttle_expiries);
    assert_in_range(after.latent_rises - before.latent_rises, 2, 3 * 32);
    end(MOST);
}

/* Only deferrals that waited without success go beyond the ceiling, and they are counted. */
TEST(never_past_the_ceiling_but_for_counted_overruns)
{
    uint64_t before = stats_now().latent_overruns;
    unsigned next;

    say(true, true, 0);
    begin(CEILING);
    next = defer_up_to(CEILING - UNIT);
    assert_int_equal(defer_until_expiry(&next), CEILING);
    assert_true(stats_now().latent_overruns > before);
    end(next);
}

static void returns_after(struct prudence_domain *domain, unsigned grace_periods)
{
    for (unsigned i = 0; i < grace_periods; i++) {
        assert_int_equal(stats_now().latent_limit_in_force, CEILING);
        prudence_manual_advance(domain);
    }
    assert_int_equal(stats_now().latent_limit_in_force, LIMIT);
}

TEST(returns_within_ten_grace_periods)
{
    struct prudence_domain *domain = manual_domain();

    say(true, true, 0);
    begin(CEILING);
    defer_up_to(CEILING);
    returns_after(domain, 10);
    end(MOST);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* Objects deferred in between are no reason to wait, once it is safe. */
TEST(writers_go_on_after_the_crowd)
{
    struct prudence_stats before;

    say(true, true, 0);
    begin(CEILING);
    defer_up_to(CEILING);
    held_reader_end(&reader);
    for (unsigned i = 0; i < 10; i++)
        prudence_synchronize();
    assert_int_equal(stats_now().latent_limit_in_force, LIMIT);
    before = stats_now();
    defer_all(cache, objects + MOST, MORE);
    assert_true(latent() <= LIMIT);
    assert_int_equal(stats_now().throttle_expiries, before.throttle_expiries);
    assert_int_equal(stats_now().latent_overruns, before.latent_overruns);
    set("latent_limit", 0, 0);
    destroy_empty(cache);
}

static void holds_at_the_limit(uint64_t ceiling_told)
{
    uint64_t before = stats_now().latent_rises;
    unsigned next;

    begin(CEILING);
    next = defer_up_to(LIMIT - UNIT);
    assert_int_equal(defer_until_expiry(&next), LIMIT);
    assert_int_equal(stats_now().latent_limit_in_force, LIMIT);
    assert_int_equal(stats_now().latent_rises, before);
    assert_int_equal(stats_now().latent_ceiling, ceiling_told);
    end(next);
}

TEST(holds_with_a_reader_that_is_blocked)
{
    say(true, false, 0);
    holds_at_the_limit(CEILING);
    assert_non_null(strstr(limit_why(), "sleeps"));
}

TEST(holds_with_a_reader_that_has_a_cpu)
{
    say(true, true, 5000000);
    holds_at_the_limit(CEILING);
}

TEST(holds_where_the_system_does_not_tell)
{
    say(false, true, 0);
    holds_at_the_limit(LIMIT);
    assert_non_null(strstr(limit_why(), "does not say"));
}

/* The blocking thread wants a CPU, but has had one for long since it was first seen there. */
static bool tell_in_turns(int thread, bool *wants_cpu, uint64_t *had)
{
    (void)thread;
    *wants_cpu = true;
    *had = LEAST_HAD + 30000000 * (uint64_t)((add_relaxed(&looks, 1) + 1) / 2);
    return true;
}

TEST(holds_with_a_reader_that_shares_its_cpu)
{
    looks = 0;
    posix_cpu_injected = tell_in_turns;
    holds_at_the_limit(CEILING);
    posix_cpu_injected = told_fares;
}

TEST(falls_when_the_reader_in_the_way_blocks)
{
    uint64_t most;
    unsigned next;

    say(true, true, 0);
    begin(CEILING);
    next = defer_up_to(LIMIT + UNIT);
    assert_true(stats_now().latent_limit_in_force > LIMIT);
    most = stats_now().latent_limit_in_force;
    say(true, false, 0);
    pause_ms(1); /* an answer counts for 0.2 ms */
    assert_int_equal(defer_until_expiry(&next), most);
    assert_int_equal(stats_now().latent_limit_in_force, LIMIT);
    end(next);
}

/* Domains whose readers cannot be seen may hold the garbage. */
TEST(holds_with_a_domain_that_does_not_tell)
{
    struct prudence_cache *other = fixed_cache(OBJECT, 0, manual_domain());

    say(true, true, 0);
    holds_at_the_limit(LIMIT);
    destroy_empty(other);
}

/* ------------------------------------------------------------------------------------- options */

TEST(a_limit_that_the_user_set_is_the_ceiling)
{
    unsigned next;

    say(true, true, 0);
    begin(LIMIT);
    assert_int_equal(stats_now().latent_ceiling, LIMIT);
    next = defer_up_to(LIMIT - UNIT);
    assert_int_equal(defer_until_expiry(&next), LIMIT);
    end(next);
}

TEST(a_ceiling_lowered_below_what_is_deferred)
{
    uint64_t before;
    unsigned next;

    say(true, true, 0);
    begin(CEILING);
    next = defer_up_to(12 * UNIT);
    before = stats_now().latent_limit_in_force;
    set("latent_ceiling", 6 * UNIT, 0);
    assert_int_equal(stats_now().latent_limit_in_force, 6 * UNIT);
    assert_false(limit_fits(stride, true));
    /* Room that this CPU had reserved by then is used without a wait. On a loaded machine the limit
     * had risen further, and there is more of it. */
    assert_in_range(defer_until_expiry(&next), 12 * UNIT, before);
    held_reader_end(&reader);
    prudence_synchronize();
    prudence_cache_shrink(cache);
    allocate_all(cache, objects, 1);
    defer_all(cache, objects, 1); /* there is room again */
    assert_true(latent() <= 6 * UNIT);
    free_all(cache, objects + next, MOST + MORE - next);
    set("latent_limit", 0, 0);
    destroy_empty(cache);
}

TEST(a_ceiling_below_the_limit_is_refused)
{
    set("latent_limit", 0, 0);
    set("latent_ceiling", CEILING, 0);
    set("latent_limit", LIMIT, 0);
    set("latent_ceiling", LIMIT - 1, EINVAL);
    set("latent_ceiling", 0, EINVAL);
    set("latent_limit", CEILING + 1, EINVAL);
    assert_int_equal(stats_now().latent_limit, LIMIT);
    assert_int_equal(stats_now().latent_ceiling, CEILING);
    set("latent_limit", CEILING, 0);
    set("latent_limit", 0, 0); /* no limit, and so no ceiling */
    assert_int_equal(stats_now().latent_limit_in_force, 0);
}

static int start(void **state)
{
    pin_thread();
    posix_cpu_injected = told_fares;
    cache = fixed_cache(OBJECT, 0, NULL);
    stride = cache->body->stride;
    destroy_empty(cache);
    return prudence_option_set("wait_max", "20ms");
}

int main(void)
{
    return suite_run(start, NULL);
}
