/* SPDX-License-Identifier: MIT */
/*
 * Ticks. Local: the clock advances, and one list of descriptors has expired. Global: the thread says
 * that it is ready, in the phase of global time that is under way (gp/phases.c); the first time in each
 * phase its own view of global time advances, and whoever is last advances global time. Further ticks
 * look again whether all have ticked: threads may be gone that never said so (fork).
 *
 * A thread that takes no part is refused: if its tick made it take part, one tick in the wrong thread would
 * hold up global time for as long as that thread lives.
 *
 * The two run at the same speed but not in step, which is why scm_global_refresh adds two units.
 */
#include "scm/scm.h"

int scm_tick(void)
{
    struct scm_thread *self = scm_self;
    bool waiting;

    if (unlikely(!self))
        return scm_refuse_absent("scm_tick");
    waiting = something_waits(self);
    clock_advance(&self->local);
    if (unlikely(!list_is_empty(&self->clocks)))
        clocks_follow(self, true);
    collect_after_tick(self, waiting);
    return 0;
}

int scm_global_tick(void)
{
    struct scm_thread *self = scm_self;
    uint64_t phase;
    bool waiting;

    if (unlikely(!self))
        return scm_refuse_absent("scm_global_tick");
    waiting = something_waits(self);
    phase = gp_phases_tick(scm_phases);
    if (phase != self->phase) {
        self->phase = phase;
        clock_advance(&self->global);
    }
    gp_phases_advance(scm_phases);
    if (unlikely(!list_is_empty(&self->clocks)))
        clocks_follow(self, false);
    collect_after_tick(self, waiting);
    return 0;
}

int scm_clock_tick(struct scm_clock *clock)
{
    struct scm_thread *self;
    int error = clock_check(clock, "scm_clock_tick", &self);
    bool waiting;

    if (error)
        return error;
    waiting = something_waits(self);
    if (clock->kind == REAL_TIME_CLOCK)
        clock_follow_time(clock);
    else
        clock_advance(clock);
    collect_after_tick(self, waiting);
    return 0;
}

int scm_collect(void)
{
    struct scm_thread *self = scm_self;

    if (unlikely(!self))
        return scm_refuse_absent("scm_collect");
    clocks_follow(self, false);
    expired_take(self, UINT64_MAX);
    return 0;
}
