/* SPDX-License-Identifier: MIT */
/*
 * Models how cache lines travel between CPUs that make these accesses one after the other: a
 * directory of lines, as coherent caches of any size keep one. A line travels when a CPU loads a
 * word that another CPU has stored since, or stores to a line that another CPU has touched since
 * this CPU owned the line. Lines that only one CPU touches never travel.
 *
 * A travel is for nothing (false sharing) if the CPU, for as long as it then has the line, loads no
 * word (8 bytes) that another CPU has stored since, and stores to no word that another CPU has ever
 * touched.
 */
#ifndef TESTS_SUPPORT_LINE_TRAVEL_H
#define TESTS_SUPPORT_LINE_TRAVEL_H

#include "support/memory_trace.h"

#define TRAVEL_CPUS_MAX 256

struct travel {
    bool travels;
    bool shared;        /* a store to a line that another CPU has ever touched */
    size_t for_nothing; /* step of a travel that has turned out to be for nothing; 0: none */
};

/* Start and end a model with lines of 1 << shift bytes, 128 at most. travel_end() frees the
 * memory. */
void travel_begin(unsigned shift);
void travel_end(void);

/* Simulates an access by the CPU `access->turn`. Steps count from 1. */
struct travel travel_step(const struct memory_access *access);

/* Returns, one per call, the steps of travels still for nothing at the end; then 0. */
size_t travel_for_nothing(void);

#endif /* TESTS_SUPPORT_LINE_TRAVEL_H */
