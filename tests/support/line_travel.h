/* SPDX-License-Identifier: MIT */
/*
 * How cache lines travel between CPUs that make these accesses one after the other: a directory of lines, as coherent
 * caches of any size keep it. A line travels when a CPU loads what another has stored since, or stores to a line that
 * another has touched since it owned it. What no two CPUs touch never travels.
 *
 * It travels for nothing (false sharing) when the CPU, as long as it has the line then, loads no word (8 bytes) that
 * another has stored since, and stores to none that another has ever touched.
 */
#ifndef TESTS_SUPPORT_LINE_TRAVEL_H
#define TESTS_SUPPORT_LINE_TRAVEL_H

#include "support/memory_trace.h"

#define TRAVEL_CPUS_MAX 256

struct travel {
    bool travels;
    bool shared; /* a store to a line that another CPU has ever touched */
    size_t
        for_nothing; /* it has turned out that the travel with this step was for nothing; 0: not yet */
};

/* Lines of 1 << shift bytes, 128 at most. The end gives the memory back. */
void travel_begin(unsigned shift);
void travel_end(void);

/* The access's turn is its CPU. Steps are counted from 1. */
struct travel travel_step(const struct memory_access *access);

/* At the end, until it returns 0: a step whose travel was for nothing until now. */
size_t travel_for_nothing(void);

#endif /* TESTS_SUPPORT_LINE_TRAVEL_H */
