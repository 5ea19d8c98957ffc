/* SPDX-License-Identifier: MIT */
/*
 * Fenced and fence-free readers: chosen by option or by measured rates.
 *
 * ctest: not-with thread (ThreadSanitizer changes the rates that the choice of mode follows)
 * ctest: alone (measures the chosen mode at rates of readers)
 */
#define _GNU_SOURCE

#include <string.h>

#include <prudence/prudence.h>
#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/suite.h"
#include "support/stats.h"

/* --- roles, each in a separate process --- */

static int churn(void)
{
    unsigned long long end = now_ns() + 100000000;

    while (now_ns() < end) {
        for (unsigned i = 0; i < 100; i++)
            prudence_free_deferred(prudence_malloc(500));
        prudence_read_lock();
        prudence_read_unlock();
        prudence_synchronize();
    }
    printf("mode=%s membarriers=%llu switches=%llu\n", stats_now().readers_mode,
           (unsigned long long)stats_now().membarriers,
           (unsigned long long)stats_now().mode_switches);
    fflush(stdout);
    return 0;
}

#define PATIENCE_NS 5000000000ull

static bool mode_is(const char *mode)
{
    return strcmp(stats_now().readers_mode, mode) == 0;
}

/* Runs grace periods at full speed with hardly a reader until the mode follows; then readers
 * with hardly a grace period. */
static int adapt(void)
{
    unsigned long long end;
    char after_writing[16];

    end = now_ns() + PATIENCE_NS;
    while (now_ns() < end && !mode_is("fenced"))
        prudence_synchronize();
    snprintf(after_writing, sizeof after_writing, "%s", stats_now().readers_mode);
    end = now_ns() + PATIENCE_NS;
    while (now_ns() < end && !mode_is("fence-free")) {
        for (unsigned i = 0; i < 1000000; i++) {
            prudence_read_lock();
            prudence_read_unlock();
        }
        prudence_synchronize();
    }
    printf("written: %s, read: %s, switches=%llu\n", after_writing, stats_now().readers_mode,
           (unsigned long long)stats_now().mode_switches);
    fflush(stdout);
    return 0;
}

/* --- tests --- */

TEST(fenced_by_option)
{
    expect_again(0, "churn", "reader_mode=fenced", "mode=fenced membarriers=0 switches=0");
}

TEST(fence_free_by_option)
{
    expect_again(0, "churn", "reader_mode=free", "");
    if (!os_membarrier_available())
        skip();
    assert_true(said("mode=fence-free"));
    assert_false(said("membarriers=0 "));
    assert_true(said("switches=0"));
}

TEST(fenced_for_good_without_membarrier)
{
    expect_again(0, "churn", "reader_mode=free,membarrier=0",
                 "mode=fenced membarriers=0 switches=0");
}

TEST(auto_follows_the_rates)
{
    struct child_result result;

#if defined(__SANITIZE_THREAD__)
    skip(); /* ThreadSanitizer changes the rates */
#endif
    if (!os_membarrier_available())
        skip();
    child_again("adapt", "reader_mode=auto", &result);
    print_message("%s", result.output);
    assert_true(child_exited_with(&result, 0));
    assert_true(child_said(&result, "written: fenced, read: fence-free"));
}

TEST(a_bad_mode_is_reported_by_name_and_value)
{
    struct child_result result;

    child_again("churn", "reader_mode=quick", &result);
    assert_true(child_said(&result, "reader_mode"));
    assert_true(child_said(&result, "quick"));
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return strcmp(argv[1], "churn") == 0 ? churn() : adapt();
    return suite_run(NULL, NULL);
}
