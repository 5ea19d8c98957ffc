/* SPDX-License-Identifier: MIT */
/*
 * Unknown option names and bad values are reported by name and value, and change nothing. Options
 * of the start fail with EBUSY once a cache was made.
 */
#include <pthread.h>

#include "guard/check.h"
#include "gp/user/mode.h"
#include "gp/user/stall.h"
#include "process/options.h"
#include "process/spelling.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"
#include "support/slab_test.h"

struct setting {
    const char *name, *value;
    int result;
};

static void set(void *argument)
{
    const struct setting *setting = argument;

    if (prudence_option_set(setting->name, setting->value) != setting->result)
        abort();
}

static void expect_report(const char *name, const char *value, int result)
{
    struct setting setting = {name, value, result};

    expect_survival(set(&setting), name, value);
    assert_int_equal(strncmp(last_child.output, "prudence: ", 10), 0);
}

TEST(good_values_are_taken)
{
    assert_int_equal(prudence_option_set("limit", "3G"), 0);
    assert_true(os_pages_limit() == UINT64_C(3) << 30);
    assert_int_equal(prudence_option_set("limit", "0"), 0);
    assert_int_equal(os_pages_limit(), 0);
    assert_int_equal(prudence_option_set("latent_limit", "12345"), 0);
    assert_int_equal(slab_latent_limit, 12345);
    assert_int_equal(prudence_option_set("latent_limit", "7K"), 0);
    assert_int_equal(slab_latent_limit, 7 << 10);
    assert_int_equal(prudence_option_set("latent_limit", "64M"), 0);
    assert_int_equal(slab_latent_limit, 64 << 20);
    assert_int_equal(prudence_option_set("wait_max", "5"), 0);
    assert_int_equal(slab_wait_max, 5000000);
    assert_int_equal(prudence_option_set("wait_max", "7us"), 0);
    assert_int_equal(slab_wait_max, 7000);
    assert_int_equal(prudence_option_set("wait_max", "2s"), 0);
    assert_int_equal(slab_wait_max, 2000000000);
    assert_int_equal(prudence_option_set("wait_max", "100ms"), 0);
    assert_int_equal(slab_wait_max, 100000000);
    assert_int_equal(prudence_option_set("stall_timeout", "3s"), 0);
    assert_true(gp_stall_timeout == UINT64_C(3000000000));
    assert_int_equal(prudence_option_set("retain", "1M"), 0);
    assert_int_equal(prudence_option_set("reader_mode", "fenced"), 0);
    assert_int_equal(gp_reader_mode, READER_MODE_FENCED);
    assert_int_equal(prudence_option_set("reader_mode", "auto"), 0);
    assert_int_equal(prudence_option_set("check", "1"), 0);
    assert_true(check_wanted);
    assert_int_equal(prudence_option_set("check", "0"), 0);
    assert_false(check_wanted);
}

TEST(unknown_names_are_reported)
{
    expect_report("limits", "1M", ENOENT);
    expect_report("LIMIT", "1M", ENOENT);
    expect_report("nonsense", "17", ENOENT);
    assert_true(said("unknown option"));
    assert_true(said("PRUDENCE_OPTIONS=help"));
    assert_false(said("did you mean"));
}

static void expect_meant(const char *name, const char *meant)
{
    char question[64];

    expect_report(name, "1", ENOENT);
    snprintf(question, sizeof question, "did you mean '%s'?", meant);
    assert_true(said(question));
}

TEST(the_name_that_was_probably_meant_is_said)
{
    expect_meant("limits", "limit");             /* a letter too many */
    expect_meant("latnt_limit", "latent_limit"); /* one too few */
    expect_meant("scm_expirde", "scm_expired");  /* two exchanged */
    expect_meant("stall_timoeut", "stall_timeout");
    expect_meant("Latent-Limit", "latent_limit");
    expect_meant("guard_frist", "guard_first");
    expect_meant("DECAY", "decay");
    expect_report("tr", "1", ENOENT);
    assert_false(said("did you mean"));
}

TEST(distances_of_words)
{
    assert_int_equal(spelling_distance("decay", "decay"), 0);
    assert_int_equal(spelling_distance("dcay", "decay"), 1);
    assert_int_equal(spelling_distance("decayy", "decay"), 1);
    assert_int_equal(spelling_distance("dacay", "decay"), 1);
    assert_int_equal(spelling_distance("deacy", "decay"), 1);
    assert_int_equal(spelling_distance("edcya", "decay"), 2);
    assert_int_equal(spelling_distance("dxcxy", "decay"), 2);
    assert_int_equal(spelling_distance("rxxq", "rseq"), SPELLING_FAR);
    assert_int_equal(spelling_distance("", "rseq"), SPELLING_FAR);
    assert_int_equal(spelling_distance("dxxxy", "decay"), SPELLING_FAR);
}

