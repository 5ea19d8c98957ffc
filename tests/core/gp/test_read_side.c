/* SPDX-License-Identifier: MIT */
/* Read-side critical sections: nesting, the packed word, misuse. */
#define _GNU_SOURCE

#include <prudence/rcu.h>

#include "gp/user/domain.h"
#include "support/gp_child.h"
#include "support/suite.h"
#include "support/threads.h"

TEST(sections_nest)
{
    assert_false(prudence_read_lock_held());
    prudence_read_lock();
    prudence_read_lock();
    assert_true(prudence_read_lock_held());
    prudence_read_unlock();
    assert_true(prudence_read_lock_held());
    prudence_read_unlock();
    assert_false(prudence_read_lock_held());
}

TEST(sections_nest_1023_deep)
{
    uint64_t completed;
    prudence_gp_t cookie;

    for (unsigned i = 0; i < 1023; i++)
        prudence_read_lock();
    assert_int_equal(prudence_reader_self->word & PRUDENCE_NESTING_MASK, 1023);
    completed = prudence_default.progress.completed;
    cookie = prudence_gp_start_poll();
    for (unsigned i = 0; i < 1023; i++) {
        assert_true(prudence_read_lock_held());
        assert_false(prudence_gp_poll_state(cookie));
        prudence_read_unlock();
    }
    assert_false(prudence_read_lock_held());
    assert_true(prudence_gp_poll_state(cookie));
    assert_true(sequence_before(completed, prudence_default.progress.completed));
}

TEST(sequence_and_depth_share_a_word)
{
    uint64_t sequence;

    prudence_read_lock();
    sequence = prudence_reader_self->word & ~PRUDENCE_NESTING_MASK;
    assert_int_equal(sequence, prudence_default.shared.sequence);
    prudence_gp_start_poll(); /* the sequence advances, the word does not */
    prudence_read_lock();
    assert_int_equal(prudence_reader_self->word, sequence | 2);
    prudence_read_unlock();
    assert_int_equal(prudence_reader_self->word, sequence | 1);
    prudence_read_unlock();
    assert_int_equal(prudence_reader_self->word, 0);
    prudence_synchronize();
}

static void nest_too_deep(void (*lock)(void))
{
    for (unsigned i = 0; i < 1024; i++)
        lock();
}

static void lock_domain(void)
{
    prudence_domain_read_lock(prudence_default_domain());
}

TEST(nesting_1024_deep_dies_with_a_message)
{
    expect_death(nest_too_deep(prudence_read_lock), "nested deeper than 1023");
    expect_death(nest_too_deep(lock_domain), "nested deeper than 1023");
}

static void *unlock_once(void *unused)
{
    prudence_read_unlock();
    return unused;
}

TEST(an_unlock_too_many_dies_with_a_message)
{
    struct prudence_domain *other = prudence_domain_create("other", PRUDENCE_DOMAIN_MEMB, NULL);

    expect_death((prudence_read_lock(), prudence_read_unlock(), prudence_read_unlock()),
                 "outside a read-side critical section");
    expect_death(in_thread(unlock_once, NULL), "outside a read-side critical section");
    expect_death(prudence_domain_read_unlock(other), "outside a read-side critical section");
}

/* The default domain is the same by its pointer and by the inline functions. */
TEST(both_faces_of_the_default_domain_agree)
{
    struct prudence_domain *domain = prudence_default_domain();

    prudence_domain_read_lock(domain);
    assert_true(prudence_read_lock_held());
    prudence_read_lock();
    prudence_domain_read_unlock(domain);
    assert_true(prudence_domain_read_lock_held(domain));
    prudence_read_unlock();
    assert_false(prudence_domain_read_lock_held(domain));
}

SUITE()
