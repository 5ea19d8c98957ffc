/* SPDX-License-Identifier: MIT */
/* Medians and quartiles of measurements. */
#ifndef BENCH_STATISTICS_H
#define BENCH_STATISTICS_H

#include <stddef.h>

/* Sorts from the smallest to the largest. */
void numbers_sort(double *numbers, size_t count);

/* Sort the numbers. Return the value below which this share of them lies, between the two
 * nearest: 0.5 is the median; 0 if there are none. */
double numbers_quantile(double *numbers, size_t count, double share);
double numbers_median(double *numbers, size_t count);

#endif /* BENCH_STATISTICS_H */
