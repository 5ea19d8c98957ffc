/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "crew.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "measure.h"

#define WARM_UP 0.2 /* share of the measured time */

static bool measured, over; /* atomic */
static bool something;      /* atomic: a turn that began during the measurement has ended */

/* Binds the thread to the usable CPU with that rank, if there is one. */
static void pin_to(unsigned number)
{
    cpu_set_t usable;

    if (sched_getaffinity(0, sizeof usable, &usable))
        return;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &usable) || number-- > 0)
            continue;
        pin_to_cpu(cpu);
        return;
    }
}

static void *work(void *argument)
{
    struct crew_member *self = argument;
    bool counted = false;

    if (self->crew->pinned)
        pin_to(self->number);
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        if (!counted && __atomic_load_n(&measured, __ATOMIC_RELAXED)) {
            counted = true;
            self->before = self->done;
        }
        self->crew->turn(self);
        if (counted && !__atomic_load_n(&something, __ATOMIC_RELAXED))
            __atomic_store_n(&something, true, __ATOMIC_RELAXED);
    }
    if (!counted) /* the measurement ended before this thread got a CPU */
        self->before = self->done;
    return NULL;
}

static void watch(const struct crew *crew, uint64_t start, double seconds)
{
    for (unsigned i = 1; i <= CREW_LOOKS; i++) {
        sleep_until_ns(start + (uint64_t)(seconds * i / CREW_LOOKS * 1e9));
        if (crew->look)
            crew->look(i - 1);
    }
}

/* Waits for a turn, because on a busy machine no member may have had a CPU during the whole time,
 * and a rate of 0 would mean nothing. */
static void wait_for_something(void)
{
    while (!__atomic_load_n(&something, __ATOMIC_RELAXED))
        sleep_until_ns(now_ns() + 1000000);
}

/* Starts all members. On failure returns NULL with errno, and none runs. */
static struct crew_member *start(const struct crew *crew)
{
    struct crew_member *members = aligned_alloc(APART, crew->threads * sizeof *members);

    __atomic_store_n(&something, false, __ATOMIC_RELAXED);
    __atomic_store_n(&measured, false, __ATOMIC_RELAXED);
    __atomic_store_n(&over, false, __ATOMIC_RELAXED);
    for (unsigned i = 0; members && i < crew->threads; i++) {
        int error;

        crew_member_init(&members[i], i);
        members[i].crew = crew;
        error = pthread_create(&members[i].thread, NULL, work, &members[i]);
        if (!error)
            continue;
        __atomic_store_n(&over, true, __ATOMIC_RELAXED);
        while (i-- > 0)
            pthread_join(members[i].thread, NULL);
        free(members);
        errno = error;
        return NULL;
    }
    return members;
}

double crew_rate(const struct crew *crew, double seconds)
{
    struct crew_member *members = start(crew);
    uint64_t from, done = 0;
    double took;

    if (!members)
        return -1;
    sleep_until_ns(now_ns() + (uint64_t)(seconds * WARM_UP * 1e9));
    if (crew->begin)
        crew->begin();
    from = now_ns();
    __atomic_store_n(&measured, true, __ATOMIC_RELAXED);
    watch(crew, from, seconds);
    wait_for_something();
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    took = (double)(now_ns() - from) / 1e9;
    for (unsigned i = 0; i < crew->threads; i++) {
        pthread_join(members[i].thread, NULL);
        done += members[i].done - members[i].before;
    }
    free(members);
    return (double)done / took;
}
