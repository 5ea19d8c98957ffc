/* SPDX-License-Identifier: MIT */
/*
 * Chance, and the formulas of ACDC (thesis, section 5.3.2). A round draws a size class and a
 * liveness, each uniformly between its bounds, and makes this many objects of them:
 *
 *      (max_size - size_class + 1)^2 * (max_liveness - liveness + 1)^2 * multiplier
 *      ----------------------------------------------------------------------------   rounded down
 *                              threads * max_liveness
 *
 * so small and short-lived objects are many. Each object draws a size of the class.
 *
 * With --original a round follows the public tool instead: the number has no divisor, all objects
 * have one size, the largest class is not drawn, and the round is shared as a whole or not at all.
 * Then --objects gives all rounds that many objects of the least size and liveness.
 *
 * The draws follow from the seed and the thread's number, and from nothing that other threads do,
 * so a thread allocates the same in every run.
 */
#ifndef ACDC_DRAW_H
#define ACDC_DRAW_H

#include "settings.h"

#define MOST_OBJECTS (1 << 28) /* in one round */

__extension__ typedef unsigned __int128 wide_t;

/* A stream of random numbers: splitmix64, by G. Steele, D. Lea and C. Flood (2014). */
struct chance {
    uint64_t state;
};

static inline uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

static inline uint64_t chance_next(struct chance *chance)
{
    chance->state += UINT64_C(0x9e3779b97f4a7c15);
    return mix(chance->state);
}

/* Returns a number below `bound`, which is not 0: the upper half of a product, to avoid a
 * division. */
static inline uint64_t chance_below(struct chance *chance, uint64_t bound)
{
    return (uint64_t)((wide_t)chance_next(chance) * bound >> 64);
}

static inline uint64_t chance_between(struct chance *chance, uint64_t least, uint64_t most)
{
    return least + chance_below(chance, most - least + 1);
}

static inline bool chance_percent(struct chance *chance, unsigned percent)
{
    return chance_below(chance, 100) < percent;
}

/* Returns the stream number `stream` of a seed. */
static inline struct chance chance_seed(uint64_t seed, uint64_t stream)
{
    return (struct chance){.state = mix(mix(seed) + stream)};
}

/* One round's draw. */
struct draw {
    unsigned size_class;
    uint64_t liveness;
    bool tree;
    size_t size;      /* of all objects; 0: each draws one */
    bool shared_once; /* original: the whole round is shared */
};

struct draw draw_round(const struct settings *settings, struct chance *chance);

/* Returns the formula's number, or --objects. Saturates. */
uint64_t objects_of(const struct settings *settings, const struct draw *draw);

/* Returns how many of a round's objects are shared: the share ratio's percentage, rounded down. */
static inline uint64_t shared_of(const struct settings *settings, const struct draw *draw,
                                 uint64_t objects)
{
    if (settings->original)
        return draw->shared_once ? objects : 0;
    return settings->shared ? objects * settings->share_ratio / 100 : 0;
}

static inline size_t draw_size(const struct settings *settings, unsigned size_class,
                               struct chance *chance)
{
    size_t least = (size_t)1 << size_class;

    return size_class == settings->max_size ? least : least + chance_below(chance, least);
}

/*
 * Returns the liveness that a receiver gives to a shared group: uniform, like its own draws, but
 * from the group's seed, so that it does not depend on when the receiver sees the group. With
 * --original the seed is the round's liveness, for all receivers.
 */
static inline uint64_t draw_received_liveness(const struct settings *settings, uint64_t group_seed,
                                              unsigned receiver)
{
    struct chance chance = chance_seed(group_seed, receiver);

    if (settings->original)
        return group_seed;
    return chance_between(&chance, settings->min_liveness, settings->max_liveness);
}

#endif /* ACDC_DRAW_H */
