/* SPDX-License-Identifier: MIT */
/* Numbers that no program outside the process can guess. */
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"

#define NONBLOCK 1 /* GRND_NONBLOCK */

/* Uses the random bytes that the kernel gave this process at start. They are the same at each
 * call, so the time is mixed in. */
static void secret_of_start(uint64_t words[2])
{
    const void *random = (const void *)(uintptr_t)getauxval(AT_RANDOM);

    if (random)
        memcpy(words, random, 2 * sizeof words[0]);
    words[0] ^= os_clock_ns();
    words[1] ^= (uintptr_t)words;
}

/* getrandom is not called with few calls, may be refused by a filter of system calls, and may
 * not be ready on a machine that has just booted. */
COLD void os_secret(uint64_t words[2])
{
    const int saved_errno = errno;
    const long size = 2 * sizeof words[0];

    words[0] = words[1] = 0;
    if (os_calls_are_few() || syscall(SYS_getrandom, words, size, NONBLOCK) != size)
        secret_of_start(words);
    errno = saved_errno;
}
