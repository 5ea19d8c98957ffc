/* SPDX-License-Identifier: MIT */
/* Threads that make the calls that a test asks for, one after the other. */
#ifndef TESTS_SUPPORT_ACTOR_H
#define TESTS_SUPPORT_ACTOR_H

#include <pthread.h>
#include <semaphore.h>

#include "support/suite.h"

struct actor {
    pthread_t thread;
    sem_t go, done;
    int (*act)(void *argument);
    void *argument;
    int result;
};

static inline void *actor_main(void *argument)
{
    struct actor *actor = argument;

    for (;;) {
        while (sem_wait(&actor->go))
            ;
        if (!actor->act)
            return NULL;
        actor->result = actor->act(actor->argument);
        sem_post(&actor->done);
    }
}

static inline void actor_start(struct actor *actor)
{
    sem_init(&actor->go, 0, 0);
    sem_init(&actor->done, 0, 0);
    assert_int_equal(pthread_create(&actor->thread, NULL, actor_main, actor), 0);
}

/* Has the actor make a call, waits until the call returns, and returns the result. */
static inline int does(struct actor *actor, int (*act)(void *), void *argument)
{
    actor->act = act;
    actor->argument = argument;
    sem_post(&actor->go);
    while (sem_wait(&actor->done))
        ;
    return actor->result;
}

/* Ends the actor's thread. */
static inline void actor_end(struct actor *actor)
{
    actor->act = NULL;
    sem_post(&actor->go);
    pthread_join(actor->thread, NULL);
    sem_destroy(&actor->go);
    sem_destroy(&actor->done);
}

#endif /* TESTS_SUPPORT_ACTOR_H */
