/* SPDX-License-Identifier: MIT */
/*
 * Zipf's law: of `count` ranks, the k-th (from 1) comes with a probability proportional to
 * k^-theta. Drawn exactly, with no table of probabilities, by rejection-inversion (W. Hörmann, G.
 * Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions", ACM
 * TOMACS 6(3), 1996). A draw computes two powers, so draw before the measurement begins.
 */
#ifndef BENCH_ZIPF_H
#define BENCH_ZIPF_H

#include <stdint.h>

struct zipf {
    uint64_t count;
    double theta;
    double first, last; /* range of the integral to draw from */
    double sure;        /* a draw this little below its rank is accepted without a further test */
};

/* Needs count >= 1, and theta above 0 and not 1. */
void zipf_init(struct zipf *zipf, uint64_t count, double theta);

/* Returns a rank, less one: 0, the most frequent, to count - 1. `state` is a state of
 * next_random. */
uint64_t zipf_draw(const struct zipf *zipf, uint64_t *state);

#endif /* BENCH_ZIPF_H */
