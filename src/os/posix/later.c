/* SPDX-License-Identifier: MIT */
/*
 * Work for a thread that holds nothing (os_lock.h).
 *
 * What is asked for during the work is done at the next check, not in the same one: each call might ask for more. In a
 * function that the program has in the place of the C library's, pages are closed and opened at once, by the system itself, or
 * each call might bring two more. But nothing is purged there.
 * A request is a bit. The thread that takes it clears it before it works, so a request that comes meanwhile makes another
 * call, and none is lost. In a forked child all work that was ever asked for is done once more, because the thread that had
 * taken a bit may not be there.
 */
#include "os/os.h"

uint32_t os_later_wanted READ_MOSTLY = 0;
static void (*works[OS_LATER_COUNT])(void); /* atomic; NULL: never asked for */
static __thread bool is_at_it[2]
    __attribute__((tls_model("initial-exec"))); /* outside and in a call */

/* Release: with the bit, others see what there is to do, and by what. */
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

/* Between fork's handlers it waits: half of what there is to do may be another thread's, which the child has not. */
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
