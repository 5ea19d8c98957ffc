/* SPDX-License-Identifier: MIT */
/* Threads and processes of a test: started, or the test fails, and waited for. */
#ifndef TESTS_SUPPORT_THREADS_H
#define TESTS_SUPPORT_THREADS_H

#include <dirent.h>
#include <pthread.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "support/suite.h"

static inline pthread_t thread_start(void *(*run)(void *argument), void *argument)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, run, argument), 0);
    return thread;
}

/* Runs this in another thread, and returns the result. */
static inline void *in_thread(void *(*run)(void *argument), void *argument)
{
    void *result;

    assert_int_equal(pthread_join(thread_start(run, argument), &result), 0);
    return result;
}

/* Starts threads that get the numbers from 0 on. */
static inline void threads_start(pthread_t *threads, unsigned count, void *(*run)(void *number))
{
    for (uintptr_t i = 0; i < count; i++)
        threads[i] = thread_start(run, (void *)i);
}

static inline void threads_join(const pthread_t *threads, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* Returns the number of threads of this process. */
static inline unsigned threads_now(void)
{
    DIR *tasks = opendir("/proc/self/task");
    unsigned threads = 0;

    while (readdir(tasks))
        threads++;
    closedir(tasks);
    return threads - 2; /* . and .. */
}

/* Waits for this child, and returns how it ended, as waitpid() stores it. */
static inline int status_of(pid_t child)
{
    int status;

    assert_true(child > 0); /* others have no status */
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

#endif /* TESTS_SUPPORT_THREADS_H */
