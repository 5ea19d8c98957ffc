/* SPDX-License-Identifier: MIT */
/*
 * A reader that stays in its section holds up the running grace period. Until it leaves, driving
 * makes no barrier and no scan, and a thread that has other work requests no further grace period.
 * The same reader's next section does not hold up that grace period.
 */

#include <errno.h>

#include <prudence/prudence.h>
#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "gp/user/readers.h"
#include "gp/user/stall.h"
#include "os/posix/posix.h"
#include "support/gp_reader.h"
#include "support/suite.h"

static struct prudence_domain *domain;

static int make_domain(void **state)
{
    domain = prudence_domain_create("held up", PRUDENCE_DOMAIN_MEMB, NULL);
    return domain ? 0 : -1;
}

static int destroy_domain(void **state)
{
    return prudence_domain_destroy(domain);
}

static uint64_t looks(void)
{
    return load_relaxed(&domain->scans) + load_relaxed(&domain->membarriers);
}

static uint64_t started(void)
{
    return load_relaxed(&domain->shared.sequence);
}

/* Starts a grace period, and lets a scan find that this thread's section holds it up. */
static gp_cookie hold_up(void)
{
    gp_cookie cookie = gp_snapshot(domain);

    prudence_domain_read_lock(domain);
    assert_false(gp_is_held_up(domain)); /* no driver has checked */
    assert_true(gp_advance(domain, cookie));
    assert_true(gp_is_held_up(domain));
    return cookie;
}

TEST(nobody_looks_again_while_a_reader_stays, make_domain, destroy_domain)
{
    gp_cookie cookie = hold_up(), next = gp_snapshot(domain);
    uint64_t before = looks(), sequence = started(), told = 1;

    store_relaxed(&domain->scan_began, told);
    for (int i = 0; i < 100; i++) {
        gp_drive(domain);
        assert_false(gp_advance(domain, next));
    }
    assert_int_equal(looks(), before);
    assert_true(load_relaxed(&domain->scan_began) == told); /* no scan was announced */
    store_relaxed(&domain->scan_began, (uint64_t)0);
    assert_true(started() == sequence); /* so objects deferred in the meantime share one cookie */
    prudence_domain_read_unlock(domain);
    assert_false(gp_is_held_up(domain));
    gp_drive(domain);
    assert_true(gp_poll(domain, cookie));
    assert_true(gp_advance(domain, next));
    assert_true(gp_poll(domain, next));
}

/* Nested sections are one section, until the outermost ends. */
TEST(a_nested_section_is_the_same, make_domain, destroy_domain)
{
    gp_cookie cookie = hold_up();

    prudence_domain_read_lock(domain);
    assert_true(gp_is_held_up(domain));
    prudence_domain_read_unlock(domain);
    assert_true(gp_is_held_up(domain));
    prudence_domain_read_unlock(domain);
    assert_false(gp_is_held_up(domain));
    assert_true(gp_wait(domain, cookie, 0));
}

/* It was entered after the grace period began, so it does not hold it up. */
TEST(the_next_section_of_the_same_reader_is_not_in_the_way, make_domain, destroy_domain)
{
    gp_cookie cookie = hold_up();

    prudence_domain_read_unlock(domain);
    prudence_domain_read_lock(domain);
    assert_false(gp_is_held_up(domain));
    gp_drive(domain);
    assert_true(gp_poll(domain, cookie));
    prudence_domain_read_unlock(domain);
}

/* No grace period is running, so a thread that wants one may begin it. */
TEST(a_reader_alone_holds_up_nothing, make_domain, destroy_domain)
{
    gp_cookie cookie = hold_up();

    prudence_domain_read_unlock(domain);
    assert_true(gp_wait(domain, cookie, 0));
    prudence_domain_read_lock(domain);
    assert_false(gp_is_held_up(domain));
    /* ... nor if a driver that had been preempted notes its reader only now. */
    store_release(&domain->furthest_behind, readers_slot_if_any(domain));
    assert_false(gp_is_held_up(domain));
    assert_true(gp_advance(domain, gp_snapshot(domain)));
    assert_true(gp_is_held_up(domain));
    prudence_domain_read_unlock(domain);
}

