/* SPDX-License-Identifier: MIT */
/*
 * The process-wide barrier: membarrier PRIVATE_EXPEDITED interrupts the CPUs that run a thread of
 * this process and makes each execute a full fence; a thread that does not run has passed one in
 * its context switch.
 */
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"
#include "posix.h"

static bool available; /* may a domain choose it? One that chose it before may go on using it */

void posix_membarrier_start(bool wanted)
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
 * Both refused: waits until the other CPUs have done what they had begun. What a barrier is needed for is a reader that has
 * executed the store of its word, and whose CPU has not made it visible yet; or has loaded a pointer before that. A CPU
 * keeps a store back for some hundred nanoseconds, and begins no load so long before the store is done: what is not
 * complete when the CPU stops (an interrupt, a host that takes it away) is begun anew. No manual promises a time; this is
 * ten thousand times what is seen. It happens once or twice for each domain, whose readers then fence themselves.
 */
#define LONG_ENOUGH_NS 2000000

static void wait_long_enough(void)
{
    uint64_t until = os_clock_ns() + LONG_ENOUGH_NS;

    while (os_clock_ns() < until)
        os_sleep_ns(LONG_ENOUGH_NS);
}

/* With sandbox=1 readers fence themselves. A driver that has not noticed when the option was set waits instead. */
void os_membarrier(void)
{
    if (load_relaxed(&os_calls) == OS_CALLS_FEW) {
        wait_long_enough();
        return;
    }
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
        return;
    /* Granted at start, refused now: make the fence by hand, and let no domain choose it again. */
    store_relaxed(&available, false);
    if (!posix_visit_cpus())
        wait_long_enough();
}
