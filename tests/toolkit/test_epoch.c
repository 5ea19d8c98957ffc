/* SPDX-License-Identifier: MIT */
/*
 * Epochs: pins are sections that move to the newest epoch when the program says so, and a domain
 * whose grace periods only the program drives. The test reads the words from the slots.
 */
#define _GNU_SOURCE /* gettid */
#include <errno.h>
#include <semaphore.h>
#include <unistd.h>

#include <prudence/call.h>
#include <prudence/epoch.h>
#include <prudence/poll.h>
#include <prudence/prudence.h>
#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "gp/user/parking.h"
#include "gp/user/readers.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/step.h"
#include "support/threads.h"

static struct prudence_domain *domain;
static struct prudence_reader *self;

static struct prudence_domain *make(enum prudence_domain_kind kind, unsigned flags)
{
    struct prudence_domain_attr attr = {.size = sizeof attr, .flags = flags};

    return prudence_domain_create("epochs", kind, &attr);
}

static int set_up(void **state)
{
    domain = make(PRUDENCE_DOMAIN_MEMB, 0);
    self = prudence_epoch_record(domain);
    return self ? 0 : -1;
}

static int set_up_by_callers(void **state)
{
    domain = make(PRUDENCE_DOMAIN_MEMB, PRUDENCE_DOMAIN_CALLERS_ADVANCE);
    self = prudence_epoch_record(domain);
    return self ? 0 : -1;
}

static int tear_down(void **state)
{
    return prudence_domain_destroy(domain);
}

static bool is_over(prudence_gp_t cookie)
{
    return prudence_domain_poll_state(domain, cookie);
}

/* ------------------------------------------------------------------------------------- pins */

TEST(pins_and_sections_nest_in_each_other, set_up, tear_down)
{
    prudence_gp_t cookie;

    assert_false(prudence_epoch_is_pinned(self));
    prudence_epoch_pin(self);
    cookie = prudence_domain_start_poll(domain);
    prudence_domain_read_lock(domain);
    prudence_epoch_pin(self);
    assert_int_equal(self->word & PRUDENCE_NESTING_MASK, 3);
    prudence_epoch_unpin(self);
    prudence_domain_read_unlock(domain);
    assert_true(prudence_epoch_is_pinned(self) && prudence_domain_read_lock_held(domain));
    assert_false(is_over(cookie));
    prudence_epoch_unpin(self);
    assert_true(is_over(cookie));
}

TEST(a_record_of_the_default_domain_is_that_of_its_sections)
{
    self = prudence_epoch_record(prudence_default_domain());
    assert_ptr_equal(self, prudence_reader_self);
    prudence_epoch_pin(self);
    assert_true(prudence_read_lock_held());
    prudence_read_lock();
    prudence_epoch_unpin(self);
    prudence_read_unlock();
    assert_false(prudence_read_lock_held());
}

TEST(repin_moves_to_the_newest_epoch, set_up, tear_down)
{
    uint64_t before, began = prudence_epoch_newest(domain);
    prudence_gp_t cookie, next;

    prudence_epoch_pin(self);
    assert_true(prudence_epoch_pinned(self) == began);
    before = self->word;
    assert_true(prudence_epoch_repin(self)); /* there is nothing newer */
    assert_true(self->word == before);
    cookie = prudence_domain_start_poll(domain);
    assert_false(is_over(cookie));
    assert_true(prudence_epoch_newest(domain) == began + 1);
    assert_true(prudence_epoch_repin(self));
    assert_true(prudence_epoch_pinned(self) == began + 1);
    assert_true(is_over(cookie));
    next = prudence_domain_start_poll(domain);
    assert_false(is_over(next)); /* what is unlinked from now on stays */
    prudence_epoch_unpin(self);
    assert_true(is_over(next));
}

TEST(only_the_only_pin_moves, set_up, tear_down)
{
    prudence_gp_t cookie;
    uint64_t before;

    prudence_epoch_pin(self);
    prudence_domain_read_lock(domain);
    before = self->word;
    cookie = prudence_domain_start_poll(domain);
    assert_false(prudence_epoch_repin(self));
    assert_true(self->word == before);
    assert_false(is_over(cookie));
    prudence_domain_read_unlock(domain);
    assert_true(prudence_epoch_repin(self));
    assert_true(is_over(cookie));
    prudence_epoch_unpin(self);
}

