/* SPDX-License-Identifier: MIT */
/*
 * Costs of operations on this machine (the thesis' Table 2.1, and more). A measurement is one
 * function that times a number of operations. main.c runs all of them in turn, repeatedly, so that
 * a disturbance affects all alike.
 */
#ifndef CALIBRATE_H
#define CALIBRATE_H

#include <stdbool.h>
#include <stdint.h>

#define LINES_APART 128 /* many processors fetch lines in pairs */

/* CPUs that this process may use, in ascending order. */
#define CPUS_MOST 1024
extern unsigned cpus[CPUS_MOST], cpu_count;

/* Makes `count` operations. */
typedef void operations_function(uint64_t count);

/* Operations of this library, which time_library() measures. */
enum library_operation {
    READER,
    GRACE_PERIOD,
    GRACE_PERIOD_BESIDE,
    PAIR,
    HAZARD,
    HAZARD_PAIR,
    QUIESCENT,
    GRACE_PERIOD_QSBR
};

struct measurement {
    const char *name;  /* in the JSON */
    const char *title; /* for people */
    /* Returns the nanoseconds that `count` operations took; below 0: unavailable on this system. */
    double (*time)(const struct measurement *measurement, uint64_t count);
    unsigned cpus;                     /* needed */
    operations_function *operations;   /* time_operations only */
    uint64_t bytes;                    /* size of the walked memory; chases only */
    unsigned a, b;                     /* the two CPUs; pairs only */
    enum library_operation of_library; /* time_library only */
    bool fenced;                       /* likewise: mode of the readers */
};

/* Return the nanoseconds that `count` operations took. */
double time_of(operations_function *operations, uint64_t count);
double time_operations(const struct measurement *measurement, uint64_t count);

/* Binds the calling thread to that CPU. */
void pin(unsigned cpu);

/*
 * A thread on another CPU than the measuring one. start_partner() returns when the partner runs
 * `body`, which returns soon after partner_over() is true.
 */
void start_partner(unsigned cpu, void (*body)(void *argument), void *argument);
bool partner_over(void);
void stop_partner(void);

/* Prints a message and exits. */
void fail(const char *what) __attribute__((noreturn));

/* instructions.c */
operations_function instructions, clock_reads, atomic_increments, cmpxchg_increments, fences;
double time_chase(const struct measurement *measurement, uint64_t count);
double time_membarrier(const struct measurement *measurement, uint64_t count);
double time_membarrier_shared(const struct measurement *measurement, uint64_t count);
/* Returns the bytes of a cache of this machine, from sysfs; 0: unknown. */
uint64_t cache_bytes(unsigned level);

/* transfers.c */
double time_atomic_transfer(const struct measurement *measurement, uint64_t count);
double time_blind_transfer(const struct measurement *measurement, uint64_t count);
double time_read_transfer(const struct measurement *measurement, uint64_t count);

/* locks.c */
operations_function mutex_pairs, read_lock_pairs, write_lock_pairs, spinlock_pairs, sequence_reads;
/* The system calls of a contended mutex: a sleep refused because the word has changed, and a
 * wake-up without sleeper. */
operations_function futex_waits, futex_wakes;

/*
 * grace_periods.c measures this library. An option fixes once per process how readers announce
 * themselves, so each mode has its own child process, which start_modes() makes, and which measures
 * one sample on request.
 */
void start_modes(void);
void stop_modes(void);
double time_library(const struct measurement *measurement, uint64_t count);

#endif /* CALIBRATE_H */
