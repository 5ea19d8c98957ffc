/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "measure.h"

#include <fcntl.h>
#include <stdbool.h>
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

uint64_t process_cpu_ns(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime);
}

/* The text of a file of /proc, without allocating: the heap is what is measured. */
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

/* ------------------------------------------------------------------------------- the histogram */

#define SUB_BITS 6
#define BUCKETS  ((64 - SUB_BITS + 1) << SUB_BITS)

struct histogram {
    uint64_t count;
    uint64_t largest;
    uint64_t bucket[BUCKETS];
};

static unsigned bucket_of(uint64_t value)
{
    unsigned shift;

    if (value < 1u << SUB_BITS)
        return (unsigned)value;
    shift = 63 - SUB_BITS - (unsigned)__builtin_clzll(value);
    return ((shift + 1) << SUB_BITS) + (unsigned)((value >> shift) - (1u << SUB_BITS));
}

/* The smallest value of a bucket. */
static uint64_t bucket_value(unsigned bucket)
{
    unsigned shift = bucket >> SUB_BITS;
    uint64_t sub = bucket & ((1u << SUB_BITS) - 1);

    return shift ? (sub + (1u << SUB_BITS)) << (shift - 1) : sub;
}

struct histogram *histogram_create(void)
{
    return calloc(1, sizeof(struct histogram));
}

void histogram_record(struct histogram *histogram, uint64_t value)
{
    uint64_t largest = __atomic_load_n(&histogram->largest, __ATOMIC_RELAXED);

    __atomic_fetch_add(&histogram->bucket[bucket_of(value)], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&histogram->count, 1, __ATOMIC_RELAXED);
    while (value > largest &&
           !__atomic_compare_exchange_n(&histogram->largest, &largest, value, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

uint64_t histogram_count(const struct histogram *histogram)
{
    return __atomic_load_n(&histogram->count, __ATOMIC_RELAXED);
}

uint64_t histogram_quantile(const struct histogram *histogram, double quantile)
{
    uint64_t wanted = (uint64_t)(quantile * (double)histogram->count);
    uint64_t seen = 0;

    for (unsigned i = 0; i < BUCKETS; i++) {
        seen += histogram->bucket[i];
        if (seen > wanted)
            return bucket_value(i);
    }
    return histogram->largest;
}

json_t *histogram_to_json(const struct histogram *histogram)
{
    if (!histogram->count)
        return json_pack("{s:i}", "count", 0);
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "count", (json_int_t)histogram->count, "p50",
                     (json_int_t)histogram_quantile(histogram, 0.5), "p99",
                     (json_int_t)histogram_quantile(histogram, 0.99), "p99_9",
                     (json_int_t)histogram_quantile(histogram, 0.999), "max",
                     (json_int_t)histogram->largest);
}
