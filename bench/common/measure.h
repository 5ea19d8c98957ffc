/* SPDX-License-Identifier: MIT */
/* Clocks, and resident memory. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

uint64_t clock_ns(clockid_t clock);

static inline uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/* The cheapest clock: the time-stamp counter, read after all instructions before it; where there is none, nanoseconds. */
static inline uint64_t cycles(void)
{
#if defined(__x86_64__)
    unsigned low, high;

    __asm__ __volatile__("lfence; rdtsc; lfence" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
#else
    return now_ns();
#endif
}

/* Sleeps until now_ns() is `when`. */
void sleep_until_ns(uint64_t when);

/* CPU time of the whole process; of its children that it waited for. */
uint64_t process_cpu_ns(void);
uint64_t children_cpu_ns(void);

/* Resident bytes of this process now, and the most there ever were (VmHWM). */
uint64_t resident_bytes(void);
uint64_t resident_bytes_peak(void);

#endif /* BENCH_MEASURE_H */
