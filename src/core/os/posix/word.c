/* SPDX-License-Identifier: MIT */
/* The system's calls for words that threads wait for (futex). */
#include <time.h>

#include "kernel_numbers.h"
#include "os/os.h"
#include "posix.h"
#include "system_call.h"

static void add_ns(struct timespec *time, uint64_t nanoseconds)
{
    nanoseconds += (uint64_t)time->tv_nsec;
    time->tv_sec += (time_t)(nanoseconds / 1000000000);
    time->tv_nsec = (long)(nanoseconds % 1000000000);
}

void posix_word_wait(uint32_t *word, uint32_t value, uint64_t nanoseconds)
{
    struct timespec time = {0};

    add_ns(&time, nanoseconds);
    bare_system_call(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, value,
                     nanoseconds ? (long)&time : 0, 0, 0);
}

void posix_word_wake(uint32_t *word, unsigned count)
{
    bare_system_call(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, count, 0, 0, 0);
}

int posix_word_lock(uint32_t *word, uint64_t nanoseconds)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    add_ns(&until, nanoseconds);
    return (int)-bare_system_call(SYS_futex, (long)word, FUTEX_LOCK_PI_PRIVATE, 0, (long)&until, 0,
                                  0);
}

void posix_word_pass_on(uint32_t *word)
{
    bare_system_call(SYS_futex, (long)word, FUTEX_UNLOCK_PI_PRIVATE, 0, 0, 0, 0);
}