/* When the reader that was furthest behind leaves, a scan finds the next one. */
TEST(the_next_reader_is_found, make_domain, destroy_domain)
{
    struct held_reader other = {.domain = domain};
    gp_cookie cookie;

    held_reader_start(&other);
    cookie = hold_up();
    prudence_domain_read_unlock(domain);
    gp_drive(domain);
    assert_true(gp_is_held_up(domain));
    assert_false(gp_poll(domain, cookie));
    held_reader_end(&other);
    assert_false(gp_is_held_up(domain));
    assert_true(gp_wait(domain, cookie, 0));
}

TEST(a_set_is_held_up_by_its_members, make_domain, destroy_domain)
{
    struct prudence_domain *members[] = {domain, prudence_default_domain()};
    struct prudence_domain *set = prudence_domain_create_set("set", members, 2);
    gp_cookie cookie;

    assert_non_null(set);
    cookie = gp_snapshot(set);
    hold_up();
    assert_true(gp_is_held_up(set));
    assert_false(gp_advance(set, cookie));
    prudence_domain_read_unlock(domain);
    assert_false(gp_is_held_up(set));
    assert_true(gp_wait(set, cookie, 0));
    assert_int_equal(prudence_domain_destroy(set), 0);
}

/* Plays a system that cannot know whether the reader has a CPU. */
static bool tell_nothing(int thread, bool *wants, uint64_t *had)
{
    (void)thread, (void)wants, (void)had;
    return false;
}

/* Returns a time too long to pass during the test, and short enough that no clock goes below
 * zero. */
static uint64_t half_of_uptime(void)
{
    return os_clock_ns() / 2;
}

TEST(it_is_known_since_when, make_domain, destroy_domain)
{
    uint64_t before = os_clock_ns(), longer = half_of_uptime(), entered;
    gp_cookie cookie = hold_up();

    posix_cpu_injected = tell_nothing;
    entered = stall_since(readers_slot_if_any(domain));
    assert_in_range(entered, before, os_clock_ns());
    gp_drive(domain);
    assert_true(stall_since(readers_slot_if_any(domain)) == entered);
    assert_true(gp_outstays(domain, before, 0));
    assert_false(gp_outstays(domain, before, longer));
    readers_slot_if_any(domain)->stall_since -= longer;
    assert_true(gp_outstays(domain, before - longer, longer));
    assert_false(gp_outstays(domain, before, longer)); /* the caller has not waited that long */
    prudence_domain_read_unlock(domain);
    assert_false(gp_outstays(domain, before - longer, 0));
    assert_true(gp_wait(domain, cookie, 0));
    posix_cpu_injected = NULL;
}

/* Readers without slots are invisible: during a grace period one may always hold it up. */
TEST(nobody_can_tell_of_readers_without_slots)
{
    struct prudence_domain *srcu = prudence_domain_create("srcu", PRUDENCE_DOMAIN_SRCU, NULL);
    struct prudence_domain *manual = prudence_domain_create("manual", PRUDENCE_DOMAIN_MANUAL, NULL);
    uint64_t longer = half_of_uptime();
    int index;

    index = prudence_srcu_read_lock(srcu);
    assert_false(gp_outstays(srcu, os_clock_ns(), 0));
    gp_request(srcu, gp_snapshot(srcu));
    assert_true(gp_outstays(srcu, os_clock_ns(), 0));
    assert_true(gp_outstays(manual, os_clock_ns(), 0));
    assert_false(gp_outstays(manual, os_clock_ns(), longer));
    assert_false(gp_is_held_up(srcu) || gp_is_held_up(manual));
    prudence_srcu_read_unlock(srcu, index);
    assert_int_equal(prudence_domain_synchronize(srcu), 0);
    assert_int_equal(prudence_domain_destroy(srcu), 0);
    assert_int_equal(prudence_domain_destroy(manual), 0);
}

SUITE()