/* The old epoch is there until the new one is, so a late store keeps too much, not too little. */
TEST(a_pin_moves_without_a_fence)
{
    uint64_t fences;

    assert_int_equal(prudence_option_set("reader_mode", "fenced"), 0);
    assert_int_equal(set_up(NULL), 0);
    prudence_epoch_pin(self);
    prudence_domain_start_poll(domain);
    fences = self->entries;
    for (int i = 0; i < 10; i++)
        assert_true(prudence_epoch_repin(self));
    assert_int_equal(self->entries, fences);
    prudence_epoch_unpin(self);
    assert_int_equal(prudence_option_set("reader_mode", "auto"), 0);
    assert_int_equal(tear_down(NULL), 0);
}

/* A reader that was asked to fence answers when it moves. */
TEST(a_pin_that_moves_takes_a_mark_away, set_up, tear_down)
{
    prudence_epoch_pin(self);
    parking_ask(domain, NULL);
    assert_true(load_relaxed(&self->attention) < 0);
    prudence_domain_start_poll(domain);
    assert_true(prudence_epoch_repin(self));
    assert_true(load_relaxed(&self->attention) >= 0);
    assert_true(parking_all_answered(domain, NULL));
    prudence_epoch_unpin(self);
}

#if STEP_POSSIBLE
static unsigned steps, at;
static bool reached, nested_moved;

/* A signal handler that pins and tries to move, and a grace period that begins in between. */
static void handler_pins(const greg_t *registers)
{
    if (steps++ != at)
        return;
    reached = true;
    step_enough = true;
    prudence_domain_start_poll(domain);
    prudence_epoch_pin(self);
    prudence_domain_start_poll(domain);
    nested_moved |= prudence_epoch_repin(self);
    prudence_epoch_unpin(self);
}

static void repins(void *moved)
{
    *(bool *)moved = prudence_epoch_repin(self);
}

TEST(a_handler_pins_before_each_instruction_of_repin, set_up, tear_down)
{
    bool moved = false;

    for (at = 0, reached = true; reached; at++) {
        prudence_gp_t cookie;

        steps = 0;
        reached = nested_moved = false;
        prudence_epoch_pin(self);
        cookie = prudence_domain_start_poll(domain);
        step_through(repins, &moved, handler_pins);
        assert_true(moved);
        assert_false(nested_moved);
        assert_int_equal(self->word & PRUDENCE_NESTING_MASK, 1);
        assert_true(is_over(cookie));
        prudence_epoch_unpin(self);
    }
    assert_true(at > 8);
}
#endif

/* -------------------------------------------------------------------------------- advancing */

TEST(to_advance_ends_an_epoch_or_tells_who_is_behind, set_up, tear_down)
{
    struct held_reader other = {.domain = domain};
    int behind = -1;
    prudence_gp_t cookie;

    assert_true(prudence_epoch_try_advance(domain, NULL));
    assert_true(prudence_epoch_try_advance(domain, &behind));
    assert_int_equal(behind, 0);
    held_reader_start(&other);
    cookie = prudence_domain_get_state(domain);
    assert_true(prudence_epoch_try_advance(domain, NULL)); /* the reader is in the newest epoch */
    assert_false(prudence_epoch_try_advance(domain, NULL));
    assert_false(prudence_epoch_try_advance(domain, &behind));
    assert_int_equal(behind, other.tid);
    assert_false(is_over(cookie));
    held_reader_end(&other);
    assert_true(prudence_epoch_try_advance(domain, NULL));
    assert_true(is_over(cookie));
}

/* While a thread is behind, no further epoch begins. */
TEST(epochs_do_not_run_away, set_up, tear_down)
{
    struct held_reader other = {.domain = domain};
    uint64_t newest;

    held_reader_start(&other);
    assert_true(prudence_epoch_try_advance(domain, NULL));
    newest = prudence_epoch_newest(domain);
    for (int i = 0; i < 10; i++)
        assert_false(prudence_epoch_try_advance(domain, NULL));
    assert_true(prudence_epoch_newest(domain) == newest);
    held_reader_end(&other);
}

TEST(a_pinned_thread_is_behind_itself_until_it_moves, set_up, tear_down)
{
    prudence_gp_t cookie;
    int behind;

    prudence_epoch_pin(self);
    cookie = prudence_domain_get_state(domain);
    assert_true(prudence_epoch_try_advance(domain, NULL));
    assert_false(prudence_epoch_try_advance(domain, &behind));
    assert_int_equal(behind, gettid());
    assert_false(is_over(cookie));
    assert_true(prudence_epoch_repin(self));
    assert_true(prudence_epoch_try_advance(domain, &behind));
    assert_true(is_over(cookie));
    prudence_epoch_unpin(self);
}

