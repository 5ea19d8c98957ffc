/* SPDX-License-Identifier: MIT */
/*
 * Forks with readers, first uses of sizes, and busy threads (support/fork_matrix.h). Children
 * made by _Fork and clone, which skip the fork handlers, are noticed, and reported once if the
 * parent had threads. Children that share their parent's memory change nothing.
 *
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children, no exit with threads)
 * ctest: inlined-too
 */
#define _GNU_SOURCE

#include <sched.h>
#include <spawn.h>

#include <prudence/stats.h>

#include "gp/user/readers.h"
#include "gp/user/slots.h"
#include "support/fork_matrix.h"
#include "support/stats.h"

extern char **environ;

/* ----------------------------------------------------------------------------- the thread's own */

static uint64_t *object;

static void enter_section(void)
{
    object = prudence_malloc(64);
    *object = 4711;
    prudence_read_lock();
}

/* The section holds up grace periods for longer than the time after which drivers look for threads
 * that have ended. */
static int section_lives_on(void)
{
    unsigned long long end = now_ns() + 30000000;
    prudence_gp_t cookie;

    if (!prudence_read_lock_held())
        return 1;
    prudence_free_deferred(object); /* unlinked, and this section itself has seen it */
    while (now_ns() < end) {
        uint64_t *other = prudence_malloc(64);

        if (other == object)
            return 2;
        *other = 0;
        prudence_free_deferred(other);
        prudence_gp_poll_state(prudence_gp_start_poll());
    }
    cookie = prudence_gp_start_poll();
    if (prudence_gp_poll_state(cookie) || *object != 4711)
        return 3;
    prudence_read_unlock();
    prudence_synchronize();
    return !prudence_gp_poll_state(cookie) || prudence_read_lock_held();
}

static void leave_section(void)
{
    prudence_gp_t cookie = prudence_gp_start_poll();

    assert_false(prudence_gp_poll_state(cookie));
    prudence_read_unlock();
    assert_true(prudence_gp_poll_state(cookie));
    prudence_free(object);
}

static struct prudence_domain *domain;

static void go_online(void)
{
    domain = prudence_domain_create("qsbr", PRUDENCE_DOMAIN_QSBR, NULL);
    prudence_qsbr_online(domain);
}

static int is_online(void)
{
    prudence_gp_t cookie = prudence_domain_start_poll(domain);

    if (prudence_domain_poll_state(domain, cookie))
        return 1;
    prudence_qsbr_quiescent(domain);
    if (!prudence_domain_poll_state(domain, cookie))
        return 2;
    prudence_qsbr_offline(domain);
    return prudence_domain_synchronize(domain);
}

