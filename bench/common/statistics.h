/* SPDX-License-Identifier: MIT */
/* Medians of what runs and their repeats have measured. */
#ifndef BENCH_STATISTICS_H
#define BENCH_STATISTICS_H

#include <stddef.h>

/* From the smallest to the largest. */
void numbers_sort(double *numbers, size_t count);

/* Sorts them. The mean of the two in the middle, if their count is even; 0 of none. */
double numbers_median(double *numbers, size_t count);

#endif /* BENCH_STATISTICS_H */
