/* SPDX-License-Identifier: MIT */
/*
 * The background thread. When a process with threads falls idle, this thread drains the process,
 * and exists only until that is done. A process with little to give back, or without threads, never
 * has one, and nothing depends on it. Each case runs in its own child, and waits for the expected
 * counts.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap/background.h"
#include "posix.h"
#include "slab/reclaim/decay.h"
#include "support/lockable.h"
#include "support/settle.h"
#include "support/slab_test.h"
#include "support/threads.h"

#define BLOCKS 20000
#define BYTES  ((size_t)1000)
#define FEW    ((uint64_t)3 << 20)
#define MANY   1500 /* more than an object cache holds, so slow paths serve some */

static void *blocks[BLOCKS];

static uint64_t kept(void)
{
    return os_pages_kept() + decay_kept();
}

static unsigned stay; /* one of `stay` blocks is not freed; 0: all are */

static void burst(void)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = prudence_malloc(BYTES);
        assert_non_null(blocks[i]);
        memset(blocks[i], 1, BYTES);
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        if (!stay || i % stay)
            prudence_free(blocks[i]);
}

static unsigned own_threads; /* this one, and one that background threads require */

/* Counts the threads other than these. */
static unsigned other_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    unsigned found = 0;

    for (struct dirent *task; (task = readdir(tasks));)
        found += task->d_name[0] != '.';
    closedir(tasks);
    return found - own_threads;
}

static void wait_until_alone(void)
{
    for (unsigned i = 0; i < 6000 && other_threads(); i++)
        os_sleep_ns(10000000);
    assert_int_equal(other_threads(), 0);
}

static void *wait_for_ever(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static void have_another_thread(void)
{
    pthread_t thread;

    own_threads = 2;
    if (pthread_create(&thread, NULL, wait_for_ever, NULL))
        _exit(1);
}

static void use_the_thread(void)
{
    have_another_thread();
    decay_enabled = true;
    background_set(true);
    background_start();
}

/* Runs `act` in a child, because other threads remain afterwards. */
static void in_a_child(void (*act)(void))
{
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        use_the_thread();
        act();
        _exit(0);
    }
    assert_int_equal(status_of(child), 0);
}

