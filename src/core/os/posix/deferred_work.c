/* SPDX-License-Identifier: MIT */
/*
 * Work for a thread that holds nothing (os_lock.h).
 *
 * Requests made during the work wait for the next check; otherwise each call might request more
 * without end. In a function that replaces one of the C library's, pages are closed and opened at
 * once, by the system itself, because each call might otherwise request two more. Nothing is purged
 * there.
 *
 * A request is a bit. The thread that takes the bit clears it before it works, so a request made
 * after that causes another call, and none is lost. A forked child repeats all kinds of work ever
 * requested, because the thread that had taken a bit may not exist there.
 */
#include "os/os.h"

uint32_t os_later_wanted READ_MOSTLY = 0;
static void (*works[OS_LATER_COUNT])(void); /* atomic; NULL if never requested */
/* Set while this thread is at work, outside and inside a call. */
static __thread bool is_at_it[2] __attribute__((tls_model("initial-exec")));

/* Release: a thread that sees the bit also sees the work to do and the function. */
void os_later(enum os_later what, void (*work)(void))
{
    store_relaxed(&works[what], work);
    __atomic_fetch_or(&os_later_wanted, UINT32_C(1) << what, __ATOMIC_RELEASE);
}

static void do_some(uint32_t wanted)
{
    for (unsigned what = 0; what < OS_LATER_COUNT; what++)
        if (wanted & UINT32_C(1) << what)
            load_relaxed (&works[what])();
}

/* Does nothing between fork's handlers, because half of the work may be another thread's, which
 * does not exist in the child. */
void os_later_run(void)
{
    uint32_t now = os_in_mapping_call ? UINT32_C(1) << OS_LATER_PAGE_JOBS : ~UINT32_C(0);
    bool *at_it = &is_at_it[os_in_mapping_call];

    if (*at_it || os_lock_forking || !os_holds_nothing() || !(load_relaxed(&os_later_wanted) & now))
        return;
    *at_it = true;
    do_some(__atomic_fetch_and(&os_later_wanted, ~now, __ATOMIC_ACQUIRE) & now);
    *at_it = false;
}

void os_later_fork_child(void)
{
    for (unsigned what = 0; what < OS_LATER_COUNT; what++)
        if (load_relaxed(&works[what]))
            os_later((enum os_later)what, works[what]);
}
