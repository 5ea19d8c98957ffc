/* SPDX-License-Identifier: MIT */
/* Clocks, resident memory, and the CPU of a thread. */
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

/* Reads the cheapest clock: the time-stamp counter, after all earlier instructions; nanoseconds
 * if there is none. */
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

/* Binds the calling thread to that CPU, if it exists. */
void pin_to_cpu(unsigned cpu);
/* Binds it to the CPU that it runs on. */
void pin_to_present_cpu(void);

/* Sleeps until now_ns() is `when`. */
void sleep_until_ns(uint64_t when);

/* Return CPU time of the whole process, and of the children that it waited for. */
uint64_t process_cpu_ns(void);
uint64_t children_cpu_ns(void);

/* Return the resident bytes of this process now, and the most so far (VmHWM). */
uint64_t resident_bytes(void);
uint64_t resident_bytes_peak(void);

#endif /* BENCH_MEASURE_H */