static void go_offline(void)
{
    prudence_qsbr_offline(domain);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* -------------------------------------------------------------------------------- other threads */

static struct held_reader here, there;

static void start_readers(void)
{
    domain = prudence_domain_create("other", PRUDENCE_DOMAIN_MEMB, NULL);
    here.domain = NULL;
    there.domain = domain;
    held_reader_start(&here);
    held_reader_start(&there);
}

/* After _Fork they are dropped when one of them would be waited for. */
static int readers_are_gone(void)
{
    prudence_synchronize();
    return stats_now().readers > 1 || prudence_domain_synchronize(domain);
}

static void end_readers(void)
{
    held_reader_end(&here);
    held_reader_end(&there);
    prudence_synchronize();
    assert_int_equal(prudence_domain_synchronize(domain), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static const struct {
    size_t here, in_child;
} sizes[] = {{1000, 1000}, {3000, 5000}, {100000, 200000}};
static unsigned size;
static __thread bool makes_first;

/* Runs while the maker is half way through making a cache. Fork may wait for the maker. */
static bool let_main_fork(void)
{
    if (makes_first)
        fork_reach_with_lock();
    makes_first = false;
    return false;
}

static void *make_first_of_size(void *unused)
{
    makes_first = true;
    os_memory_fails = let_main_fork;
    prudence_free(prudence_malloc(sizes[size].here));
    return unused;
}

static int size_is_made(void)
{
    os_memory_fails = NULL;
    prudence_free(prudence_malloc(sizes[size].in_child));
    return 0;
}

static void next_size(void)
{
    os_memory_fails = NULL;
    size++;
}

static void read_and_make_caches(void)
{
    static unsigned turn; /* atomic */
    unsigned i = __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED);
    struct prudence_cache *cache = prudence_cache_create("short-lived", 100, NULL);

    prudence_read_lock();
    prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    prudence_read_unlock();
    prudence_free_deferred(prudence_malloc(i % 5000));
    while (prudence_cache_destroy(cache) == EBUSY)
        ; /* another test checks the effect */
}

/* ----------------------------------------------------------------------------------- the matrix */

static const struct fork_row first = {"a section of a process with one thread",
                                      enter_section,
                                      NULL,
                                      NULL,
                                      section_lives_on,
                                      leave_section,
                                      FORK_ALSO_BARE};

/* Where there never was another thread, nothing can be lost, and nothing is reported. */
TEST_FIRST(a_process_of_one_thread)
{
    fork_matrix(&first, 1);
}

static const struct fork_row rows[] = {
    {"the first object of a size", .other = make_first_of_size, .in_child = size_is_made,
     .tear_down = next_size, .flags = FORK_ONCE},
    {"the first object of another size", .other = make_first_of_size, .in_child = size_is_made,
     .tear_down = next_size, .flags = FORK_ONCE},
    {"the first large block", .other = make_first_of_size, .in_child = size_is_made,
     .tear_down = next_size, .flags = FORK_ONCE},
    {"a section", enter_section, .in_child = section_lives_on, .tear_down = leave_section,
     .flags = FORK_ALSO_BARE},
    {"a thread that is online", go_online, .in_child = is_online, .tear_down = go_offline},
    {"readers", start_readers, .in_child = readers_are_gone, .tear_down = end_readers,
     .flags = FORK_ALSO_BARE},
    {"busy threads", .busy = read_and_make_caches},
};

TEST(with_other_threads)
{
    fork_matrix(rows, sizeof rows / sizeof rows[0]);
}

/* ----------------------------------------------------------------- without the handlers of fork */

static int allocate_only(void *unused)
{
    for (unsigned i = 1; i < 100; i++)
        prudence_free(prudence_malloc(i));
    return 42;
}

TEST(what_is_safe_is_not_reported)
{
    struct child_result result;

    child_run_by(_Fork, allocate_only, NULL, &result);
    assert_child_result(&result);
    assert_false(child_said(&result, FORK_NOTICED));
}

#ifdef __GLIBC__ /* whose mutexes name their holders */

static struct os_lock lock = OS_LOCK_INIT(OS_RANK_PAGES);

static void *hold(void *unused)
{
    os_lock_take(&lock);
    fork_reach();
    os_lock_release(&lock);
    return unused;
}

static int take_lock(void *unused)
{
    os_lock_take(&lock);
    return 1;
}

TEST(a_lock_whose_holder_is_not_there)
{
    struct child_result result;

    fork_while(hold, _Fork, take_lock, NULL, &result);
    assert_true(child_died(&result));
    assert_true(child_said(&result, "a lock of the library is held by thread"));
}

#endif

/* ------------------------------------------------------------------------------ shared memory */

static int in_shared_memory(void *unused)
{
    os_copy_check();
    _exit(os_copy_made ? 1 : 42);
}

static pid_t by_vfork(void)
{
    pid_t child = vfork();

    if (child == 0)
        _exit(in_shared_memory(NULL));
    return child;
}

static pid_t by_clone_vm(void)
{
    static char stack[65536] __attribute__((aligned(64)));

    return clone(in_shared_memory, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
}

static pid_t by_spawn(void)
{
    char *arguments[] = {"sh", "-c", "exit 42", NULL};
    pid_t child = -1;

    posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ);
    return child;
}

TEST(children_that_share_memory_change_nothing)
{
    pid_t (*const makes[])(void) = {by_vfork, by_clone_vm, by_spawn};
    uint64_t before = stats_now().readers;

    for (unsigned i = 0; i < sizeof makes / sizeof makes[0]; i++) {
        int status;

        enter_section();
        assert_true(waitpid(makes[i](), &status, 0) > 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
        assert_true(prudence_read_lock_held());
        leave_section();
    }
    assert_int_equal(stats_now().readers, before);
    assert_false(os_copy_made);
}

static void *reads(void *cookie)
{
    prudence_read_lock();
    prudence_read_unlock();
    *(prudence_gp_t *)cookie = prudence_gp_start_poll();
    /* Takes back slots of threads that are gone. */
    slots_reap(gp_default_domain(), false, READERS_ALL);
    return poll_often(cookie);
}

/* The thread that comes first is not the one that has sections of before. */
static int another_thread_comes_first(void *unused)
{
    prudence_gp_t cookie;
    bool is_over;

    prudence_read_lock();
    is_over = in_thread(reads, &cookie) != NULL;
    prudence_read_unlock();
    prudence_synchronize();
    return is_over || !prudence_gp_poll_state(cookie) ? 1 : 42;
}

TEST(another_thread_of_a_copy_ends_no_section_of_the_first)
{
    struct child_result result;

    child_run_by(_Fork, another_thread_comes_first, NULL, &result);
    assert_true(child_exited_with(&result, 42));
}

static int another_thread_is_inside(void *unused)
{
    struct held_reader reader = {.domain = NULL};
    prudence_gp_t cookie;
    bool is_over;

    held_reader_start(&reader);
    os_copy_check();
    cookie = prudence_gp_start_poll();
    is_over = poll_often(&cookie) != NULL;
    held_reader_end(&reader);
    prudence_synchronize();
    return is_over || !os_copy_made ? 1 : 42;
}

TEST(the_first_thread_of_a_copy_ends_no_section_of_another)
{
    struct child_result result;

    child_run_by(_Fork, another_thread_is_inside, NULL, &result);
    assert_true(child_exited_with(&result, 42));
}

static int notices(void *unused)
{
    os_copy_check();
    return os_copy_made ? 42 : 1;
}

static void *is_copied(void *result)
{
    child_run_by(_Fork, notices, NULL, result);
    return NULL;
}

/* It has used nothing of the library, and so has no name that the copy could compare. */
TEST(a_copy_by_a_thread_that_is_new_to_the_library)
{
    struct child_result result;

    in_thread(is_copied, &result);
    assert_true(child_exited_with(&result, 42));
}

static struct os_lock held_before = OS_LOCK_INIT(OS_RANK_PAGES);

static void *takes(void *unused)
{
    os_lock_take(&held_before);
    os_lock_release(&held_before);
    return unused;
}

static void wait_until_awaited(void)
{
    while (!(load_relaxed(&held_before.word) & OS_LOCK_AWAITED))
        pause_ms(1);
}

/* The first thread has its lock by the name that it had in the original. */
static int another_thread_waits_for_its_lock(void *few_calls)
{
    pthread_t threads[2];

    if (few_calls && prudence_option_set("sandbox", "1"))
        return 1;
    os_lock_take(&held_before);
    for (unsigned i = 0; i < 2; i++) {
        threads[i] = thread_start(takes, NULL);
        wait_until_awaited();
        os_copy_check();
    }
    pause_ms(50); /* they ask more than once who has it */
    os_lock_release(&held_before);
    threads_join(threads, 2);
    return os_copy_made ? 42 : 2;
}

TEST(a_lock_of_the_first_thread_of_a_copy)
{
    struct child_result result;

    child_run_by(_Fork, another_thread_waits_for_its_lock, NULL, &result);
    assert_true(child_exited_with(&result, 42));
    child_run_by(_Fork, another_thread_waits_for_its_lock, "few calls", &result);
    assert_true(child_exited_with(&result, 42));
}

SUITE(prudence_read_lock(), prudence_read_unlock()) /* the thread is registered */
