/* SPDX-License-Identifier: MIT */
/*
 * Ticks. A local tick advances the clock, and one list of descriptors expires. A global tick
 * records that the thread is ready in the current phase of global time (phases.c). The
 * first global tick of a thread in each phase advances the thread's own view of global time, and
 * the last thread to tick advances global time. Further ticks check again whether all have ticked,
 * because threads may be gone without notice (fork).
 *
 * A thread that takes no part is refused. If a tick made it take part, one tick in the wrong thread
 * would hold up global time for as long as that thread lives.
 *
 * The two times run at the same speed but not in step, so scm_global_refresh adds two units.
 *
 * Work for other clocks (real time, ended clocks and ended threads) is done before a local tick and
 * after a global one, so that a list taken over has all of the next phase before it, whether the
 * thread had ticked in this phase or not.
 */
#include "gp/user/drive.h"
#include "shortterm/scm.h"
#include "toolkit/domains/phases.h"

/* Out of line, because most threads have only their two clocks. */
static __attribute__((noinline)) void tick_more(struct scm_thread *self, enum clock_kind kind)
{
    for (unsigned i = 0; kind == LOCAL_CLOCK && i < LISTS_PER_CALL; i++)
        left_step_if_any(self);
    if (self->nothing)
        real_time_look(self, load_relaxed(&scm_eager));
    if (load_relaxed(&scm_left) & LEFT_BY_ENDING)
        scm_threads_reap_ending();
    left_take(self, kind);
}

static inline bool has_more(const struct scm_thread *self)
{
    return unlikely(self->more | load_relaxed(&scm_left));
}

int scm_tick(void)
{
    struct scm_thread *self = scm_self;
    bool waiting;

    if (unlikely(!self))
        return scm_thread_refuse_absent("scm_tick");
    waiting = something_waits(self);
    if (has_more(self))
        tick_more(self, LOCAL_CLOCK);
    clock_advance(self, &self->local);
    collect_after_tick(self, waiting);
    return 0;
}

int scm_global_tick(void)
{
    struct scm_thread *self = scm_self;
    uint64_t phase;
    bool waiting;

    if (unlikely(!self))
        return scm_thread_refuse_absent("scm_global_tick");
    waiting = something_waits(self);
    phase = gp_phases_tick(scm_phases);
    if (phase != self->phase) {
        self->phase = phase;
        gp_drive_tell_over(
            scm_phases); /* the others' work before their ticks precedes reuse of objects */
        clock_advance(self, &self->global);
    }
    gp_phases_advance(scm_phases);
    if (has_more(self))
        tick_more(self, GLOBAL_CLOCK);
    collect_after_tick(self, waiting);
    return 0;
}

static void advance_user_clock(struct scm_thread *self, struct scm_clock *clock)
{
    uint64_t expired = self->counts.expired;

    clock_advance(self, clock);
    clock->dates -= self->counts.expired - expired;
}

int scm_clock_tick(struct scm_clock *handle)
{
    struct scm_thread *self;
    struct scm_clock *clock;
    int error = clock_call_check(handle, "scm_clock_tick", &self, &clock);
    bool waiting;

    if (error)
        return error;
    waiting = something_waits(self);
    if (clock->kind == REAL_TIME_CLOCK)
        real_time_follow(self, clock, scm_real_time(),
                         load_relaxed(&scm_eager) ? UINT64_MAX : LISTS_PER_CALL);
    else
        advance_user_clock(self, clock);
    collect_after_tick(self, waiting);
    return 0;
}

int scm_collect(void)
{
    struct scm_thread *self = scm_self;

    if (unlikely(!self))
        return scm_thread_refuse_absent("scm_collect");
    while (!list_is_empty(&self->left) && left_step(self))
        ;
    if (self->nothing)
        real_time_look(self, true);
    left_take_expired(self);
    expired_take(self, UINT64_MAX);
    return 0;
}
