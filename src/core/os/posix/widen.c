/* SPDX-License-Identifier: MIT */
/* Sets which system calls may be made (syscall_policy.h): at start, by the option sandbox, and
 * wider when the process defers or reads. */
#include <errno.h>

#include "os/os.h"
#include "posix.h"

COLD void posix_calls_set(enum os_calls calls)
{
    posix_process_note(); /* while the kernel may be asked */
    store_relaxed(&os_calls, (uint32_t)calls);
    if (calls != OS_CALLS_ALL)
        posix_slices_few();
}

/* Does the work that was postponed while calls were few. A child is registered for membarriers, and
 * longer slices are restored. */
bool os_calls_widen_slow(void)
{
    int saved_errno = errno;
    uint32_t plain = OS_CALLS_PLAIN;

    if (load_relaxed(&os_calls) == OS_CALLS_FEW)
        return false;
    if (compare_exchange(&os_calls, &plain, (uint32_t)OS_CALLS_ALL)) {
        posix_membarrier_register();
        posix_slices_widen();
    }
    errno = saved_errno;
    return true;
}
