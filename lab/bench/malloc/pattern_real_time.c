/* SPDX-License-Identifier: MIT */
/*
 * Real-time threads allocate next to normal ones on the same CPU. An allocator whose threads wait
 * for each other without sleeping makes the real-time threads wait for a thread that cannot run.
 * Reports the longest turn of a real-time thread, unless this user may have none.
 */
#define _GNU_SOURCE
#include "load.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <time.h>

#include "measure.h"

#define SECONDS_NS UINT64_C(3000000000)
#define PAUSE_NS   200000
#define PRIORITY   10
#define TURN       64 /* blocks */
#define LEAST      60000
#define FARTHER    40 /* from one size to the next */
#define EACH       2  /* threads of each kind */

struct turns {
    pthread_t thread;
    bool real_time;
    bool refused; /* it runs as a normal thread */
    uint64_t end, count, worst_ns;
};

static void turn(struct turns *turns)
{
    struct block blocks[TURN];
    uint64_t began = now_ns(), took;

    for (unsigned i = 0; i < TURN; i++)
        blocks[i] = block_make(LEAST + FARTHER * i);
    for (unsigned i = 0; i < TURN; i++)
        block_end(&blocks[i]);
    took = now_ns() - began;
    if (took > turns->worst_ns)
        turns->worst_ns = took;
    turns->count++;
}

static void *take_turns(void *argument)
{
    const struct sched_param priority = {.sched_priority = PRIORITY};
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct turns *turns = argument;

    turns->refused = turns->real_time && sched_setscheduler(0, SCHED_FIFO, &priority);
    do {
        turn(turns);
        if (turns->real_time)
            nanosleep(&pause, NULL);
    } while (now_ns() < turns->end);
    return NULL;
}

/* Returns the first CPU that this process may use. */
static cpu_set_t one_cpu(void)
{
    cpu_set_t all, one;
    int cpu = 0;

    CPU_ZERO(&one);
    if (!sched_getaffinity(0, sizeof all, &all)) {
        while (!CPU_ISSET(cpu, &all))
            cpu++;
    }
    CPU_SET(cpu, &one);
    return one;
}

static uint64_t real_time(const struct load *load)
{
    struct turns all[2 * EACH] = {0};
    cpu_set_t cpu = one_cpu();
    uint64_t end = now_ns() + load_scaled(load, SECONDS_NS), count = 0, worst_ns = 0;
    bool refused = false;

    sched_setaffinity(0, sizeof cpu, &cpu);
    for (unsigned i = 0; i < 2 * EACH; i++) {
        all[i].real_time = i >= EACH;
        all[i].end = end;
        if (pthread_create(&all[i].thread, NULL, take_turns, &all[i]))
            load_fail("cannot start thread %u", i);
    }
    for (unsigned i = 0; i < 2 * EACH; i++) {
        pthread_join(all[i].thread, NULL);
        count += all[i].count;
        refused |= all[i].refused;
        if (all[i].real_time && all[i].worst_ns > worst_ns)
            worst_ns = all[i].worst_ns;
    }
    if (!refused)
        load_said("worst turn, ms", (double)worst_ns / 1e6);
    return count * TURN;
}

const struct pattern pattern_memory_real_time = {
    "memory-real-time", "64 blocks of 60,000 bytes by real-time and normal threads on one CPU, 3 s",
    1, 1, .run = real_time};
