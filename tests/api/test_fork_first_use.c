/* SPDX-License-Identifier: MIT */
/*
 * A fork while another thread makes the first object of a size. The child lacks that thread, and
 * must be able to make objects of that size (and of any other new size) itself.
 *
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children, no exit beside threads)
 */
#define _DEFAULT_SOURCE /* usleep */

#include <semaphore.h>
#include <stdbool.h>
#include <unistd.h>

#include <prudence/prudence.h>

#include "os/os.h"
#include "support/gp_tsan.h"
#include "support/patience.h"
#include "support/suite.h"
#include "support/threads.h"

static sem_t inside;
static pthread_t maker;
static bool waited;

/* Runs while the maker is half way through making a cache, and gives main time to fork there. It
 * does not wait for the fork, because the fork may wait for the maker. */
static bool let_main_fork(void)
{
    if (waited || !pthread_equal(pthread_self(), maker))
        return false;
    waited = true;
    sem_post(&inside);
    usleep(200000);
    return false;
}

static void *make_one(void *size)
{
    maker = pthread_self();
    os_memory_fails = let_main_fork;
    prudence_free(prudence_malloc((size_t)size));
    return NULL;
}

static void fork_during_first_use(size_t size, size_t size_in_child)
{
    pthread_t thread;
    pid_t child;

    waited = false;
    sem_init(&inside, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, make_one, (void *)size), 0);
    sem_wait(&inside);
    child = fork();
    if (child == 0) {
        alarm(patience(30)); /* a deadlock ends here */
        os_memory_fails = NULL;
        prudence_free(prudence_malloc(size_in_child));
        _exit(0);
    }
    pthread_join(thread, NULL);
    os_memory_fails = NULL;
    assert_int_equal(status_of(child), 0);
}

TEST(while_the_same_size_class_is_made)
{
    fork_during_first_use(1000, 1000);
}

TEST(while_another_size_class_is_made)
{
    fork_during_first_use(3000, 5000);
}

TEST(while_the_first_large_block_is_made)
{
    fork_during_first_use(100000, 200000);
}

SUITE()
