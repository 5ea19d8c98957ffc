/* SPDX-License-Identifier: MIT */
/* CPU time that the host of a virtual machine took from it ("steal" of /proc/stat), while it had
 * work to do. A measurement of that time says nothing about the measured code. */
#ifndef BENCH_STOLEN_H
#define BENCH_STOLEN_H

#include <stdbool.h>
#include <stdint.h>

#define MOST_STOLEN 0.02 /* share of the CPUs' time; above this a round does not count */

struct stolen {
    uint64_t stolen, all; /* ticks of all CPUs; all 0 if the system does not report them */
};

/*
 * Reads the first line of /proc/stat. For tests, the environment variable PRUDENCE_BENCH_STAT names
 * a file instead, of which each call of the process takes the next line, and at the end the last
 * one again. Returns false, and stores zeros, if the line cannot be read or is another one.
 */
bool stolen_now(struct stolen *now);

/* Returns the share of the CPUs' time that was stolen between the two; 0 if one was not read. */
double stolen_between(const struct stolen *begun, const struct stolen *ended);

/* Reads a line of that kind. Returns false if it is another one. */
bool stolen_parse(struct stolen *ticks, const char *line);

#endif /* BENCH_STOLEN_H */
