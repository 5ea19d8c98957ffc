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

void posix_membarrier_fork_child(void)
{
    if (load_relaxed(&available))
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    if (os_percpu_rseq)
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0, 0);
}

bool os_membarrier_available(void)
{
    return load_relaxed(&available);
}

void os_membarrier(void)
{
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
        return;
    /* Granted at start, refused now: make the fence by hand, and let no domain choose it again. */
    store_relaxed(&available, false);
    if (!posix_visit_cpus())
        os_panic(
            "membarrier was refused after start, and so was sched_setaffinity: grace periods "
            "cannot be known any more");
}
