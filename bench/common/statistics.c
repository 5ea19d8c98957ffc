/* SPDX-License-Identifier: MIT */
#include "statistics.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void numbers_sort(double *numbers, size_t count)
{
    qsort(numbers, count, sizeof *numbers, by_value);
}

double numbers_median(double *numbers, size_t count)
{
    numbers_sort(numbers, count);
    return count ? (numbers[(count - 1) / 2] + numbers[count / 2]) / 2 : 0;
}
