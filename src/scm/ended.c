/* SPDX-License-Identifier: MIT */
/*
 * What destroyed clocks leave. All their dates have expired, but no call walks a ring at once: a list goes to the
 * expired ones whenever these are used up (ended_feed). So a thread, or an orphan, that has ended clocks also has
 * something expired: each function that adds an ended clock, or uses up what has expired, feeds the queue before it
 * returns. A thread that takes over an orphan's clocks takes over its expired queue with them.
 */
#include "scm/scm.h"

/* If the expired list is empty: takes the next list of an ended clock, whose dates were counted when it ended. */
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

/* Time is over on this clock. */
void clock_end(struct scm_thread *self, struct scm_clock *clock)
{
    clock_retire(clock);
    thread_watch(self);
    if (clock_is_empty(clock)) {
        clock_unmake(clock);
        return;
    }
    count_expired(self, clock, clock->dates);
    list_append(&self->ended, &clock->link);
    ended_feed(self);
}
