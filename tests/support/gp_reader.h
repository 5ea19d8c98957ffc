/* SPDX-License-Identifier: MIT */
/* A thread that stays inside a read-side critical section until the test releases it. */
#ifndef TESTS_SUPPORT_GP_READER_H
#define TESTS_SUPPORT_GP_READER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#include <prudence/poll.h>
#include <prudence/rcu.h>

struct held_reader {
    struct prudence_domain *domain; /* NULL: the default domain, through the inline functions */
    const char *name;               /* of the thread; unused here */
    pthread_t thread;
    pid_t tid;
    sem_t inside, leave;
};

pid_t gettid(void);

static inline void *held_reader_run(void *argument)
{
    struct held_reader *reader = argument;

    reader->tid = gettid();
    if (reader->domain)
        prudence_domain_read_lock(reader->domain);
    else
        prudence_read_lock();
    sem_post(&reader->inside);
    while (sem_wait(&reader->leave))
        ;
    if (reader->domain)
        prudence_domain_read_unlock(reader->domain);
    else
        prudence_read_unlock();
    return NULL;
}

/* Returns when the thread is inside the section. */
static inline void held_reader_start(struct held_reader *reader)
{
    sem_init(&reader->inside, 0, 0);
    sem_init(&reader->leave, 0, 0);
    if (pthread_create(&reader->thread, NULL, held_reader_run, reader))
        abort();
    while (sem_wait(&reader->inside))
        ;
}

static inline void held_reader_end(struct held_reader *reader)
{
    sem_post(&reader->leave);
    pthread_join(reader->thread, NULL);
}

/* For in_thread(). Returns the cookie if that is over after some polls, else NULL. */
static inline void *poll_often(void *cookie)
{
    bool is_over = false;

    for (unsigned i = 0; i < 100; i++)
        is_over |= prudence_gp_poll_state(*(prudence_gp_t *)cookie);
    return is_over ? cookie : NULL;
}

static inline void pause_ms(unsigned milliseconds)
{
    struct timespec huge = {.tv_sec = milliseconds / 1000,
                            .tv_nsec = (long)(milliseconds % 1000) * 1000000};

    nanosleep(&huge, NULL);
}

static inline unsigned long long now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec;
}

#endif /* TESTS_SUPPORT_GP_READER_H */
