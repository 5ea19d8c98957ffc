/* SPDX-License-Identifier: MIT */
/*
 * Frees the lists of destroyed clocks. All their dates have expired, but no call walks a ring at
 * once. Instead, a list moves to the expired queue whenever the queue is used up (ended_feed). So a
 * thread or an orphan that has ended clocks also has an expired descriptor, because each function
 * that adds an ended clock or uses up the queue feeds the queue before returning. A thread that
 * takes over an orphan's clocks takes over the expired queue with them.
 */
#include "shortterm/scm.h"

/* Moves the next list of an ended clock to the expired list if that is empty. The dates were
 * counted when the clock ended. */
void ended_feed(struct scm_thread *self)
{
    struct scm_clock *clock = list_first(&self->ended, struct scm_clock, link);
    uint64_t place;

    if (!clock || self->expired.last)
        return;
    place = clock_first(clock, 0);
    list_expires(self, &clock->ring[place]);
    marks_clear(clock->marks, clock->mask + 1, place);
    count_add(&self->counts.steps, 1);
    if (clock_is_empty(clock))
        clock_unmake(clock);
}

/* Ends a clock. All its dates expire. */
void clock_end(struct scm_thread *self, struct scm_clock *clock)
{
    clock_retire(clock);
    thread_state_watch(self);
    if (clock_is_empty(clock)) {
        clock_unmake(clock);
        return;
    }
    count_expired(self, clock, clock->dates);
    list_append(&self->ended, &clock->link);
    ended_feed(self);
}
