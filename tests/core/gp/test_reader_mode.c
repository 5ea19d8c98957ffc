/* SPDX-License-Identifier: MIT */
/*
 * Fenced and fence-free readers: chosen by option or by measured rates, and switched under load.
 *
 * ctest: not-with thread (ThreadSanitizer changes the rates that the choice of mode follows)
 * ctest: alone (measures the chosen mode at rates of readers)
 */
#define _GNU_SOURCE

#include <string.h>

#include <prudence/prudence.h>
#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "gp/user/mode.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/suite.h"
#include "support/threads.h"
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

/* --- switching under load, in this process --- */

static struct prudence_cache *cache;
static uint64_t *shared;
static bool stop;
static uint64_t wrong;

static void *keep_reading(void *unused)
{
    while (!load_relaxed(&stop)) {
        uint64_t *object;

        prudence_read_lock();
        object = prudence_dereference(shared);
        for (unsigned i = 1; i < 8; i++)
            if (load_relaxed(&object[i]) != load_relaxed(&object[0]))
                add_relaxed(&wrong, 1);
        prudence_read_unlock();
    }
    return unused;
}

static void *keep_switching(void *unused)
{
    for (unsigned i = 0; !load_relaxed(&stop); i++) {
        __atomic_store_n(&gp_reader_mode, i % 2 ? READER_MODE_FREE : READER_MODE_FENCED,
                         __ATOMIC_RELAXED);
        store_relaxed(&prudence_default.chosen_at, (uint64_t)0);
        pause_ms(1);
    }
    return unused;
}

static void replace(uint64_t i)
{
    uint64_t *object = prudence_cache_alloc(cache), *old = shared;

    for (unsigned word = 0; word < 8; word++)
        store_relaxed(&object[word], i);
    prudence_assign_pointer(shared, object);
    prudence_cache_free_deferred(cache, old);
    if (i % 64 == 0)
        prudence_synchronize();
}

TEST(modes_switch_under_load)
{
    pthread_t readers[4], switcher;
    unsigned long long end = now_ns() + 500000000;
    uint64_t version = 0;

#if defined(__SANITIZE_THREAD__)
    skip(); /* fence-free readers are ordered by membarrier, which ThreadSanitizer does not see */
#endif
    if (!os_membarrier_available())
        skip();
    cache = prudence_cache_create("switching", 64, NULL);
    shared = prudence_cache_alloc(cache);
    for (unsigned word = 0; word < 8; word++)
        shared[word] = 0;
    threads_start(readers, 4, keep_reading);
    pthread_create(&switcher, NULL, keep_switching, NULL);
    do
        for (unsigned n = 0; n < 1000; n++)
            replace(++version);
    while (now_ns() < end || stats_now().mode_switches <= 10);
    store_relaxed(&stop, true);
    threads_join(readers, 4);
    pthread_join(switcher, NULL);
    print_message("%llu switches\n", (unsigned long long)stats_now().mode_switches);
    assert_int_equal(wrong, 0);
    prudence_cache_free_deferred(cache, shared);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return strcmp(argv[1], "churn") == 0 ? churn() : adapt();
    return suite_run(NULL, NULL);
}
