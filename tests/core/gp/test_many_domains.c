/* SPDX-License-Identifier: MIT */
/*
 * Thousands of domains: each has the least number that is free, so that tables of threads stay
 * small, and memory goes back when they are destroyed, also that of slots.
 */
#define _GNU_SOURCE

#include <prudence/rcu.h>

#include "gp/user/domain.h"
#include "support/suite.h"

#define MANY  10000
#define SLACK ((uint64_t)3 << 20)

static struct prudence_domain *many[MANY];

static void make(unsigned i)
{
    many[i] = prudence_domain_create("many", PRUDENCE_DOMAIN_MEMB, NULL);
    assert_non_null(many[i]);
}

static void end(unsigned i)
{
    assert_int_equal(prudence_domain_destroy(many[i]), 0);
    many[i] = NULL;
}

static void make_all(void)
{
    for (unsigned i = 0; i < MANY; i++) {
        make(i);
        assert_int_equal(many[i]->index, i);
    }
}

static void end_all(void)
{
    for (unsigned i = 0; i < MANY; i++)
        if (many[i])
            end(i);
}

TEST(the_least_free_number_is_taken)
{
    static const unsigned ended[] = {9000, 4095, 17, 4096, 8191, 8192, 9999, 0};

    make_all();
    for (unsigned i = 0; i < 8; i++)
        end(ended[i]);
    make(0);
    assert_int_equal(many[0]->index, 0);
    make(17);
    assert_int_equal(many[17]->index, 17);
    end(17);
    make(17);
    assert_int_equal(many[17]->index, 17);
    make(4095);
    assert_int_equal(many[4095]->index, 4095);
    make(4096);
    assert_int_equal(many[4096]->index, 4096);
    end(1);
    make(1);
    assert_int_equal(many[1]->index, 1);
    for (unsigned i = 8191; i < MANY; i++)
        if (!many[i]) {
            make(i);
            assert_int_equal(many[i]->index, i);
        }
    end_all();
}

static void read_in_all(void)
{
    for (unsigned i = 0; i < MANY; i++) {
        prudence_domain_read_lock(many[i]);
        prudence_domain_read_unlock(many[i]);
    }
}

TEST(their_memory_goes_back)
{
    uint64_t before;
    struct os_pages_stats stats, again;

    make_all();
    read_in_all();
    end_all();
    before = os_meta_touched(); /* the thread's table stays */
    assert_true(before < 10 * SLACK);
    for (unsigned i = 0; i < 3; i++) {
        os_pages_stats(&stats);
        make_all();
        read_in_all();
        assert_true(os_meta_touched() > before + MANY * sizeof(struct reader_chunk));
        end_all();
        assert_true(os_meta_touched() < before + SLACK);
        os_pages_stats(&again);
        assert_int_equal(again.metadata, stats.metadata);
    }
}

SUITE()
