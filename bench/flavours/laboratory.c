/* SPDX-License-Identifier: MIT */
/* What a program of RCU variants calls, and what the historical variants share. */
#define _GNU_SOURCE
#include "flavour.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const struct flavour *lab_flavour = &flavour_none;
struct lab_place lab_places[PLACES_MAX];
unsigned lab_place_count;

const struct flavour *const flavours[] = {
    &flavour_memb,      &flavour_qsbr,    &flavour_urcu_memb, &flavour_urcu_mb,
    &flavour_urcu_qsbr, &flavour_induced, &flavour_taskq,     &flavour_ring,
    &flavour_polling,   &flavour_barrier, &flavour_none,      NULL,
};

void lab_start(const struct flavour *flavour, unsigned places)
{
    lab_flavour = flavour;
    lab_place_count = places;
    for (unsigned i = 0; i < places; i++)
        __atomic_store_n(&lab_places[i].is_idle, 1, __ATOMIC_RELAXED);
    if (flavour->start)
        flavour->start(places);
}

void lab_stop(void)
{
    if (lab_flavour->stop)
        lab_flavour->stop();
}

void lab_idle(unsigned place)
{
    if (lab_flavour->idle)
        lab_flavour->idle(place);
    __atomic_store_n(&lab_places[place].is_idle, 1, __ATOMIC_RELEASE);
    lab_full_fence();
}

void lab_leave(unsigned place)
{
    lab_idle(place);
    if (lab_flavour->leave)
        lab_flavour->leave();
}

void lab_busy(unsigned place)
{
    __atomic_store_n(&lab_places[place].is_idle, 0, __ATOMIC_RELAXED);
    lab_full_fence(); /* pairs with the fence of a thread that finds it idle */
    if (lab_flavour->busy)
        lab_flavour->busy(place);
}

void lab_call(unsigned place, struct lab_head *head, void (*func)(struct lab_head *head))
{
    lab_flavour->call(place, head, func);
}

struct waiter {
    struct lab_head head;
    int over;
};

static void waiter_wake(struct lab_head *head)
{
    struct waiter *waiter = (void *)head;

    __atomic_store_n(&waiter->over, 1, __ATOMIC_RELEASE);
}

void lab_synchronize(unsigned place)
{
    struct waiter waiter = {.over = 0};

    if (lab_flavour->synchronize) {
        lab_flavour->synchronize(place);
        return;
    }
    lab_call(place, &waiter.head, waiter_wake);
    while (!__atomic_load_n(&waiter.over, __ATOMIC_ACQUIRE)) {
        lab_switch(place);
        lab_pause();
    }
}

void queue_invoke(struct lab_queue *queue)
{
    struct lab_head *head = queue->first;

    queue_make_empty(queue);
    while (head) {
        struct lab_head *next = head->next; /* the callback may free it */

        head->func(head);
        head = next;
    }
}

/* Lets others run: there are more threads than CPUs. */
void lab_pause(void)
{
    static __thread unsigned turns;

    if (++turns % 64 == 0)
        lab_sleep_ns(1000);
}

void lab_rest(unsigned place)
{
    static __thread unsigned turns;

    lab_switch(place);
    if (++turns % 64)
        return;
    lab_idle(place);
    lab_sleep_ns(1000);
    lab_busy(place);
}

void lab_sleep_ns(uint64_t nanoseconds)
{
    struct timespec time = {.tv_sec = (time_t)(nanoseconds / 1000000000),
                            .tv_nsec = (long)(nanoseconds % 1000000000)};

    nanosleep(&time, NULL);
}

/* ----------------------------------------------------------------------------------- the tick */

uint64_t lab_ticks;
static pthread_t ticker;
static int ticking;

static void *tick(void *unused)
{
    while (__atomic_load_n(&ticking, __ATOMIC_RELAXED)) {
        lab_sleep_ns(LAB_TICK_NS);
        __atomic_store_n(&lab_ticks, lab_ticks + 1, __ATOMIC_RELAXED);
    }
    return unused;
}

void lab_ticks_start(void)
{
    __atomic_store_n(&ticking, 1, __ATOMIC_RELAXED);
    if (pthread_create(&ticker, NULL, tick, NULL)) {
        perror("pthread_create");
        exit(EXIT_FAILURE);
    }
}

void lab_ticks_stop(void)
{
    __atomic_store_n(&ticking, 0, __ATOMIC_RELAXED);
    pthread_join(ticker, NULL);
}
