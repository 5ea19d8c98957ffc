/* SPDX-License-Identifier: MIT */
/* Coroutines (environment.h). The program changes stacks between any two operations, and a
 * coroutine that one thread began goes on in another. */
#define _GNU_SOURCE
#include "environment.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <ucontext.h>

enum { COUNT = 4, STACK = 64 << 10, TURNS = 50 };

static ucontext_t coroutine[COUNT], *back; /* `back`: context of the thread that runs a coroutine */

/* noinline, so that the compiler keeps no thread-local address over a change of threads. */
static __attribute__((noinline)) void yield_to_thread(unsigned number)
{
    swapcontext(&coroutine[number], back);
}

static void body(unsigned number)
{
    for (unsigned turn = 0; turn < TURNS; turn++) {
        void *block = subject_alloc(48 + number);

        work(20);
        yield_to_thread(number);
        subject_retire(block);
    }
}

/* Runs one turn of each coroutine. */
static void *turn(void *unused)
{
    ucontext_t here;

    (void)unused;
    for (unsigned i = 0; i < COUNT; i++) {
        back = &here;
        if (swapcontext(&here, &coroutine[i]))
            wrong("swapcontext");
    }
    return NULL;
}

static void turn_in_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, turn, NULL))
        wrong("no thread");
    pthread_join(thread, NULL);
}

static bool begin(unsigned number)
{
    static ucontext_t ends[COUNT]; /* unused, because no coroutine reaches the end */
    ucontext_t *context = &coroutine[number];

    if (getcontext(context))
        return false;
    context->uc_stack.ss_sp = malloc(STACK);
    context->uc_stack.ss_size = STACK;
    context->uc_link = &ends[number];
    makecontext(context, (void (*)(void))body, 1, number);
    errno = ENOMEM;
    return context->uc_stack.ss_sp != NULL;
}

bool coroutines(const char *word)
{
    (void)word;
    for (unsigned i = 0; i < COUNT; i++)
        if (!begin(i))
            return false;
    for (unsigned i = 0; i < TURNS; i++) {
        if (i % 2)
            turn_in_thread();
        else
            turn(NULL);
    }
    return true;
}
