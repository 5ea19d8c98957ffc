/* SPDX-License-Identifier: MIT */
/* Ranks are drawn as often as Zipf's law says, and a seed gives the same draws again.
 *
 * ctest: not-with thread (one thread)
 */

#include <math.h>
#include <stdlib.h>

#include "support/suite.h"
#include "zipf.h"

#define DRAWN 400000

static const double thetas[] = {0.5, 0.99, 1.5};

/* Returns the share of each rank by the definition. */
static double *shares(uint64_t count, double theta)
{
    double *share = calloc(count, sizeof *share), sum = 0;

    for (uint64_t i = 0; i < count; i++)
        sum += share[i] = pow((double)(i + 1), -theta);
    for (uint64_t i = 0; i < count; i++)
        share[i] /= sum;
    return share;
}

/* Checks that a set of ranks with this share was drawn as often as expected, within five standard
 * deviations and two draws. */
static void expect(uint64_t drawn, double share)
{
    const double mean = share * DRAWN;

    assert_true(fabs((double)drawn - mean) <= 5 * sqrt(mean * (1 - share)) + 2);
}

static void draw_all(uint64_t count, double theta, uint64_t *drawn)
{
    uint64_t state = 1;
    struct zipf zipf;

    zipf_init(&zipf, count, theta);
    for (unsigned i = 0; i < DRAWN; i++) {
        const uint64_t rank = zipf_draw(&zipf, &state);

        assert_true(rank < count);
        drawn[rank]++;
    }
}

TEST(frequencies_follow_the_law)
{
    static const uint64_t counts[] = {1, 2, 10, 1000};

    for (unsigned t = 0; t < sizeof thetas / sizeof thetas[0]; t++)
        for (unsigned c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            double *share = shares(counts[c], thetas[t]);
            uint64_t *drawn = calloc(counts[c], sizeof *drawn);

            draw_all(counts[c], thetas[t], drawn);
            for (uint64_t i = 0; i < counts[c]; i++)
                expect(drawn[i], share[i]);
            free(drawn);
            free(share);
        }
}

/* With many ranks each rank is rare, so the test adds them up between powers of two. */
TEST(the_tail_follows_the_law)
{
    const uint64_t count = 3000000;
    uint64_t *drawn = calloc(count, sizeof *drawn);
    double *share = shares(count, 0.99);

    draw_all(count, 0.99, drawn);
    for (uint64_t from = 0, to = 1; from < count; from = to, to *= 2) {
        uint64_t some = 0;
        double some_share = 0;

        for (uint64_t i = from; i < to && i < count; i++) {
            some += drawn[i];
            some_share += share[i];
        }
        expect(some, some_share);
    }
    free(drawn);
    free(share);
}

TEST(a_seed_gives_the_same_draws)
{
    uint64_t a = 42, b = 42, c = 43, differ = 0;
    struct zipf zipf;

    zipf_init(&zipf, 1000, 0.99);
    for (unsigned i = 0; i < 1000; i++) {
        const uint64_t rank = zipf_draw(&zipf, &a);

        assert_int_equal(rank, zipf_draw(&zipf, &b));
        differ += rank != zipf_draw(&zipf, &c);
    }
    assert_true(differ > 500);
}

SUITE()