TEST(any_kind_of_domain_advances)
{
    static const enum prudence_domain_kind kinds[] = {PRUDENCE_DOMAIN_QSBR, PRUDENCE_DOMAIN_SRCU};
    struct prudence_domain *set, *member;
    int behind = -1, index;

    for (unsigned i = 0; i < 2; i++) {
        struct prudence_domain *one = make(kinds[i], 0);

        assert_true(prudence_epoch_try_advance(one, NULL));
        assert_int_equal(prudence_domain_destroy(one), 0);
    }
    member = make(PRUDENCE_DOMAIN_SRCU, 0);
    set = prudence_domain_create_set("set", &member, 1);
    index = prudence_srcu_read_lock(member);
    assert_true(prudence_epoch_try_advance(set, &behind));
    assert_false(prudence_epoch_try_advance(set, &behind));
    assert_int_equal(behind, 0);
    prudence_srcu_read_unlock(member, index);
    assert_int_equal(prudence_domain_synchronize(set), 0);
    assert_int_equal(prudence_domain_destroy(set), 0);
    assert_int_equal(prudence_domain_destroy(member), 0);
}

/* -------------------------------------------------------------- where only callers advance */

static void *first_of(struct prudence_cache *cache)
{
    void *object = prudence_cache_alloc(cache);

    assert_non_null(object);
    return object;
}

TEST(nothing_moves_until_a_caller_advances, set_up_by_callers, tear_down)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
    struct prudence_cache *cache = prudence_cache_create("epochs", 64, &attr);
    prudence_gp_t cookie = prudence_domain_start_poll(domain);
    uint64_t newest = prudence_epoch_newest(domain);
    struct prudence_domain_stats stats;

    for (int i = 0; i < 5000; i++)
        prudence_cache_free_deferred(cache, first_of(cache));
    for (int i = 0; i < 10; i++)
        assert_false(is_over(cookie));
    assert_true(prudence_epoch_newest(domain) == newest);
    assert_true(prudence_epoch_try_advance(domain, NULL));
    assert_true(is_over(cookie));
    assert_true(prudence_epoch_newest(domain) == newest + 1);
    assert_int_equal(prudence_domain_stats(domain, &stats), 0);
    assert_string_equal(stats.kind, "memb");
    assert_int_equal(stats.grace_periods, 1);
    assert_int_equal(prudence_cache_destroy(cache), 0); /* waits, so advances */
}

TEST(an_explicit_wait_advances, set_up_by_callers, tear_down)
{
    uint64_t newest = prudence_epoch_newest(domain);
    struct prudence_domain *set = prudence_domain_create_set("set", &domain, 1);

    assert_int_equal(prudence_domain_synchronize(domain), 0);
    assert_true(prudence_epoch_newest(domain) == newest + 1);
    assert_int_equal(prudence_domain_synchronize_expedited(domain), 0);
    assert_int_equal(prudence_domain_synchronize(set), 0);
    prudence_epoch_pin(self);
    assert_int_equal(prudence_domain_synchronize(domain), EDEADLK);
    prudence_epoch_unpin(self);
    assert_int_equal(prudence_domain_destroy(set), 0);
}

static unsigned called;

static void count_call(struct prudence_head *head)
{
    __atomic_fetch_add(&called, 1, __ATOMIC_RELAXED);
}

TEST(callbacks_wait_for_callers, set_up_by_callers, tear_down)
{
    static struct prudence_head head;

    called = 0;
    prudence_domain_call(domain, &head, count_call);
    pause_ms(5); /* time for a library that would advance by itself */
    assert_int_equal(load_relaxed(&called), 0);
    while (!load_relaxed(&called))
        prudence_epoch_try_advance(domain, NULL);
    prudence_domain_barrier(domain);
}

/* An implicit wait there has no thread to wait for but the program, so wait_max ends the wait. */
TEST(an_implicit_wait_ends, set_up_by_callers, tear_down)
{
    uint64_t began = os_clock_ns();

    assert_true(gp_outstays(domain, began, 0));
    assert_false(gp_wait(domain, gp_snapshot(domain), began + 1));
    gp_note_expired(domain);
    assert_false(gp_worth_waiting(domain));
    assert_true(prudence_epoch_try_advance(domain, NULL));
    assert_true(gp_worth_waiting(domain));
}

