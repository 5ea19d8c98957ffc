/* SPDX-License-Identifier: MIT */
/* Medians and quartiles of what runs and their repeats have measured. */
#ifndef BENCH_STATISTICS_H
#define BENCH_STATISTICS_H

#include <stddef.h>

/* From the smallest to the largest. */
void numbers_sort(double *numbers, size_t count);

/* Sorts them. The value below which this share of them lies, between the two nearest: 0.5 is the median; 0 of none. */
double numbers_quantile(double *numbers, size_t count, double share);
double numbers_median(double *numbers, size_t count);

#endif /* BENCH_STATISTICS_H */
