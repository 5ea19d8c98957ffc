/* SPDX-License-Identifier: MIT */
/*
 * A process without threads of its own gets none from the library, whatever it frees, so unshare()
 * and setns() of a user namespace work. The same holds in a child of a process with threads, and
 * after all other threads have ended. With another thread there is one for decay, unless the
 * process limits its system calls, as plain programs do.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prudence/prudence.h>

#include "support/suite.h"
#include "support/threads.h"

#define BLOCKS 2000
#define BYTES  8000

static void *volatile blocks[BLOCKS];

/* Frees 16 MB, more than is kept without a thread that gives memory back, and then allocates from
 * unused classes, which could make that thread. Frees alone could not, if the compiler leaves other
 * code of ours in between. */
static void free_much(void)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BYTES);
        memset(blocks[i], 1, BYTES);
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    free(blocks[0] = malloc((size_t)4 << 20));
    for (size_t size = 128; size < 4096; size += 128)
        free(blocks[0] = malloc(size));
}

/* EINVAL means that there is another thread. Whether the system allows namespaces does not matter
 * here. */
static int free_and_unshare(void)
{
    free_much();
    if (threads_now() != 1)
        return 1;
    return unshare(CLONE_NEWUSER) && errno == EINVAL ? 2 : 0;
}

/* The option; NULL: unchanged, so this plain process makes few calls, and no thread for that reason
 * alone. */
static const char *sandbox = "0";

/* Runs `body` in a child. The long decay keeps a background thread alive. */
static int in_a_child(int (*body)(void))
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        if (prudence_option_set("decay", "1s") || prudence_option_set("background", "idle") ||
            (sandbox && prudence_option_set("sandbox", sandbox)))
            _exit(98);
        _exit(body());
    }
    status = status_of(child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

TEST(in_a_process_without_threads)
{
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(in_a_child(free_and_unshare), 0);
}

static pthread_barrier_t barrier;

static void *wait_once(void *unused)
{
    pthread_barrier_wait(&barrier);
    return unused;
}

static pthread_t begin(void)
{
    pthread_t thread;

    pthread_barrier_init(&barrier, NULL, 2);
    if (pthread_create(&thread, NULL, wait_once, NULL))
        _exit(97);
    return thread;
}

static void end(pthread_t thread)
{
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    for (unsigned i = 0; i < 10000 && threads_now() > 1; i++)
        usleep(1000); /* the system may still list it */
}

static int after_threads_have_ended(void)
{
    end(begin());
    return free_and_unshare();
}

TEST(when_all_other_threads_have_ended)
{
    assert_int_equal(in_a_child(after_threads_have_ended), 0);
}

static int as_a_child_of_threads(void)
{
    pthread_t thread = begin();
    int status = in_a_child(free_and_unshare);

    end(thread);
    return status;
}

TEST(in_a_child_of_a_process_with_threads)
{
    assert_int_equal(in_a_child(as_a_child_of_threads), 0);
}

static int with_a_thread(void)
{
    pthread_t thread = begin();
    unsigned found;

    free_much();
    found = threads_now();
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    return (int)found;
}

TEST(a_process_with_threads_has_one_for_decay)
{
    assert_int_equal(in_a_child(with_a_thread), 3);
}

TEST(a_plain_process_has_none)
{
    sandbox = NULL;
    assert_int_equal(in_a_child(with_a_thread), 2);
}

SUITE()
