/* SPDX-License-Identifier: MIT */
/* Creates and destroys the clocks of programs, and checks whether a call may use one. */
#include "shortterm/scm.h"

static struct scm_clock *clock_create(enum clock_kind kind, uint64_t period, const char *what)
{
    struct scm_thread *self = scm_thread_enter_to_stay(what);
    struct scm_clock *clock;

    if (!self)
        return NULL;
    left_steps(self);
    clock = clock_make(self, kind);
    if (!clock) {
        errno = ENOMEM;
        return NULL;
    }
    if (kind == REAL_TIME_CLOCK)
        real_time_start(self, clock, period);
    return (struct scm_clock *)(uintptr_t)clock->handle;
}

struct scm_clock *scm_clock_create(void)
{
    return clock_create(USER_CLOCK, 0, "scm_clock_create");
}

struct scm_clock *scm_clock_create_realtime(unsigned period)
{
    if (!period || period > 86400000) {
        os_report("scm_clock_create_realtime: a period of %u ms is not in 1 to 86400000", period);
        errno = EINVAL;
        return NULL;
    }
    return clock_create(REAL_TIME_CLOCK, (uint64_t)period * 1000000, "scm_clock_create_realtime");
}

static int clock_refuse(const char *what, const struct scm_clock *handle, const char *why,
                        int error)
{
    os_report("%s: clock %p %s", what, (const void *)handle, why);
    return error;
}

/* Returns 0 if the calling thread may use the clock, otherwise an error number. */
int clock_call_check(struct scm_clock *handle, const char *what, struct scm_thread **self,
                     struct scm_clock **clock)
{
    bool was = false;

    *self = scm_self;
    if (!handle) {
        os_report("%s: the clock is NULL", what);
        return EINVAL;
    }
    if (!*self)
        return scm_thread_refuse_absent(what);
    *clock = clock_of_handle(handle, &was);
    if (unlikely(!*clock))
        return was ? clock_refuse(what, handle,
                                  "is gone: it was destroyed, or its thread has ended", EPERM)
                   : clock_refuse(what, handle, "is not one that scm_clock_create returned",
                                  EINVAL);
    if (load_relaxed(&(*clock)->thread) != *self)
        return clock_refuse(what, handle, "belongs to another thread", EPERM);
    return 0;
}

int scm_clock_destroy(struct scm_clock *handle)
{
    struct scm_thread *self;
    struct scm_clock *clock;
    int error = clock_call_check(handle, "scm_clock_destroy", &self, &clock);
    bool waiting;

    if (error)
        return error;
    waiting = something_waits(self);
    clock_end(self, clock);
    collect_after_tick(self, waiting);
    return 0;
}
