/* SPDX-License-Identifier: MIT */
/* Time and sleeping. */
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kernel_numbers.h"
#include "os/os.h"
#include "posix.h"

uint64_t (*posix_clock_injected)(void);

static uint64_t clock_read(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t os_clock_ns(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

uint64_t posix_clock_coarse_ns(void)
{
    return unlikely(posix_clock_injected) ? posix_clock_injected()
                                          : clock_read(CLOCK_MONOTONIC_COARSE);
}

uint64_t os_clock_coarse_ns(void)
{
    return posix_clock_coarse_ns();
}

void os_sleep_ns(uint64_t nanoseconds)
{
    struct timespec huge = {.tv_sec = (time_t)(nanoseconds / 1000000000u),
                            .tv_nsec = (long)(nanoseconds % 1000000000u)};
    int saved_errno = errno;
    uint32_t nobody_wakes = 0;

    /* Not nanosleep(), which is a cancellation point and which a sandbox may refuse; every lock
     * needs futex. A signal may end the sleep early, so callers loop. */
    syscall(SYS_futex, &nobody_wakes, FUTEX_WAIT_PRIVATE, 0, &huge, NULL, 0);
    errno = saved_errno;
}
