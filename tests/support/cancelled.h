/* SPDX-License-Identifier: MIT */
/*
 * Calls a function in a thread with a pending cancellation. Functions of Prudence are no
 * cancellation points, so the call returns.
 */
#ifndef TESTS_SUPPORT_CANCELLED_H
#define TESTS_SUPPORT_CANCELLED_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct cancelled {
    void (*call)(void);
    pthread_barrier_t barrier;
    bool returned;
};

static inline void *cancelled_thread(void *argument)
{
    struct cancelled *cancelled = argument;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_barrier_wait(&cancelled->barrier); /* the thread exists */
    pthread_barrier_wait(&cancelled->barrier); /* the thread is cancelled */
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    cancelled->call();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    cancelled->returned = true;
    return NULL;
}

static inline bool returns_when_cancelled(void (*call)(void))
{
    struct cancelled cancelled = {.call = call};
    pthread_t thread;

    pthread_barrier_init(&cancelled.barrier, NULL, 2);
    if (pthread_create(&thread, NULL, cancelled_thread, &cancelled))
        return false;
    pthread_barrier_wait(&cancelled.barrier);
    pthread_cancel(thread);
    pthread_barrier_wait(&cancelled.barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&cancelled.barrier);
    return cancelled.returned;
}

#endif /* TESTS_SUPPORT_CANCELLED_H */
