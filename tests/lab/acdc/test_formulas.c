/* SPDX-License-Identifier: MIT */
/* The formulas of the thesis, section 5.3.2, against values worked out by hand. */
#include "support/slab_test.h"

#include "draw.h"

static struct settings thesis(unsigned threads)
{
    struct settings settings;

    settings_defaults(&settings); /* Table 6.3 */
    settings.threads = threads;
    settings.min_size = 3;
    settings.max_size = 16;
    settings.max_liveness = 10;
    return settings;
}

static uint64_t objects(const struct settings *settings, unsigned size_class, uint64_t liveness)
{
    return objects_of(settings, &(struct draw){.size_class = size_class, .liveness = liveness});
}

TEST(number_of_objects)
{
    struct settings settings = thesis(2);

    assert_int_equal(objects(&settings, 3, 1), 14 * 14 * 10 * 10 / 20);
    assert_int_equal(objects(&settings, 10, 5), 7 * 7 * 6 * 6 / 20); /* 88.2 */
    assert_int_equal(objects(&settings, 16, 10), 0);                 /* 1/20 */
    settings.multiplier = 7;
    assert_int_equal(objects(&settings, 10, 5), 7 * 7 * 6 * 6 * 7 / 20);
    settings.objects = 5;
    assert_int_equal(objects(&settings, 16, 10), 5);
}

TEST(it_saturates)
{
    struct settings settings = thesis(1);

    settings.max_liveness = MOST_LIVENESS;
    settings.multiplier = MOST_MULTIPLIER;
    assert_true(objects(&settings, 3, 1) > UINT64_C(1) << 50);
    settings.max_size = MOST_SIZE;
    settings.multiplier = UINT64_MAX;
    assert_true(objects(&settings, 0, 1) == UINT64_MAX);
}

TEST(shares)
{
    struct settings settings = thesis(8);
    struct draw draw = {.size = 0};

    assert_int_equal(shared_of(&settings, &draw, 1000), 0);
    settings.shared = true;
    settings.share_ratio = 20;
    assert_int_equal(shared_of(&settings, &draw, 1000), 200);
    assert_int_equal(shared_of(&settings, &draw, 9), 1);
    assert_int_equal(shared_of(&settings, &draw, 4), 0);
    assert_int_equal(receivers(&settings), 8);
    settings.receiver_ratio = 50;
    assert_int_equal(receivers(&settings), 4);
    settings.receiver_ratio = 0;
    assert_int_equal(receivers(&settings), 1);
}

TEST(sizes_keep_to_their_bounds)
{
    struct settings settings = thesis(1);
    struct chance chance = chance_seed(1, 1);

    for (unsigned class = 3; class <= 16; class ++) {
        for (unsigned i = 0; i < 10000; i++) {
            size_t size = draw_size(&settings, class, &chance);

            assert_in_range(size, 1u << class, class == 16 ? 1u << 16 : (2u << class) - 1);
        }
    }
}

/* Checks that every value was drawn as often as expected, within five standard deviations. */
static void check_uniform(const uint64_t *counts, unsigned values, unsigned draws)
{
    double expected = (double)draws / values, bound = 25 * expected;

    for (unsigned i = 0; i < values; i++) {
        double off = (double)counts[i] - expected;

        assert_true(off * off < bound);
    }
}

#define DRAWS 1000000

TEST(draws_are_uniform)
{
    struct settings settings = thesis(1);
    uint64_t classes[14] = {0}, livenesses[10] = {0}, received[10] = {0}, trees[2] = {0};

    settings.tree_share = 50;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct chance chance = chance_seed(seed, 0);

        for (unsigned i = 0; i < DRAWS / 10; i++) {
            struct draw draw = draw_round(&settings, &chance);

            classes[draw.size_class - 3]++;
            livenesses[draw.liveness - 1]++;
            trees[draw.tree]++;
            received[draw_received_liveness(&settings, chance_next(&chance), i % 64) - 1]++;
        }
    }
    check_uniform(classes, 14, DRAWS);
    check_uniform(livenesses, 10, DRAWS);
    check_uniform(trees, 2, DRAWS);
    check_uniform(received, 10, DRAWS);
}

