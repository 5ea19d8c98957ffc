/* SPDX-License-Identifier: MIT */
/*
 * The process-wide barrier. membarrier PRIVATE_EXPEDITED interrupts the CPUs that run a thread of
 * this process and makes each execute a full fence. A thread that is not running has passed a fence
 * in the context switch.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel_numbers.h"
#include "os/os.h"
#include "posix.h"

static bool available READ_MOSTLY =
    false; /* for domains that choose now; a domain that chose it before may go on */

COLD void posix_membarrier_start(bool wanted)
{
    bool works = wanted &&
                 syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
                 syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;

    store_relaxed(&available, works);
}

void posix_membarrier_register(void)
{
    if (load_relaxed(&available))
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    if (os_percpu_rseq)
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0, 0);
}

void posix_membarrier_fork_child(void)
{
    if (!os_calls_are_few())
        posix_membarrier_register();
}

bool os_membarrier_available(void)
{
    return load_relaxed(&available);
}

/*
 * Waits until the other CPUs have finished the instructions they had begun; used when membarrier
 * and the visit of all CPUs were refused. A barrier is needed for a reader that has stored its word
 * while the CPU has not made the store visible, or that has loaded a pointer before that. A CPU
 * holds a store back for some hundred nanoseconds, and begins no load that long before the store is
 * done. A CPU that stops in between (an interrupt, a host that takes the CPU away) starts
 * unfinished instructions anew. No manual promises a time; this one is ten thousand times the
 * observed one. The wait happens once or twice per domain, whose readers then fence themselves.
 */
#define LONG_ENOUGH_NS 2000000

static void wait_long_enough(void)
{
    uint64_t until = os_clock_ns() + LONG_ENOUGH_NS;

    while (os_clock_ns() < until)
        os_sleep_ns(LONG_ENOUGH_NS);
}

/* With sandbox=1 readers fence themselves. A driver that has not yet noticed the option waits
 * instead. */
void os_membarrier(void)
{
    if (load_relaxed(&os_calls) == OS_CALLS_FEW) {
        wait_long_enough();
        return;
    }
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
        return;
    /* Membarrier worked at start and is refused now. Fence by hand, and let no domain choose it
     * again. */
    store_relaxed(&available, false);
    if (!posix_visit_cpus())
        wait_long_enough();
}
