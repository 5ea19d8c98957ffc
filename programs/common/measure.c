/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "measure.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

uint64_t clock_ns(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

void pin_to_cpu(unsigned cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

void pin_to_present_cpu(void)
{
    int cpu = sched_getcpu();

    pin_to_cpu(cpu < 0 ? 0 : (unsigned)cpu);
}

void sleep_until_ns(uint64_t when)
{
    struct timespec time = {.tv_sec = (time_t)(when / 1000000000),
                            .tv_nsec = (long)(when % 1000000000)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL))
        ;
}

static uint64_t timeval_ns(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_usec * 1000;
}

static uint64_t cpu_ns(int whose)
{
    struct rusage usage;

    getrusage(whose, &usage);
    return timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime);
}

uint64_t process_cpu_ns(void)
{
    return cpu_ns(RUSAGE_SELF);
}

uint64_t children_cpu_ns(void)
{
    return cpu_ns(RUSAGE_CHILDREN);
}

/* Reads a file of /proc without allocating, because the heap is being measured. */
static const char *proc_read(const char *path, char *buffer, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, buffer, size - 1);

    if (file >= 0)
        close(file);
    buffer[length > 0 ? length : 0] = '\0';
    return buffer;
}

uint64_t resident_bytes(void)
{
    char text[128];
    const char *second = strchr(proc_read("/proc/self/statm", text, sizeof text), ' ');

    return second ? strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

uint64_t resident_bytes_peak(void)
{
    static const char key[] = "VmHWM:";
    char text[4096];
    const char *line = strstr(proc_read("/proc/self/status", text, sizeof text), key);

    return line ? strtoull(line + sizeof key - 1, NULL, 10) * 1024 : 0;
}
