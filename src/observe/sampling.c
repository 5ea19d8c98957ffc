/* SPDX-License-Identifier: MIT */
/*
 * Sampling by bytes. Samples are the points of a Poisson process over the bytes that a thread
 * allocates, one in `sampling_rate` bytes on average. An allocation is sampled if at least one
 * point is in its bytes:
 *
 *   - The distance to the next point is exponential. The remaining distance has the same
 *     distribution at any byte, so an allocation of s bytes is sampled with probability
 *     p = 1 - exp(-s / rate), whatever any thread allocated before. After a sample, a new distance
 *     is drawn, from the end of the sampled bytes.
 *   - So the sum over the samples, each times 1/p, estimates the sum over all allocations without
 *     bias. This holds for any figure of an allocation: 1 (their number), s (their bytes), their
 *     lifetime.
 *
 * Logarithm and exponential are computed here by their series, because the library needs libm for
 * nothing else. They run only at samples.
 */
#include "observe/sampling.h"

#include "base/random.h"
#include "os/os.h"

uint64_t sampling_seed;

static __thread uint64_t sampling_randomness; /* 0 if not seeded yet */
static uint64_t seeds;                        /* number handed out; atomic */

/* Computes ln(x) for 0 < x <= 1, from x = m / 2^halvings with m in (1/2, 1], and
 *   ln(m) = 2 artanh((m - 1) / (m + 1)). */
static double logarithm(double x)
{
    double y, power, sum = 0;
    unsigned halvings = 0;

    while (x <= 0.5) {
        x *= 2;
        halvings++;
    }
    y = (x - 1) / (x + 1);
    power = y;
    for (unsigned n = 1; n <= 35; n += 2, power *= y * y)
        sum += power / n;
    return 2 * sum - halvings * 0.693147180559945309417;
}

/* Computes 1 - exp(-x) for x >= 0. Halves x until the series is short, then uses
 *   1 - exp(-2x) = (1 - exp(-x)) (1 + exp(-x)). */
static double one_minus_exp(double x)
{
    double term, sum = 0;
    unsigned doublings = 0;

    if (x > 50)
        return 1;
    while (x > 0.125) {
        x /= 2;
        doublings++;
    }
    term = x;
    for (unsigned n = 2; n <= 12; n++) {
        sum += term;
        term *= -x / n;
    }
    while (doublings-- > 0)
        sum *= 2 - sum;
    return sum;
}

static void seed(void)
{
    uint64_t words[2];

    if (sampling_seed)
        words[0] = (sampling_seed + add_relaxed(&seeds, 1)) * UINT64_C(0x9e3779b97f4a7c15);
    else
        os_secret(words);
    sampling_randomness = words[0] | 1;
}

/* Draws a number above 0 and at most 1. */
static double draw_uniform(void)
{
    sampling_randomness = random_behind(sampling_randomness);
    return (double)((sampling_randomness >> 11) + 1) / (double)(UINT64_C(1) << 53);
}

/* Draws a distance of at least 1, because 0 means no draw yet. Rounds up, because an allocation is
 * sampled if the bytes reach the point. */
static int64_t draw_distance(void)
{
    return (int64_t)(-logarithm(draw_uniform()) * (double)load_relaxed(&sampling_rate)) + 1;
}

bool sampling_is_due(size_t size)
{
    if (unlikely(!sampling_randomness)) {
        seed();
        sampling_left = draw_distance();
    }
    sampling_left -= (int64_t)size;
    if (likely(sampling_left > 0))
        return false;
    sampling_left = draw_distance();
    return true;
}

uint64_t sampling_weight(size_t size)
{
    double sampled = one_minus_exp((double)size / (double)load_relaxed(&sampling_rate));

    return (uint64_t)((double)SAMPLING_UNIT / sampled + 0.5);
}
