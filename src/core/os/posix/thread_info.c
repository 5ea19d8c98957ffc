/* SPDX-License-Identifier: MIT */
/*
 * Facts that the kernel reports about the threads of the process: how many there are, and of one
 * thread the name, whether it wants a CPU, and whether it is still the one seen some time ago. An
 * id alone does not say that, because ids are reused. An id and a time do, because the kernel
 * reports when the id's present thread was started, to 10 ms, within which no id comes round again.
 *
 * Async-signal-safe, no cancellation point, no allocation. With few calls (syscall_policy.h) the
 * kernel is not asked: no thread is known to be newer or to want a CPU, and none has a name.
 * os_thread_exists asks unless sandbox=1, when every thread exists. The main thread stays as a
 * zombie after pthread_exit, until the process ends; a zombie does not count.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/os.h"
#include "posix.h"

#define TICK_NS 10000000u /* USER_HZ, in which /proc counts on all known architectures */

/* Fields of /proc/.../stat. */
#define STATE_FIELD  3
#define USER_FIELD   14
#define SYSTEM_FIELD 15
#define START_FIELD  22

/* Returns the clock of that start time: boot time, shifted like it by the process's time
 * namespace. */
uint64_t os_clock_boot_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

unsigned posix_threads_injected;

/* Counts the links of that folder: two names and one link per thread. Uses a direct system call,
 * because programs interpose stat. The kernel's structure is libc's on 64-bit systems. */
unsigned os_thread_count(void)
{
    unsigned injected = load_relaxed(&posix_threads_injected);
    int saved_errno = errno;
    struct stat tasks;
    bool told;

    if (unlikely(injected))
        return injected;
    told =
        !os_calls_are_few() && syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &tasks, 0) == 0;
    errno = saved_errno;
    return told && tasks.st_nlink > 2 ? (unsigned)tasks.st_nlink - 2 : 0;
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

/* Returns a field after the name, which stands in brackets and may contain any character; "" if
 * there is none. */
static const char *field_at(const char *text, unsigned field)
{
    const char *at = strrchr(text, ')');

    for (unsigned i = 2; at && i < field; i++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    return at ? at : "";
}

static uint64_t number_at(const char *text, unsigned field)
{
    uint64_t number = 0;

    for (const char *at = field_at(text, field); *at >= '0' && *at <= '9'; at++)
        number = number * 10 + (uint64_t)(*at - '0');
    return number;
}

static bool read_stat(int thread, char *text, size_t size)
{
    int saved_errno = errno;
    char path[48];
    bool read;

    path_of(thread, "/stat", path);
    read = !os_calls_are_few() && posix_file_read(path, text, size);
    errno = saved_errno;
    return read;
}

bool posix_thread_is_zombie(int thread)
{
    char text[512];

    return read_stat(thread, text, sizeof text) && *field_at(text, STATE_FIELD) == 'Z';
}

bool os_thread_lives_in_child(int thread, bool whole)
{
    return !whole && thread > 0 && !os_calls_are_few() && os_thread_exists(thread);
}

bool os_thread_exists(int thread)
{
    int saved_errno = errno, process;
    bool exists;

    if (load_relaxed(&os_calls) == OS_CALLS_FEW)
        return true;
    process = getpid();
    exists = syscall(SYS_tgkill, process, thread, 0) == 0 || errno != ESRCH;
    errno = saved_errno;
    return exists && !(thread == process && posix_thread_is_zombie(thread));
}

bool os_thread_is_newer(int thread, uint64_t since)
{
    char text[512];

    return read_stat(thread, text, sizeof text) && number_at(text, START_FIELD) > since / TICK_NS;
}

/*
 * CPU-time clock of another thread of the process. Linux derives the clock's number from the
 * thread's id, as glibc's pthread_getcpuclockid does from a pthread_t, which is unknown here.
 */
#define CLOCK_OF_THREAD(thread) ((clockid_t)((~(unsigned)(thread) << 3) | 6u))

static bool had_cpu_for(int thread, uint64_t *nanoseconds)
{
    int saved_errno = errno;
    struct timespec had;
    bool told = clock_gettime(CLOCK_OF_THREAD(thread), &had) == 0;

    errno = saved_errno;
    if (told)
        *nanoseconds = (uint64_t)had.tv_sec * 1000000000u + (uint64_t)had.tv_nsec;
    return told;
}

bool (*posix_cpu_injected)(int thread, bool *wants, uint64_t *had);

bool os_thread_wants_cpu(int thread, bool *wants, uint64_t *had)
{
    char text[512];

    if (unlikely(posix_cpu_injected))
        return posix_cpu_injected(thread, wants, had);
    if (!read_stat(thread, text, sizeof text))
        return false;
    *wants = field_at(text, STATE_FIELD)[0] == 'R';
    if (!had_cpu_for(thread, had))
        *had = (number_at(text, USER_FIELD) + number_at(text, SYSTEM_FIELD)) * TICK_NS;
    return true;
}

void os_thread_name(int thread, char name[OS_THREAD_NAME_MAX])
{
    int saved_errno = errno;
    char path[48];

    path_of(thread, "/comm", path);
    if (os_calls_are_few() || !posix_file_read(path, name, OS_THREAD_NAME_MAX))
        name[0] = '\0';
    name[strcspn(name, "\n")] = '\0';
    errno = saved_errno;
}
