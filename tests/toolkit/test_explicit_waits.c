/* SPDX-License-Identifier: MIT */
/*
 * Each explicit wait drives a domain whose callers advance, alone and as a member of a set, with a
 * deadline and without. No thread reads, and no other thread advances, so a wait that drove nothing
 * would not end.
 */
#include <errno.h>

#include <prudence/call.h>
#include <prudence/epoch.h>
#include <prudence/poll.h>

#include "support/suite.h"

#define LONG UINT64_C(1000000000000) /* ns */

static struct prudence_domain *waited_for;
static struct prudence_cache *cache;
static bool called;

static void note_call(struct prudence_head *head)
{
    called = true;
}

static void destruct(void *object, void *context)
{
    called = true;
}

static void call(void)
{
    static struct prudence_head head;

    called = false;
    prudence_domain_call(waited_for, &head, note_call);
}

static void defer(void)
{
    prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
}

static struct prudence_cache *make_cache(void (*destructor)(void *object, void *context))
{
    struct prudence_cache_attr attr = {
        .size = sizeof attr, .domain = waited_for, .destructor = destructor};

    return prudence_cache_create("waits", 64, &attr);
}

static void wait_in_each_way(void)
{
    prudence_gp_t cookie;

    assert_int_equal(prudence_domain_synchronize(waited_for), 0);
    assert_int_equal(prudence_domain_synchronize_expedited(waited_for), 0);
    cookie = prudence_domain_get_state(waited_for);
    assert_int_equal(prudence_domain_cond_synchronize(waited_for, cookie), 0);
    cookie = prudence_domain_get_state(waited_for);
    assert_int_equal(prudence_domain_cond_synchronize_expedited(waited_for, cookie), 0);
    call();
    assert_int_equal(prudence_domain_barrier(waited_for), 0);
    assert_true(called);
    call();
    assert_int_equal(prudence_domain_barrier_timed(waited_for, LONG), 0);
    assert_true(called);
    cache = make_cache(NULL);
    defer();
    assert_int_equal(prudence_cache_barrier(cache), 0);
    defer();
    assert_int_equal(prudence_cache_barrier_timed(cache, LONG), 0);
    defer();
    assert_int_equal(prudence_cache_destroy(cache), 0);
    cache = make_cache(destruct);
    called = false;
    defer();
    assert_int_equal(prudence_cache_barrier_timed(cache, LONG), 0);
    assert_true(called);
    called = false;
    defer();
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_true(called);
}

TEST(they_drive_domains_whose_callers_advance)
{
    struct prudence_domain_attr by_callers = {.size = sizeof by_callers,
                                              .flags = PRUDENCE_DOMAIN_CALLERS_ADVANCE};
    static const enum prudence_domain_kind kinds[] = {PRUDENCE_DOMAIN_MEMB, PRUDENCE_DOMAIN_QSBR};

    for (unsigned i = 0; i < 2; i++) {
        waited_for = prudence_domain_create("by callers", kinds[i], &by_callers);
        wait_in_each_way();
        assert_int_equal(prudence_domain_destroy(waited_for), 0);
    }
}

TEST(they_drive_sets_with_such_members)
{
    struct prudence_domain_attr by_callers = {.size = sizeof by_callers,
                                              .flags = PRUDENCE_DOMAIN_CALLERS_ADVANCE};
    static const enum prudence_domain_kind kinds[] = {PRUDENCE_DOMAIN_MEMB, PRUDENCE_DOMAIN_SRCU,
                                                      PRUDENCE_DOMAIN_HAZARD};

    for (unsigned i = 0; i < 3; i++) {
        struct prudence_domain *members[] = {
            prudence_domain_create("by callers", PRUDENCE_DOMAIN_MEMB, &by_callers),
            prudence_domain_create("another", kinds[i], NULL)};

        waited_for = prudence_domain_create_set("set", members, 2);
        wait_in_each_way();
        assert_int_equal(prudence_domain_destroy(waited_for), 0);
        for (unsigned j = 0; j < 2; j++)
            assert_int_equal(prudence_domain_destroy(members[j]), 0);
    }
}

SUITE()