TEST(qsbr_advances_by_callers_too)
{
    prudence_gp_t cookie;
    int behind;

    domain = make(PRUDENCE_DOMAIN_QSBR, PRUDENCE_DOMAIN_CALLERS_ADVANCE);
    prudence_qsbr_online(domain);
    cookie = prudence_domain_start_poll(domain);
    prudence_qsbr_quiescent(domain);
    assert_false(is_over(cookie));
    assert_true(prudence_epoch_try_advance(domain, NULL));
    assert_false(prudence_epoch_try_advance(domain, &behind));
    assert_int_equal(behind, gettid());
    prudence_qsbr_quiescent(domain);
    assert_true(prudence_epoch_try_advance(domain, NULL));
    assert_true(is_over(cookie));
    prudence_qsbr_offline(domain);
    assert_int_equal(tear_down(NULL), 0);
}

/* The mode of readers is an option of the process, for these domains as well. */
TEST(the_mode_follows_the_option, set_up_by_callers, tear_down)
{
    if (!os_membarrier_available())
        return;
    assert_int_equal(prudence_option_set("reader_mode", "fenced"), 0);
    assert_int_equal(domain->readers_fence_themselves, 1);
    assert_int_equal(prudence_option_set("reader_mode", "free"), 0);
    assert_int_equal(domain->readers_fence_themselves, 0);
    assert_true(prudence_epoch_try_advance(domain, NULL));
    assert_int_equal(prudence_option_set("reader_mode", "auto"), 0);
}

/* ---------------------------------------------------------------------- refusals and misuse */

static int refuses(void)
{
    struct prudence_domain *member = prudence_default_domain();
    struct prudence_domain *others[] = {make(PRUDENCE_DOMAIN_QSBR, 0),
                                        make(PRUDENCE_DOMAIN_SRCU, 0),
                                        prudence_domain_create_set("set", &member, 1)};
    int wrong = 0;

    for (unsigned i = 0; i < 3; i++) {
        errno = 0;
        wrong += prudence_epoch_record(others[i]) || errno != EINVAL;
    }
    errno = 0;
    wrong += make(PRUDENCE_DOMAIN_SRCU, PRUDENCE_DOMAIN_CALLERS_ADVANCE) || errno != EINVAL;
    wrong += make(PRUDENCE_DOMAIN_MANUAL, PRUDENCE_DOMAIN_CALLERS_ADVANCE) || errno != EINVAL;
    wrong += make(PRUDENCE_DOMAIN_MEMB, 2) || errno != EINVAL;
    return wrong;
}

TEST(other_kinds_are_refused)
{
    expect_exit(0, refuses(), "prudence_epoch_record: domain 'epochs' is qsbr", "is srcu", "is set",
                "is for memb and qsbr, not for srcu", "attr->flags is 0x2");
}

/* ------------------------------------------------------------------------ fork, thread exit */

/* The child has this thread's pin, by the same record, and no other thread's. */
static int goes_on_in_the_child(void *cookie)
{
    int behind = 0, wrong = 0;

    wrong += !prudence_epoch_is_pinned(self) || prudence_epoch_record(domain) != self;
    wrong += !prudence_epoch_try_advance(domain, NULL);
    wrong += prudence_epoch_try_advance(domain, &behind) || behind != gettid();
    wrong += !prudence_epoch_repin(self) || !prudence_epoch_try_advance(domain, NULL);
    wrong += !is_over(*(prudence_gp_t *)cookie);
    prudence_epoch_unpin(self);
    wrong += !prudence_epoch_try_advance(domain, &behind) || behind != 0;
    return wrong + (prudence_domain_destroy(domain) != 0);
}

TEST(a_forked_child_keeps_its_pin, set_up_by_callers, tear_down)
{
    struct held_reader other = {.domain = domain};
    prudence_gp_t cookie;

    held_reader_start(&other);
    prudence_epoch_pin(self);
    cookie = prudence_domain_get_state(domain);
    expect_exit(0, goes_on_in_the_child(&cookie), "");
    prudence_epoch_unpin(self);
    assert_true(prudence_epoch_try_advance(domain, NULL));
    assert_false(prudence_epoch_try_advance(domain, NULL)); /* the other reader lives here */
    held_reader_end(&other);
}

static void *leaves_a_pin(void *unused)
{
    prudence_epoch_pin(prudence_epoch_record(domain));
    return NULL;
}

static int ends_pinned(void)
{
    prudence_gp_t cookie;

    set_up_by_callers(NULL);
    in_thread(leaves_a_pin, NULL);
    cookie = prudence_domain_get_state(domain);
    while (!is_over(cookie))
        prudence_epoch_try_advance(domain, NULL);
    return 0;
}

/* First, because ThreadSanitizer confuses threads of a child with those that its parent has. */
TEST_FIRST(a_thread_that_ends_pinned_is_reported)
{
    expect_exit(0, ends_pinned(), "");
    assert_true(said("exits inside a read-side critical section of domain 'epochs'"));
}

SUITE()
