/* SPDX-License-Identifier: MIT */
/*
 * What the kernel tells of a thread of the process: its name, and whether one that was seen some time ago is
 * still there. Its id alone does not say so, because ids are given out again; an id and a time do, because
 * the kernel tells when the thread that has the id now was started: to 10 ms, within which no id comes round
 * again.
 *
 * Async-signal-safe, no cancellation point, no memory.
 */
#include <sys/syscall.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "os/os.h"
#include "posix.h"

#define TICK_NS     10000000u /* USER_HZ, in which /proc counts on all architectures that we know */
#define START_FIELD 22        /* of /proc/.../stat */

/* The clock of that start time: boot time, and by the process's time namespace, as that. */
uint64_t os_clock_boot_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool os_thread_exists(int thread)
{
    int saved_errno = errno;
    bool exists = syscall(SYS_tgkill, getpid(), thread, 0) == 0 || errno != ESRCH;

    errno = saved_errno;
    return exists;
}

static void path_of(int thread, const char *file, char *path)
{
    char digits[16];
    unsigned count = 0;

    do
        digits[count++] = (char)('0' + thread % 10);
    while (thread /= 10);
    path = stpcpy(path, "/proc/self/task/");
    while (count)
        *path++ = digits[--count];
    stpcpy(path, file);
}

/* The number in a field behind the name, which stands in brackets and may contain any; 0: there is none. */
static uint64_t number_at(const char *text, unsigned field)
{
    const char *at = strrchr(text, ')');
    uint64_t number = 0;

    for (unsigned i = 2; at && i < field; i++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    for (; at && *at >= '0' && *at <= '9'; at++)
        number = number * 10 + (uint64_t)(*at - '0');
    return number;
}

bool os_thread_is_newer(int thread, uint64_t since)
{
    int saved_errno = errno;
    char path[48], text[512];
    bool newer;

    path_of(thread, "/stat", path);
    newer =
        posix_file_read(path, text, sizeof text) && number_at(text, START_FIELD) > since / TICK_NS;
    errno = saved_errno;
    return newer;
}

void os_thread_name(int thread, char name[OS_THREAD_NAME_MAX])
{
    int saved_errno = errno;
    char path[48];

    path_of(thread, "/comm", path);
    if (!posix_file_read(path, name, OS_THREAD_NAME_MAX))
        name[0] = '\0';
    name[strcspn(name, "\n")] = '\0';
    errno = saved_errno;
}
