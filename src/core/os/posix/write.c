/* SPDX-License-Identifier: MIT */
/*
 * Writes that cannot end the process. If a pipe has no reader, or a file may not grow, the system
 * sends the writing thread SIGPIPE or SIGXFSZ. The program does not know of our messages, dumps and
 * profiles, so it cannot prepare for the signal. So these signals are blocked during the write, and
 * those it caused are consumed. A signal that was pending before, because the program blocks it,
 * stays pending.
 *
 * Uses system calls, because libc's functions are cancellation points and libc's signal sets need
 * 16 times the stack.
 */
#define _GNU_SOURCE /* syscall */
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "posix.h"

#define BIT_OF(signal) (UINT64_C(1) << ((signal)-1))

static const uint64_t caused = BIT_OF(SIGPIPE) | BIT_OF(SIGXFSZ);

/* A sandbox may refuse any of these calls. With few calls, pending signals are neither read nor
 * consumed. */
void posix_quiet_begin(struct posix_quiet *quiet)
{
    *quiet = (struct posix_quiet){.blocked = 0, .pending = 0};
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &caused, &quiet->blocked, sizeof caused);
    quiet->few = os_calls_are_few();
    if (!quiet->few)
        syscall(SYS_rt_sigpending, &quiet->pending, sizeof quiet->pending);
}

void posix_quiet_end(const struct posix_quiet *quiet)
{
    uint64_t ours = caused & ~quiet->pending;
    const struct timespec at_once = {0, 0};

    while (!quiet->few && syscall(SYS_rt_sigtimedwait, &ours, NULL, &at_once, sizeof ours) > 0)
        ;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &quiet->blocked, NULL, sizeof quiet->blocked);
}

int posix_write(int fd, const void *bytes, size_t size)
{
    int saved_errno = errno, error = 0;
    struct posix_quiet quiet;

    posix_quiet_begin(&quiet);
    while (!error && size) {
        ssize_t written = syscall(SYS_write, fd, bytes, size);

        if (written > 0) {
            bytes = (const char *)bytes + written;
            size -= (size_t)written;
        } else if (written == 0 || errno != EINTR) {
            error = written ? errno : EIO;
        }
    }
    if (quiet.few && (error == EPIPE || error == EFBIG))
        quiet.blocked |= caused; /* stays blocked, or the signal ends the process */
    posix_quiet_end(&quiet);
    errno = saved_errno;
    return error;
}
