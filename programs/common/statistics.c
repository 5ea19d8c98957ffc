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

double numbers_quantile(double *numbers, size_t count, double share)
{
    double place;
    size_t low;

    if (!count)
        return 0;
    numbers_sort(numbers, count);
    place = share * (double)(count - 1);
    low = (size_t)place;
    return low + 1 < count
               ? numbers[low] + (place - (double)low) * (numbers[low + 1] - numbers[low])
               : numbers[low];
}

double numbers_median(double *numbers, size_t count)
{
    return numbers_quantile(numbers, count, 0.5);
}
