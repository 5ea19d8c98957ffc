/* SPDX-License-Identifier: MIT */
/*
 * Allocates, reads, defers, makes threads and a child, and ends, whatever the system refuses. With
 * -DPLAIN the program uses malloc and knows nothing of us. test_refused_calls.py runs both.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PLAIN
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#define malloc  prudence_malloc
#define calloc  prudence_calloc
#define realloc prudence_realloc
#define free    prudence_free
#endif

static void say(const char *text)
{
    if (write(STDOUT_FILENO, text, strlen(text)) < 0)
        return;
}

/* Fills a block. A refusal must be ENOMEM. */
static char *use(void *block, size_t size)
{
    if (block)
        memset(block, 1, size);
    else if (errno != ENOMEM)
        abort();
    return block;
}

static void work(void)
{
    static const size_t sizes[] = {1, 100, 4000, 33000, 300000, 5000000, 40000000};
    char *blocks[sizeof sizes / sizeof sizes[0]], *bigger;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        blocks[i] = use(i % 2 ? malloc(sizes[i]) : calloc(1, sizes[i]), sizes[i]);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        bigger = use(realloc(blocks[i], 2 * sizes[i]), 2 * sizes[i]);
        free(bigger ? bigger : blocks[i]);
    }
    for (int i = 0; i < 2000; i++)
        free(use(malloc(64), 64));
#ifndef PLAIN
    for (int i = 0; i < 2000; i++) {
        prudence_read_lock();
        prudence_read_unlock();
        prudence_free_deferred(use(malloc(64), 64));
    }
    prudence_synchronize();
    prudence_trim();
#endif
}

static void *in_thread(void *unused)
{
    work();
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    int made = 0;
    pid_t child;

    work();
    for (int i = 0; i < 2; i++)
        made += pthread_create(&threads[made], NULL, in_thread, NULL) == 0;
    while (made)
        pthread_join(threads[--made], NULL);
    child = fork();
    if (child == 0) {
        work();
        _exit(0);
    }
    if (child > 0) {
        int status = 0;
        pid_t ended;

        do
            ended = waitpid(child, &status, 0);
        while (ended < 0 && errno == EINTR);
        if (ended == child && status)
            abort();
    }
    say("done\n");
    return 0;
}