static struct settings public_tool(void)
{
    struct settings settings = thesis(4);

    settings.original = true;
    return settings;
}

/* Worked out by hand from the formula in the public tool's distribution.c. */
TEST(original_number_of_objects)
{
    struct settings settings = public_tool();

    assert_int_equal(objects(&settings, 3, 1), 14 * 14 * 10 * 10);
    assert_int_equal(objects(&settings, 15, 10), 4);
}

TEST(original_rounds_have_one_size)
{
    struct settings settings = public_tool();
    struct chance chance = chance_seed(1, 0);
    uint64_t classes[13] = {0};

    settings.min_size = 2;
    for (unsigned i = 0; i < DRAWS; i++) {
        struct draw draw = draw_round(&settings, &chance);

        if (draw.size_class >= 3)
            classes[draw.size_class - 3]++;
        if (draw.size_class >= 4)
            assert_in_range(draw.size, 1u << draw.size_class, (2u << draw.size_class) - 1);
        else
            assert_int_equal(draw.size, 16);
    }
    check_uniform(classes, 13, DRAWS / 14 * 13);
}

TEST(original_fixed_number)
{
    struct settings settings = public_tool();
    struct chance chance = chance_seed(1, 0);

    settings.objects = 7;
    settings.min_size = 5;
    settings.min_liveness = 2;
    for (unsigned i = 0; i < 100; i++) {
        struct draw draw = draw_round(&settings, &chance);

        assert_int_equal(draw.size, 32);
        assert_int_equal(draw.size_class, 5);
        assert_int_equal(draw.liveness, 2);
        assert_int_equal(objects_of(&settings, &draw), 7);
    }
}

TEST(original_rounds_are_shared_as_a_whole)
{
    struct settings settings = public_tool();
    struct chance chance = chance_seed(1, 0);
    uint64_t shared[2] = {0};

    settings.shared = true;
    settings.share_ratio = 50;
    for (unsigned i = 0; i < DRAWS; i++) {
        struct draw draw = draw_round(&settings, &chance);
        uint64_t sharing = shared_of(&settings, &draw, 10);

        assert_true(sharing == 0 || sharing == 10);
        shared[sharing == 10]++;
    }
    check_uniform(shared, 2, DRAWS);
    settings.receiver_ratio = 50;
    assert_int_equal(receivers(&settings), 2);
    settings.receiver_ratio = 10;
    assert_int_equal(receivers(&settings), 1);
    assert_int_equal(draw_received_liveness(&settings, 6, 3), 6);
}

/* Threads of one seed, and one thread of two seeds, draw differently. */
TEST(streams_differ)
{
    struct chance one = chance_seed(1, 0), other = chance_seed(1, 1), third = chance_seed(2, 0);
    unsigned same = 0;

    for (unsigned i = 0; i < 1000; i++) {
        uint64_t a = chance_next(&one), b = chance_next(&other), c = chance_next(&third);

        same += (a == b) + (a == c) + (b == c);
    }
    assert_int_equal(same, 0);
}

static void refused(struct settings settings, const char *name)
{
    char why[256] = "";

    assert_false(settings_check(&settings, why, sizeof why));
    assert_non_null(strstr(why, name));
}

TEST(bad_combinations_are_refused_by_name)
{
    struct settings good = thesis(2), bad;
    char why[256];

    assert_true(settings_check(&good, why, sizeof why));
    bad = good;
    bad.min_size = 17;
    refused(bad, "--min-size 17 is above --max-size 16");
    bad = good;
    bad.min_liveness = 11;
    refused(bad, "--min-liveness 11 is above --max-liveness 10");
    bad = good;
    bad.threads = 4096;
    refused(bad, "--multiplier 1 is too small for --threads 4096");
    bad.multiplier = 3;
    assert_true(settings_check(&bad, why, sizeof why)); /* 19600 * 3 / 40960 = 1.4 */
    bad = good;
    bad.multiplier = MOST_MULTIPLIER;
    refused(bad, "--multiplier 1000000000 is too large");
    /* The old tool divided by zero with these settings. */
    good.duration = 2 * good.max_liveness;
    good.shared = true;
    good.receiver_ratio = 0;
    assert_true(settings_check(&good, why, sizeof why));
}

SUITE()
