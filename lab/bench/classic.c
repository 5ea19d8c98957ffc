/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "classic.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <prudence/rcu.h>

/* callbacks of a softirq, times softirqs before other threads get a turn */
#define BATCH_LIMIT (10 * 10)
#define HIGH_MARK   10000
#define LOW_MARK    100

struct queue {
    bool locked; /* protects first, last and queued */
    struct classic_head *first;
    struct classic_head **last;
    uint64_t queued; /* since the start */
    uint64_t called; /* since the start; written by the reclaimer */
    int cpu;
} __attribute__((aligned(128)));

static struct queue *queues;
static unsigned queue_count;
static void (*call)(struct classic_head *head);

/* Yields instead of spinning, because a thread of the same CPU may have preempted the holder. */
static void queue_lock(struct queue *queue)
{
    while (__atomic_exchange_n(&queue->locked, true, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void queue_unlock(struct queue *queue)
{
    __atomic_store_n(&queue->locked, false, __ATOMIC_RELEASE);
}

void classic_call(void *object, struct prudence_cache *cache)
{
    struct queue *queue = &queues[(unsigned)sched_getcpu() % queue_count];
    struct classic_head *head = object;

    head->next = NULL;
    head->cache = cache;
    queue_lock(queue);
    *queue->last = head;
    queue->last = &head->next;
    __atomic_store_n(&queue->queued, queue->queued + 1, __ATOMIC_RELAXED);
    queue_unlock(queue);
}

static struct classic_head *queue_take(struct queue *queue)
{
    struct classic_head *first;

    queue_lock(queue);
    first = queue->first;
    queue->first = NULL;
    queue->last = &queue->first;
    queue_unlock(queue);
    return first;
}

static uint64_t queue_length(struct queue *queue)
{
    return __atomic_load_n(&queue->queued, __ATOMIC_RELAXED) - queue->called;
}

/* Returns whether the batch may grow without limit, depending on whether the last one could. */
static bool overloaded(struct queue *queue, bool before)
{
    return queue_length(queue) > (before ? LOW_MARK : HIGH_MARK);
}

static void call_all(struct queue *queue, struct classic_head *head)
{
    bool unlimited = overloaded(queue, false);

    for (unsigned in_batch = 0; head; in_batch++) {
        struct classic_head *next = head->next;

        if (in_batch >= BATCH_LIMIT && !unlimited) {
            sched_yield();
            in_batch = 0;
        }
        call(head);
        __atomic_store_n(&queue->called, queue->called + 1, __ATOMIC_RELEASE);
        unlimited = overloaded(queue, unlimited);
        head = next;
    }
}

static void *reclaim(void *argument)
{
    const struct timespec tick = {.tv_nsec = 1000000};
    struct queue *queue = argument;
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(queue->cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    for (;;) {
        struct classic_head *first = queue_take(queue);

        if (first) {
            prudence_synchronize();
            call_all(queue, first);
        } else {
            nanosleep(&tick, NULL);
        }
    }
    return NULL;
}

void classic_start(void (*callback)(struct classic_head *head))
{
    long cpus = sysconf(_SC_NPROCESSORS_CONF);

    call = callback;
    queue_count = cpus > 0 ? (unsigned)cpus : 1;
    queues = aligned_alloc(_Alignof(struct queue), queue_count * sizeof *queues);
    if (!queues)
        abort();
    for (unsigned i = 0; i < queue_count; i++) {
        pthread_t thread;

        queues[i] = (struct queue){.last = &queues[i].first, .cpu = (int)i};
        if (pthread_create(&thread, NULL, reclaim, &queues[i]))
            abort();
        pthread_detach(thread);
    }
}

void classic_barrier(void)
{
    const struct timespec pause = {.tv_nsec = 100000};

    for (unsigned i = 0; i < queue_count; i++) {
        uint64_t goal = __atomic_load_n(&queues[i].queued, __ATOMIC_RELAXED);

        while (__atomic_load_n(&queues[i].called, __ATOMIC_ACQUIRE) < goal)
            nanosleep(&pause, NULL);
    }
}
