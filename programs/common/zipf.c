/* SPDX-License-Identifier: MIT */
/*
 * Under the hat x^-theta the area from k - 1/2 to k + 1/2 is at least k^-theta, because the hat is
 * convex. A point of the whole area is drawn by inverting the integral, and belongs to the nearest
 * rank k. It counts if it lies in the last k^-theta of that rank's area.
 */
#include "zipf.h"

#include <math.h>

#include "random.h"

static double weight(const struct zipf *zipf, double x)
{
    return pow(x, -zipf->theta);
}

static double integral(const struct zipf *zipf, double x)
{
    return pow(x, 1 - zipf->theta) / (1 - zipf->theta);
}

static double inverse(const struct zipf *zipf, double area)
{
    return pow(area * (1 - zipf->theta), 1 / (1 - zipf->theta));
}

void zipf_init(struct zipf *zipf, uint64_t count, double theta)
{
    zipf->count = count;
    zipf->theta = theta;
    zipf->first = integral(zipf, 1.5) - 1; /* rank 1 never rejects */
    zipf->last = integral(zipf, (double)count + 0.5);
    zipf->sure = 2 - inverse(zipf, integral(zipf, 2.5) - weight(zipf, 2));
}

uint64_t zipf_draw(const struct zipf *zipf, uint64_t *state)
{
    for (;;) {
        const double uniform = (double)(next_random(state) >> 11) * 0x1p-53;
        const double area = zipf->first + uniform * (zipf->last - zipf->first);
        const double x = inverse(zipf, area);
        double rank = floor(x + 0.5);

        /* because rounding may move x beyond an end */
        rank = fmin(fmax(rank, 1), (double)zipf->count);
        if (rank - x <= zipf->sure || area >= integral(zipf, rank + 0.5) - weight(zipf, rank))
            return (uint64_t)rank - 1;
    }
}
