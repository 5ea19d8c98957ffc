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

struct measurement {
    const char *name;  /* in the JSON */
    const char *title; /* for people */
    /* Returns the nanoseconds that `count` operations took. */
    double (*time)(const struct measurement *measurement, uint64_t count);
    unsigned cpus;  /* needed */
    uint64_t bytes; /* size of the walked memory; chases only */
    unsigned a, b;  /* the two CPUs; pairs only */
};

/* Binds the calling thread to that CPU. */
void pin(unsigned cpu);

/*
 * A thread on another CPU, beside the measuring one. start_partner() returns when the partner runs
 * `body`, which returns soon after partner_over() is true.
 */
void start_partner(unsigned cpu, void (*body)(void *argument), void *argument);
bool partner_over(void);
void stop_partner(void);

/* Prints a message and exits. */
void fail(const char *what) __attribute__((noreturn));

/* instructions.c */
double time_instruction(const struct measurement *measurement, uint64_t count);
double time_clock(const struct measurement *measurement, uint64_t count);
double time_chase(const struct measurement *measurement, uint64_t count);
double time_atomic_increment(const struct measurement *measurement, uint64_t count);
double time_cmpxchg_increment(const struct measurement *measurement, uint64_t count);
double time_fence(const struct measurement *measurement, uint64_t count);
double time_membarrier(const struct measurement *measurement, uint64_t count);
double time_membarrier_beside(const struct measurement *measurement, uint64_t count);
/* Returns the bytes of a cache of this machine, from sysfs; 0: unknown. */
uint64_t cache_bytes(unsigned level);

/* transfers.c */
double time_atomic_transfer(const struct measurement *measurement, uint64_t count);
double time_blind_transfer(const struct measurement *measurement, uint64_t count);
double time_read_transfer(const struct measurement *measurement, uint64_t count);

/* locks.c */
double time_mutex(const struct measurement *measurement, uint64_t count);
double time_read_lock(const struct measurement *measurement, uint64_t count);
double time_write_lock(const struct measurement *measurement, uint64_t count);
double time_spinlock(const struct measurement *measurement, uint64_t count);
double time_sequence_read(const struct measurement *measurement, uint64_t count);
double time_hazard_pointer(const struct measurement *measurement, uint64_t count);
/* The system calls of a contended mutex: a sleep refused because the word has changed, and a
 * wake-up without sleeper. */
double time_futex_wait(const struct measurement *measurement, uint64_t count);
double time_futex_wake(const struct measurement *measurement, uint64_t count);
double time_malloc_pair(const struct measurement *measurement, uint64_t count);

/*
 * grace_periods.c measures this library. An option fixes once per process how readers announce
 * themselves, so each mode has its own child process, which start_modes() makes, and which measures
 * one sample on request.
 */
void start_modes(void);
void stop_modes(void);
double time_reader_free(const struct measurement *measurement, uint64_t count);
double time_reader_fenced(const struct measurement *measurement, uint64_t count);
double time_quiescent(const struct measurement *measurement, uint64_t count);
double time_grace_period_free(const struct measurement *measurement, uint64_t count);
double time_grace_period_fenced(const struct measurement *measurement, uint64_t count);
double time_grace_period_qsbr(const struct measurement *measurement, uint64_t count);
double time_grace_period_beside_free(const struct measurement *measurement, uint64_t count);
double time_grace_period_beside_fenced(const struct measurement *measurement, uint64_t count);
double time_pair_free(const struct measurement *measurement, uint64_t count);
double time_pair_fenced(const struct measurement *measurement, uint64_t count);

#endif /* CALIBRATE_H */
