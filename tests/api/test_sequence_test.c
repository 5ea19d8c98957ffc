/* SPDX-License-Identifier: MIT */
/*
 * The test of the kernel's sequences: its verdict here, that it can fail, the kernels it is made
 * for, and the library's reaction to a failure, which is locks, closed lines for inlined code, one
 * message, and the reason in statistics and dump.
 *
 * ctest: not-with thread (ThreadSanitizer's build has no sequences)
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/posix/posix.h"
#include "os/posix/sequence_test.h"
#include "support/slab_test.h"
#include "support/stats.h"

static bool machine_has_sequences(void)
{
    struct prudence_stats stats = stats_now();

    return strcmp(stats.percpu, "rseq") == 0;
}

/* Asks the test. The kernel never restarts a sequence in an unregistered struct rseq. */
static enum sequence_verdict ask(bool registered)
{
    static char unknown[32] __attribute__((aligned(32)));
    char *area = unknown;

#if OS_PERCPU_HAS_RSEQ
    if (registered)
        area = os_percpu_thread_pointer() + os_percpu_rseq_offset;
#endif
    return sequence_test(area);
}

/* Returns whether the verdict is right twenty times and never wrong. A busy machine may give
 * none. */
static bool says(bool registered, enum sequence_verdict right, enum sequence_verdict wrong)
{
    unsigned count = 0;

    while (count < 20) {
        enum sequence_verdict said = ask(registered);

        if (said == wrong)
            return false;
        count += said == right;
    }
    return true;
}

/* Uses this thread's registered struct rseq. */
TEST(a_right_kernel_restarts)
{
    sigset_t before, after;

    if (!machine_has_sequences())
        skip();
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    errno = EDOM;
    assert_true(says(true, SEQUENCES_RESTART, SEQUENCES_GO_ON));
    assert_int_equal(errno, EDOM);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_memory_equal(&before, &after, 8);         /* the kernel's part of the set */
    assert_int_equal(waitpid(-1, NULL, __WALL), -1); /* no helper remains */
    assert_int_equal(errno, ECHILD);
}

/* A sequence unknown to the kernel goes on, as all sequences do on a broken kernel. */
TEST(a_broken_kernel_is_found)
{
    if (!machine_has_sequences())
        skip();
    assert_true(says(false, SEQUENCES_GO_ON, SEQUENCES_RESTART));
}

static volatile sig_atomic_t children_told;

static void count_child(int number)
{
    children_told = children_told + 1;
}

/* The helper sends no SIGCHLD, is no thread, and is gone afterwards. */
static void ask_and_look(void)
{
    bool alone = os_is_single_threaded();

    signal(SIGCHLD, count_child);
    for (unsigned i = 0; i < 20; i++)
        ask(true);
    fprintf(stderr, "children told: %d\n", (int)children_told);
    fprintf(stderr, "thread: %s\n",
            alone == os_is_single_threaded() ? "alone as before" : "not alone");
    /* The system refuses this to a process with threads (EINVAL), and some systems to all. */
    fprintf(stderr, "namespace: %s\n",
            unshare(CLONE_NEWUSER) && errno == EINVAL ? "refused" : "as before");
}

TEST(the_test_leaves_nothing_behind)
{
    if (!machine_has_sequences())
        skip();
    expect_survival(ask_and_look(), "children told: 0", "thread: alone as before",
                    "namespace: as before");
}

TEST(kernels_that_are_asked)
{
    static const char *const asked[] = {"6.19",    "6.19.11+deb13-cloud-arm64",
                                        "6.20.1",  "7.0.13",
                                        "7.0-rc3", "2.6.79",
                                        "",        "x",
                                        "6",       "unknown",
                                        "6.x"};
    static const char *const others[] = {"6.18.15", "6.1.0-37-cloud-arm64",
                                         "7.1.3",   "7.2-rc1",
                                         "5.10",    "4.4.0",
                                         "8.0",     "10.19",
                                         "3.10.0",  "7.10",
                                         "6.2"};

    for (unsigned i = 0; i < sizeof asked / sizeof *asked; i++)
        assert_true(sequence_test_is_wanted_for(asked[i]));
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(sequence_test_is_wanted_for(others[i]));
}

static enum sequence_verdict verdict;

static enum sequence_verdict injected(void)
{
    return verdict;
}

/* Starts the process anew with `verdict`. Runs in a child. */
static void start_with_a_verdict(void *argument)
{
    struct prudence_stats stats;
    struct prudence_cache *cache;
    void *objects[100];

    verdict = *(const enum sequence_verdict *)argument;
    posix_sequence_verdict_injected = injected;
    posix_percpu_start(true);
    posix_percpu_start(true); /* as when the option is set again; prints nothing more */
    cache = prudence_cache_create("test", 64, NULL);
    assert_ptr_equal(cache->fast_percpu, os_percpu_owned_lines);
    assert_null(os_percpu_pop(&os_percpu_owned_lines));
    allocate_all(cache, objects, 100);
    defer_all(cache, objects, 50);
    free_all(cache, objects + 50, 50);
    prudence_synchronize();
    check_books(cache);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    prudence_stats(&stats);
    fprintf(stderr, "percpu=%s reason=%s.\n", stats.percpu, stats.percpu_reason);
    prudence_dump(2);
}

TEST(a_failed_test_means_locks)
{
    if (!machine_has_sequences())
        skip();
    verdict = SEQUENCES_GO_ON;
    expect_survival(start_with_a_verdict(&verdict),
                    "percpu=lock reason=the kernel does not restart sequences.",
                    "per-CPU caches: locks instead of restartable sequences (the kernel");
    assert_int_equal(said("does not restart preempted sequences"), 1);
}

TEST(no_verdict_means_locks)
{
    if (!machine_has_sequences())
        skip();
    verdict = SEQUENCES_UNKNOWN;
    expect_survival(start_with_a_verdict(&verdict),
                    "percpu=lock reason=the kernel could not be tested.");
}

TEST(the_reason_is_told)
{
    struct prudence_stats stats = stats_now();

    if (strcmp(stats.percpu, "rseq") == 0)
        assert_string_equal(stats.percpu_reason, "");
    else
        assert_string_not_equal(stats.percpu_reason, "");
    posix_percpu_start(false);
    prudence_stats(&stats);
    assert_string_equal(stats.percpu, "lock");
    if (OS_PERCPU_HAS_RSEQ)
        assert_string_equal(stats.percpu_reason, "option rseq=0 or sandbox=1");
    posix_percpu_start(true);
}

SUITE()
