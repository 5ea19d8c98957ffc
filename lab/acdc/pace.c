/* SPDX-License-Identifier: MIT */
#include "pace.h"

void pace_start(struct pace *pace, struct clock_of_thread *clock, unsigned threads,
                uint64_t max_drift)
{
    *pace = (struct pace){.clock = clock, .threads = threads, .max_drift = max_drift};
    pthread_mutex_init(&pace->lock, NULL);
    pthread_cond_init(&pace->advanced, NULL);
}

void pace_end(struct pace *pace)
{
    pthread_cond_destroy(&pace->advanced);
    pthread_mutex_destroy(&pace->lock);
}

static uint64_t smallest_clock(const struct pace *pace)
{
    uint64_t smallest = NO_TIME;

    for (unsigned i = 0; i < pace->threads; i++) {
        uint64_t time = __atomic_load_n(&pace->clock[i].time, __ATOMIC_SEQ_CST);

        if (time < smallest)
            smallest = time;
    }
    return smallest;
}

/*
 * Called with the lock. Checks again after each store, because a thread that has advanced since the
 * last check may have compared itself with the old slowest time, and then relies on us.
 */
static bool find_slowest(struct pace *pace)
{
    uint64_t smallest;
    bool moved = false;

    while ((smallest = smallest_clock(pace)) != pace->slowest) {
        __atomic_store_n(&pace->slowest, smallest, __ATOMIC_SEQ_CST);
        moved = true;
    }
    if (moved)
        pthread_cond_broadcast(&pace->advanced);
    return moved;
}

/*
 * Only a thread that was the slowest can move the slowest time. Of several such threads the last
 * one sees the clocks of all others, because each stores its clock before it takes the lock.
 */
static bool set_clock(struct pace *pace, unsigned thread, uint64_t time)
{
    uint64_t before = pace->clock[thread].time;
    bool moved = false;

    __atomic_store_n(&pace->clock[thread].time, time, __ATOMIC_SEQ_CST);
    if (before == __atomic_load_n(&pace->slowest, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&pace->lock);
        moved = find_slowest(pace);
        pthread_mutex_unlock(&pace->lock);
    }
    return moved;
}

bool pace_advance(struct pace *pace, unsigned thread)
{
    return set_clock(pace, thread, pace->clock[thread].time + 1);
}

void pace_finish(struct pace *pace, unsigned thread)
{
    set_clock(pace, thread, NO_TIME);
}

static bool is_ahead(const struct pace *pace, unsigned thread)
{
    return pace->clock[thread].time - pace_slowest(pace) > pace->max_drift;
}

void pace_wait(struct pace *pace, unsigned thread)
{
    if (!is_ahead(pace, thread))
        return;
    pthread_mutex_lock(&pace->lock);
    while (is_ahead(pace, thread) && !pace_stopped(pace))
        pthread_cond_wait(&pace->advanced, &pace->lock);
    pthread_mutex_unlock(&pace->lock);
}

void pace_stop(struct pace *pace)
{
    pthread_mutex_lock(&pace->lock);
    __atomic_store_n(&pace->stopped, true, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&pace->advanced);
    pthread_mutex_unlock(&pace->lock);
}
