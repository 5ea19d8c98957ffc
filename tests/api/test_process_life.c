/* SPDX-License-Identifier: MIT */
/*
 * The library works before main, after exit, across exec, and in threads that end.
 *
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children, no exit with other
 * threads)
 */
#define _GNU_SOURCE

#include <pthread.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/suite.h"

static void use_everything(void)
{
    struct prudence_cache *cache = prudence_cache_create("brief", 100, NULL);

    prudence_read_lock();
    prudence_free_deferred(prudence_malloc(64));
    prudence_read_unlock();
    prudence_synchronize();
    for (unsigned i = 0; i < 3000; i++)
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    if (prudence_cache_destroy(cache))
        abort();
}

/* Runs before the library's own constructor (101) if the linker orders it so, otherwise right
 * after it. */
static void *from_constructor;

__attribute__((constructor(101))) static void before_main(void)
{
    use_everything();
    from_constructor = prudence_malloc(100);
    memset(from_constructor, 7, 100);
}

static bool in_role;

__attribute__((destructor)) static void after_main(void)
{
    if (!in_role)
        return;
    use_everything();
    if (write(STDOUT_FILENO, "destructor;", 11) < 0)
        abort();
}

static void at_exit(void)
{
    use_everything();
    prudence_trim();
    if (write(STDOUT_FILENO, "atexit;", 7) < 0)
        abort();
}

/* ------------------------------------------------------------------------- exit and exec */

static void *leave_objects_outstanding(void *unused)
{
    for (unsigned i = 0; i < 1000; i++) {
        if (!prudence_malloc(i))
            abort();
        prudence_free_deferred(prudence_malloc(3 * i));
    }
    return unused;
}

static int exit_outstanding(void)
{
    pthread_t thread;

    in_role = true;
    atexit(at_exit);
    pthread_create(&thread, NULL, leave_objects_outstanding, NULL);
    leave_objects_outstanding(NULL);
    exit(0); /* the other thread may be at any point */
}

static void *stay_inside(void *inside)
{
    prudence_read_lock();
    sem_post(inside);
    pause();
    return NULL;
}

/* Does everything that must work at exit while readers, this thread among them, stay for ever. */
static void at_exit_with_readers(void)
{
    leave_objects_outstanding(NULL);
    prudence_trim();
    if (write(STDOUT_FILENO, "atexit;", 7) < 0)
        abort();
}

static int exit_with_readers(void)
{
    pthread_t thread;
    sem_t inside;

    sem_init(&inside, 0, 0);
    atexit(at_exit_with_readers);
    pthread_create(&thread, NULL, stay_inside, &inside);
    sem_wait(&inside);
    prudence_read_lock();
    exit(0);
}

static int exec_inside(void)
{
    char *again[] = {"self", "outstanding", NULL};
    pthread_t thread;
    sem_t inside;

    sem_init(&inside, 0, 0);
    pthread_create(&thread, NULL, stay_inside, &inside);
    sem_wait(&inside);
    leave_objects_outstanding(NULL);
    prudence_read_lock();
    self_exec(again);
    return 126;
}

/* ------------------------------------------------------------------------------------ tests */

TEST(a_constructor_may_use_the_library)
{
    assert_non_null(from_constructor);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(((char *)from_constructor)[i], 7);
    prudence_free_deferred(from_constructor);
}

TEST(exit_with_objects_outstanding)
{
    expect_exit(0, exit_outstanding(), "");
    assert_string_equal(last_child.output, "atexit;destructor;");
    expect_again(0, "outstanding", "background=1", "");
    assert_string_equal(last_child.output, "atexit;destructor;");
}

TEST(exit_while_readers_stay)
{
    expect_exit(0, exit_with_readers(), "");
    assert_string_equal(last_child.output, "atexit;");
}

TEST(exec_inside_a_section_with_objects_outstanding)
{
    expect_again(0, "exec", "background=1", "");
    assert_string_equal(last_child.output, "atexit;destructor;");
}

/* ---------------------------------------------------------------------------------- threads */

static struct prudence_cache *cache;

static void *fill_and_go(void *unused)
{
    void *objects[500];

    for (unsigned i = 0; i < 500; i++)
        objects[i] = prudence_cache_alloc(cache);
    for (unsigned i = 0; i < 500; i++)
        if (i % 2)
            prudence_cache_free(cache, objects[i]);
        else
            prudence_cache_free_deferred(cache, objects[i]);
    return unused;
}

/* Caches belong to CPUs, so a thread that exits takes nothing with it. */
TEST(threads_that_exit_leave_nothing_stranded)
{
    struct prudence_cache_stats stats;
    uint64_t peak;

    cache = prudence_cache_create("threads", 512, NULL);
    for (unsigned i = 0; i < 200; i++) { /* until the CPUs' caches have reached their size */
        pthread_t thread;

        pthread_create(&thread, NULL, fill_and_go, NULL);
        pthread_join(thread, NULL);
    }
    prudence_cache_stats(cache, &stats);
    peak = stats.slabs_peak;
    for (unsigned i = 0; i < 1000; i++) {
        pthread_t thread;

        pthread_create(&thread, NULL, fill_and_go, NULL);
        pthread_join(thread, NULL);
    }
    prudence_cache_stats(cache, &stats);
    print_message("slabs: peak %llu after 200 threads, %llu after 1200\n", (unsigned long long)peak,
                  (unsigned long long)stats.slabs_peak);
    assert_true(stats.slabs_peak <= 3 * peak);
    assert_int_equal(stats.objects_live, 0);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return strcmp(argv[1], "exec") == 0 ? exec_inside() : exit_outstanding();
    return suite_run(NULL, NULL);
}
