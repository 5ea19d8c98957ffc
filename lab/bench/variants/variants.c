/* SPDX-License-Identifier: MIT */
/* Functions for programs of RCU variants, and common code of the historical variants. */
#define _GNU_SOURCE
#include "variant.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const struct variant *variant_in_use = &variant_none;
struct variant_place variant_places[PLACES_MAX];
unsigned variant_place_count;

const struct variant *const variants[] = {
    &variant_memb,
    &variant_qsbr,
    &variant_urcu_memb,
    &variant_urcu_mb,
    &variant_urcu_qsbr,
    &variant_induced,
    &variant_batch,
    &variant_taskq,
    &variant_ring,
    &variant_k42,
    &variant_polling,
    &variant_polling_percpu,
    &variant_barrier,
    &variant_xrcu,
    &variant_krcud,
    &variant_preempt,
    &variant_single,
    &variant_none,
    NULL,
};

void variant_start(const struct variant *variant, unsigned places)
{
    variant_in_use = variant;
    variant_place_count = places;
    for (unsigned i = 0; i < places; i++)
        __atomic_store_n(&variant_places[i].is_idle, 1, __ATOMIC_RELAXED);
    if (variant->start)
        variant->start(places);
}

void variant_stop(void)
{
    if (variant_in_use->stop)
        variant_in_use->stop();
}

void variant_idle(unsigned place)
{
    if (variant_in_use->idle)
        variant_in_use->idle(place);
    __atomic_store_n(&variant_places[place].is_idle, 1, __ATOMIC_RELEASE);
    variant_full_fence();
}

void variant_leave(unsigned place)
{
    variant_idle(place);
    if (variant_in_use->leave)
        variant_in_use->leave();
}

void variant_busy(unsigned place)
{
    __atomic_store_n(&variant_places[place].is_idle, 0, __ATOMIC_RELAXED);
    variant_full_fence(); /* pairs with the fence of a thread that finds it idle */
    if (variant_in_use->busy)
        variant_in_use->busy(place);
}

void variant_call(unsigned place, struct variant_head *head,
                  void (*func)(struct variant_head *head))
{
    variant_in_use->call(place, head, func);
}

struct waiter {
    struct variant_head head;
    int over;
};

static void waiter_wake(struct variant_head *head)
{
    struct waiter *waiter = (void *)head;

    __atomic_store_n(&waiter->over, 1, __ATOMIC_RELEASE);
}

void variant_synchronize(unsigned place)
{
    struct waiter waiter = {.over = 0};

    if (variant_in_use->synchronize) {
        variant_in_use->synchronize(place);
        return;
    }
    variant_call(place, &waiter.head, waiter_wake);
    while (!__atomic_load_n(&waiter.over, __ATOMIC_ACQUIRE)) {
        variant_switch(place);
        variant_pause();
    }
}

uint64_t queue_invoke(struct variant_queue *queue)
{
    struct variant_head *head = queue->first;
    uint64_t called = 0;

    queue_make_empty(queue);
    while (head) {
        struct variant_head *next = head->next; /* the callback may free it */

        head->func(head);
        head = next;
        called++;
    }
    return called;
}

/* Lets others run, because there are more threads than CPUs. */
void variant_pause(void)
{
    static __thread unsigned turns;

    if (++turns % 64 == 0)
        variant_sleep_ns(1000);
}

void variant_rest(unsigned place)
{
    static __thread unsigned turns;

    variant_switch(place);
    if (++turns % 64)
        return;
    variant_idle(place);
    variant_sleep_ns(1000);
    variant_busy(place);
}

void variant_sleep_ns(uint64_t nanoseconds)
{
    struct timespec time = {.tv_sec = (time_t)(nanoseconds / 1000000000),
                            .tv_nsec = (long)(nanoseconds % 1000000000)};

    nanosleep(&time, NULL);
}

/* ----------------------------------------------------------------------------------- the tick */

uint64_t variant_ticks;
static pthread_t ticker;
static int ticking;

static void *tick(void *unused)
{
    while (__atomic_load_n(&ticking, __ATOMIC_RELAXED)) {
        variant_sleep_ns(VARIANT_TICK_NS);
        __atomic_store_n(&variant_ticks, variant_ticks + 1, __ATOMIC_RELAXED);
    }
    return unused;
}

void variant_ticks_start(void)
{
    __atomic_store_n(&ticking, 1, __ATOMIC_RELAXED);
    if (pthread_create(&ticker, NULL, tick, NULL)) {
        perror("pthread_create");
        exit(EXIT_FAILURE);
    }
}

void variant_ticks_stop(void)
{
    __atomic_store_n(&ticking, 0, __ATOMIC_RELAXED);
    pthread_join(ticker, NULL);
}
