/* SPDX-License-Identifier: MIT */
/*
 * Children of vfork allocate, free and reallocate while other threads run, die at any time, and are
 * told of their mistakes, and the parent goes on. glibc's own children of posix_spawn are not
 * meant.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prudence/prudence.h>

#include "tests/support/suite.h"

#define THREADS  3
#define CHILDREN 3000

static volatile bool stop;
static volatile long wrong;

/* Puts a mark of its own into each object, and looks whether it is still there. */
static void *use_heap(void *mark)
{
    unsigned long *objects[64] = {NULL};

    for (unsigned long turn = 0; !stop; turn++) {
        unsigned long **object = &objects[turn % 64];

        if (*object && ((*object)[0] != (unsigned long)mark || (*object)[1] != (unsigned long)mark))
            wrong++;
        free(*object);
        *object = malloc(16 + turn % 200);
        (*object)[0] = (*object)[1] = (unsigned long)mark;
    }
    for (unsigned i = 0; i < 64; i++)
        free(objects[i]);
    return NULL;
}

static pthread_t threads[THREADS];

static int begin(void **state)
{
    (void)state;
    stop = false;
    wrong = 0;
    for (unsigned long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, use_heap, (void *)(i + 10));
    return 0;
}

static void end(void)
{
    stop = true;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
}

/* The child runs on the parent's stack, so nothing else is in this frame. */
static __attribute__((noinline)) pid_t child_of_vfork(void (*body)(void *argument), void *argument)
{
    pid_t child = vfork();

    if (!child) {
        body(argument);
        _exit(0);
    }
    return child;
}

static void prepare_exec(void *of_parent)
{
    char *texts[3];

    for (unsigned i = 0; i < 3; i++)
        texts[i] = strdup("VARIABLE=some value of the environment that is a little longer");
    texts[2] = realloc(texts[2], 5000);
    if (strcmp(texts[2], "VARIABLE=some value of the environment that is a little longer") != 0)
        _exit(3);
    for (unsigned i = 0; i < 3; i++)
        free(texts[i]);
    free(of_parent);
    free(malloc(100000));
}

static int wait_for(pid_t child)
{
    int status = -1;

    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

TEST(children_allocate_with_other_threads, begin)
{
    for (unsigned i = 0; i < CHILDREN; i++) {
        assert_int_equal(wait_for(child_of_vfork(prepare_exec, malloc(40))), 0);
    }
    end();
}

static void free_no_block(void *unused)
{
    static char no_block[64] __attribute__((aligned(16)));
    char *volatile hidden = no_block;

    (void)unused;
    free(hidden);
}

TEST(misuse_ends_the_child_alone, begin)
{
    struct rlimit none = {0, 0};

    setrlimit(RLIMIT_CORE, &none);
    for (unsigned i = 0; i < 3; i++) {
        int status = wait_for(child_of_vfork(free_no_block, NULL));

        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
    }
    free(malloc(100));
    end();
}

static volatile pid_t victim;

static void allocate_until_killed(void *unused)
{
    void *volatile objects[16] = {NULL};

    (void)unused;
    victim = (pid_t)syscall(SYS_getpid);
    for (unsigned i = 0;; i++) {
        free(objects[i % 16]);
        objects[i % 16] = malloc(i % 300 * 10);
    }
}

static void *kill_victims(void *unused)
{
    while (!stop) {
        struct timespec moment = {.tv_nsec = 300000};

        if (victim)
            kill(victim, SIGKILL);
        nanosleep(&moment, NULL);
    }
    return unused;
}

/* The parent can then do all that waits for locks and lines: it forks, and destroys a cache. */
TEST(children_that_are_killed_hold_nothing, begin)
{
    struct prudence_cache *cache = prudence_cache_create("cache", 100, NULL);
    pthread_t killer;

    pthread_create(&killer, NULL, kill_victims, NULL);
    prudence_cache_free(cache, prudence_cache_alloc(cache));
    for (unsigned i = 0; i < 100; i++) {
        pid_t child = child_of_vfork(allocate_until_killed, NULL);

        victim = 0;
        assert_int_equal(WTERMSIG(wait_for(child)), SIGKILL);
        free(malloc(100));
    }
    end();
    pthread_join(killer, NULL);
    prudence_cache_destroy(cache);
    for (unsigned i = 0; i < 3; i++) {
        pid_t child = fork();

        if (!child) {
            free(malloc(100));
            _exit(0);
        }
        assert_int_equal(wait_for(child), 0);
    }
    malloc_trim(0);
}

static void end_with_7(void *unused)
{
    (void)unused;
    free(malloc(20));
    _exit(7);
}

static void have_child(void *unused)
{
    int status;

    (void)unused;
    free(malloc(10));
    status = wait_for(child_of_vfork(end_with_7, NULL));
    free(malloc(30));
    _exit(WEXITSTATUS(status) + 1);
}

TEST(children_may_call_vfork, begin)
{
    assert_int_equal(WEXITSTATUS(wait_for(child_of_vfork(have_child, NULL))), 8);
    end();
}

static char *last_left;

static void leave_blocks(void *mark)
{
    for (unsigned i = 0; i < 100; i++) {
        char *block = malloc(50);

        if (!block)
            _exit(4);
        last_left = memset(block, *(char *)mark, 50);
    }
}

/* More blocks than the side area has. The last test, because they stay. */
TEST(what_children_leave_behind_is_no_limit, begin)
{
    for (unsigned i = 0; i < 400; i++) {
        char mark = (char)i;

        assert_int_equal(wait_for(child_of_vfork(leave_blocks, &mark)), 0);
        assert_int_equal(last_left[49], mark);
        free(last_left);
    }
    end();
}

SUITE()
