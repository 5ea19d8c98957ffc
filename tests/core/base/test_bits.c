/* SPDX-License-Identifier: MIT */
/* Bitmaps: filling, setting, testing, moving, ranges and finding at and across the borders of
 * words.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

TEST(filling_sets_exactly_the_first_bits)
{
    for (unsigned count = 1; count <= 260; count++) {
        uint64_t bits[6];

        memset(bits, 0xa5, sizeof bits);
        bits_fill(bits, count);
        assert_int_equal(bits_words(count), (count + 63) / 64);
        for (unsigned i = 0; i < bits_words(count) * 64; i++)
            assert_int_equal(bits_test(bits, i), i < count);
        if (bits_words(count) < 6) /* filling leaves the next word alone */
            assert_true(bits[bits_words(count)] == UINT64_C(0xa5a5a5a5a5a5a5a5));
    }
}

TEST(setting_and_clearing_change_one_bit)
{
    for (unsigned i = 0; i < 192; i++) {
        uint64_t bits[3] = {0, 0, 0};

        bits_set(bits, i);
        for (unsigned j = 0; j < 192; j++)
            assert_int_equal(bits_test(bits, j), i == j);
        memset(bits, 0xff, sizeof bits);
        bits_clear(bits, i);
        for (unsigned j = 0; j < 192; j++)
            assert_int_equal(bits_test(bits, j), i != j);
    }
}

TEST(moving_adds_and_empties)
{
    uint64_t to[3] = {1, 0, UINT64_C(1) << 63}, from[3] = {6, 5, 1};

    bits_move(to, from, 2);
    assert_int_equal(to[0], 7);
    assert_int_equal(to[1], 5);
    assert_true(to[2] == UINT64_C(1) << 63);
    assert_int_equal(from[0] | from[1], 0);
    assert_int_equal(from[2], 1);
}

/* Compares every range of three words with the same bits set one at a time. */
TEST(ranges_are_as_their_bits)
{
    for (unsigned first = 0; first <= 192; first++) {
        for (unsigned end = first; end <= 192; end++) {
            uint64_t bits[3] = {0, 0, 0};

            bits_set_range(bits, first, end);
            for (unsigned i = 0; i < 192; i++)
                assert_int_equal(bits_test(bits, i), i >= first && i < end);
            assert_int_equal(bits_count_range(bits, 0, 192), end - first);
            assert_int_equal(bits_find_set(bits, 0, 192), end > first ? first : 192);
            assert_int_equal(bits_find_clear(bits, first, end), end);
            assert_int_equal(bits_find_clear(bits, first, 192), end);
            assert_int_equal(bits_find_set_before(bits, 192), end > first ? end : 0);
            assert_int_equal(bits_find_set_before(bits, first), 0);
            memset(bits, 0xff, sizeof bits);
            bits_clear_range(bits, first, end);
            assert_int_equal(bits_count_range(bits, first, end), 0);
            assert_int_equal(bits_count_range(bits, 0, 192), 192 - (end - first));
            assert_int_equal(bits_find_set(bits, first, end), end);
            assert_int_equal(bits_find_set(bits, first, 192), end);
            assert_int_equal(bits_find_set_before(bits, end), first);
        }
    }
}

SUITE()