#define CHECK(truth)                                                                               \
    do {                                                                                           \
        if (!(truth)) {                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #truth);                            \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void idle(void)
{
    burst();
    wait_until_alone();
    CHECK(kept() <= FEW);
    burst(); /* the thread comes again */
    wait_until_alone();
    CHECK(kept() <= FEW);
}

TEST(it_drains_a_process_that_falls_idle)
{
    in_a_child(idle);
}

/* After a burst of deferrals, the thread asks for the grace periods. */
static void idle_after_deferrals(void)
{
    struct prudence_cache *cache = prudence_cache_create("deferred", BYTES, NULL);

    for (unsigned i = 0; i < BLOCKS; i++)
        blocks[i] = prudence_cache_alloc(cache);
    for (unsigned i = 0; i < BLOCKS; i++)
        prudence_cache_free_deferred(cache, blocks[i]);
    wait_until_alone();
    CHECK(kept() <= FEW);
}

TEST(it_merges_what_was_deferred)
{
    in_a_child(idle_after_deferrals);
}

static void little(void)
{
    for (unsigned i = 0; i < 1000; i++)
        prudence_free(prudence_malloc(BYTES));
    CHECK(other_threads() == 0);
}

TEST(little_to_give_makes_no_thread)
{
    in_a_child(little);
}

/* Without threads other than the caller, no background thread is made. */
static void alone(void)
{
    own_threads = 1;
    CHECK(prudence_option_set("decay", "100s") == 0); /* so the caller's slow paths leave it */
    burst();
    CHECK(other_threads() == 0);
    CHECK(kept() > FEW);
}

TEST(a_process_without_threads_has_none)
{
    pid_t child;

    child = fork();
    if (child == 0) {
        decay_enabled = true;
        background_set(true);
        background_start();
        alone();
        _exit(0);
    }
    assert_int_equal(status_of(child), 0);
}

static void not_wanted(void)
{
    CHECK(prudence_option_set("background", "0") == 0);
    CHECK(prudence_option_set("decay", "100s") == 0);
    burst();
    CHECK(other_threads() == 0);
    CHECK(kept() > FEW);
}

TEST(none_by_option)
{
    in_a_child(not_wanted);
}

/* Covers handlers that interrupt the library, and the time between the handlers of a fork. */
static void not_now(void)
{
    os_hands_full();
    burst();
    CHECK(other_threads() == 0);
    os_hands_empty();
    burst();
    wait_until_alone();
    CHECK(kept() <= FEW);
}

TEST(none_while_something_is_held)
{
    in_a_child(not_now);
}

/* A child of a process with the background thread has none at first, and gets its own. */
static void forked(void)
{
    pid_t child;
    int status;

    CHECK(prudence_option_set("decay", "100s") == 0); /* so the thread stays */
    burst();
    CHECK(other_threads() == 1);
    threads_settle();
    child = fork();
    if (child == 0) {
        own_threads = 1;
        CHECK(other_threads() == 0);
        burst();
        CHECK(other_threads() == 0);
        have_another_thread();
        CHECK(prudence_option_set("decay", "10ms") == 0);
        for (unsigned i = 0; i < 1000 && kept() > FEW; i++) { /* not each burst checks */
            os_sleep_ns(20000000);
            burst();
            wait_until_alone();
        }
        CHECK(kept() <= FEW);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    exit(0); /* exits while the thread exists */
}

TEST(it_crosses_forks_and_exit)
{
    in_a_child(forked);
}

/* The system refuses new threads, so the callers do all the work. */
static void sandboxed(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
        _exit(0);
    burst();
    CHECK(other_threads() == 0);
    for (unsigned i = 0; i < 60000 && kept() > FEW; i++) {
        os_sleep_ns(1000000);
        for (unsigned k = 0; k < MANY; k++)
            blocks[k] = prudence_malloc(1200);
        for (unsigned k = 0; k < MANY; k++)
            prudence_free(blocks[k]);
    }
    CHECK(kept() <= FEW);
}

TEST(nothing_depends_on_it)
{
    in_a_child(sandboxed);
}

static void *burst_in_thread(void *argument)
{
    burst();
    return argument;
}

static void on_a_small_stack(void)
{
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 16384);
    CHECK(pthread_create(&thread, &attributes, burst_in_thread, NULL) == 0);
    pthread_join(thread, NULL);
    wait_until_alone();
    CHECK(kept() <= FEW);
}

TEST(a_small_stack_is_enough)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    skip(); /* the stack also has their own state */
#endif
    in_a_child(on_a_small_stack);
}

static uint64_t stopped_at;

static uint64_t stopped_clock(void)
{
    return stopped_at;
}

/* When memory cannot go back, the thread gives up, and does not come again for the same memory. */
static void locked(void)
{
    CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
    stay = 1000; /* otherwise whole regions would be unmapped */
    burst();
    wait_until_alone();
    CHECK(kept() > FEW);
    stopped_at = os_clock_ns();
    posix_clock_injected = stopped_clock;
    burst();
    CHECK(other_threads() == 0);
}

TEST(it_gives_up_where_nothing_goes)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    skip(); /* the shadow of each page would be locked, too */
#endif
    if (!memory_is_lockable(64 << 20))
        skip();
    in_a_child(locked);
}

int main(void)
{
#if defined(__SANITIZE_THREAD__)
    print_message("skipped: it has a thread of its own, and ends children that make one\n");
    return 0;
#endif
    prudence_option_set("decay", "10ms"); /* shortens the waits; no case depends on the value */
    return suite_run(NULL, NULL);
}
