/* SPDX-License-Identifier: MIT */
/*
 * glibc may free with the lock on its list of stacks held, and pthread_create() takes that lock.
 * Making the thread that drains a process in such a free would deadlock, so the program's next call
 * makes that thread. Fast paths are closed, so that every call could make it.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prudence/prudence.h>
#include <prudence/stats.h>

#include "support/patience.h"
#include "support/self.h"
#include "support/suite.h"
#include "support/threads.h"

#define BLOCKS 20000
#define STACK  ((size_t)64 << 20) /* more than glibc keeps of free stacks */

static void *volatile blocks[BLOCKS];
static pthread_barrier_t barrier;

static void *wait_twice(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void keep_much(void)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(1000);
        memset(blocks[i], 1, 1000);
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        free(blocks[i]);
}

/* Keeps the process from being alone, because then it would have no such thread. */
static void *stay(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static __thread bool stand_in_allocates;

int *__errno_location(void);

/* Stands in for the C library's function, which the library calls in each slow path. */
int *__errno_location(void)
{
    static int *(*real)(void);
    static __thread volatile bool inside; /* volatile: <errno.h> says that calls change nothing */

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "__errno_location");
    if (stand_in_allocates && !inside) {
        inside = true;
        free(blocks[0] = malloc(1000));
        inside = false;
    }
    return real();
}

static void free_a_stack(bool in_stand_in)
{
    pthread_attr_t attributes;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, stay, NULL), 0);
    assert_int_equal(prudence_option_set("background", "0"), 0);
    assert_int_equal(prudence_option_set("decay", "100s"), 0);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    assert_int_equal(pthread_create(&thread, &attributes, wait_twice, NULL), 0);
    pthread_barrier_wait(&barrier);
    keep_much();
    assert_int_equal(threads_now(), 3);
    pthread_barrier_wait(&barrier);
    while (threads_now() > 2) /* a thread that ends may make that thread, too */
        usleep(1000);
    assert_int_equal(prudence_option_set("background", "idle"), 0);
    stand_in_allocates = in_stand_in;
    pthread_join(thread, NULL); /* frees its stack and storage */
    stand_in_allocates = false;
    free(blocks[0] = malloc(1000));
    assert_int_equal(threads_now(), 3);
    assert_int_equal(prudence_option_set("decay", "10ms"), 0);
    assert_int_equal(prudence_option_set("background", "0"), 0);
}

static pid_t child;

/* Ends a deadlock from outside, because signals are blocked while a thread is made. */
static void end_deadlock(int number)
{
    (void)number;
    kill(child, SIGKILL);
}

static void expect_no_deadlock(bool in_stand_in)
{
    int status;

    child = fork();
    if (child == 0) {
        free_a_stack(in_stand_in);
        _exit(0);
    }
    signal(SIGALRM, end_deadlock);
    alarm(patience(60));
    while (waitpid(child, &status, 0) != child)
        ;
    alarm(0);
    assert_int_equal(status, 0);
}

TEST(a_stack_is_freed)
{
    expect_no_deadlock(false);
}

TEST(a_stack_is_freed_and_a_function_that_is_called_there_allocates)
{
    expect_no_deadlock(true);
}

int main(int argc, char **argv)
{
    static const char options[] = "check=1,trace=0,sandbox=0";
    const char *now = getenv("PRUDENCE_OPTIONS");

    (void)argc;
    if (!now || strcmp(now, options) != 0) {
        setenv("PRUDENCE_OPTIONS", options, 1);
        self_exec(argv);
    }
    return suite_run(NULL, NULL);
}