TEST(help_lists_the_options)
{
    expect_exit(EINVAL, (prudence_option_set("help", ""), prudence_option_set("help", "me")),
                "latent_limit       bytes (K, M, G), at most latent_ceiling",
                "rseq               0 or 1 (start only)\n", "page_size ", "(environment only)\n");
}

TEST(bad_values_are_reported)
{
    static const char *const bytes[] = {"x",
                                        "1X",
                                        "1KB",
                                        "-1",
                                        "1.5G",
                                        " 1",
                                        "99999999999999999999",
                                        "9223372036854775808",
                                        "9000000000G",
                                        "K"};
    static const char *const times[] = {"soon", "1h", "-1ms", "1 ms", "ms", "99999999999s"};

    for (unsigned i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        expect_report("limit", bytes[i], EINVAL);
        expect_report("latent_limit", bytes[i], EINVAL);
        expect_report("retain", bytes[i], EINVAL);
    }
    for (unsigned i = 0; i < sizeof times / sizeof times[0]; i++) {
        expect_report("wait_max", times[i], EINVAL);
        expect_report("stall_timeout", times[i], EINVAL);
    }
    expect_report("trace", "33", EINVAL);
    expect_report("guard_first", "17", EINVAL);
    expect_report("check", "2", EINVAL);
    expect_report("background", "yes", EINVAL);
    expect_report("rseq", "on", EINVAL);
    expect_report("membarrier", "01", EINVAL);
    expect_report("reader_mode", "fast", EINVAL);
    assert_int_equal(prudence_option_set("limit", ""), EINVAL);
    assert_int_equal(prudence_option_set(NULL, "1"), EINVAL);
    assert_int_equal(prudence_option_set("limit", NULL), EINVAL);
    assert_int_equal(os_pages_limit(), 0);
    assert_int_equal(slab_wait_max, 100000000);
}

/* A bad value changes a switch neither from on nor from off. */
TEST(bad_switches_change_nothing)
{
    for (unsigned on = 0; on < 2; on++) {
        assert_int_equal(prudence_option_set("check", on ? "1" : "0"), 0);
        assert_int_equal(prudence_option_set("check", "2"), EINVAL);
        assert_int_equal(check_wanted, on);
    }
    assert_int_equal(prudence_option_set("check", "0"), 0);
}

TEST(start_options_are_busy_later)
{
    struct prudence_cache *cache = fixed_cache(64, 16, NULL);

    expect_report("check", "1", EBUSY);
    expect_report("rseq", "0", EBUSY);
    expect_report("membarrier", "0", EBUSY);
    expect_report("reader_mode", "free", EBUSY);
    assert_false(check_wanted);
    assert_int_equal(prudence_option_set("limit", "1G"), 0); /* other options are not busy */
    assert_int_equal(prudence_option_set("limit", "0"), 0);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

/* A cache under construction is in no list yet, but has already read some options. */
static pthread_t setter;
static int result_of_setter;
static bool setter_started;

static void *set_meanwhile(void *unused)
{
    result_of_setter = prudence_option_set("rseq", option_rseq ? "0" : "1");
    return unused;
}

/* Runs where metadata is allocated, in the middle of making a cache. */
static bool start_setter_once(void)
{
    if (!setter_started) {
        setter_started = true;
        assert_int_equal(pthread_create(&setter, NULL, set_meanwhile, NULL), 0);
        os_sleep_ns(50000000); /* time for a wrong return */
    }
    return false;
}

TEST(nor_while_a_cache_is_being_made)
{
    bool rseq = os_percpu_rseq;
    struct prudence_cache *cache;

    os_memory_fails = start_setter_once;
    cache = fixed_cache(64, 16, NULL);
    os_memory_fails = NULL;
    pthread_join(setter, NULL);
    assert_int_equal(result_of_setter, EBUSY);
    assert_int_equal(os_percpu_rseq, rseq);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

/* A cache that could not be made does not count. */
TEST(a_cache_that_failed_does_not_count)
{
    memory_fail(0, 1000);
    assert_null(prudence_cache_create("none", 64, NULL));
    memory_succeed();
    assert_int_equal(prudence_option_set("check", "0"), 0);
}

SUITE(pin_thread())
