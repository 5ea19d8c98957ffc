/* SPDX-License-Identifier: MIT */
/*
 * With many times more threads than CPUs, hundreds of live readers in turn hold up grace periods
 * for long. Each millisecond, drivers ask about one thread in total; each 100 ms they open a file
 * for one, among those that have stayed that long. A slot of an ended thread whose id was reused is
 * still found.
 */
#define _GNU_SOURCE

#include <sys/syscall.h>
#include <unistd.h>

#include <prudence/rcu.h>

#include "gp/user/domain.h"
#include "gp/user/slots.h"
#include "gp/user/stall.h"
#include "support/gp_reader.h"
#include "support/seen_calls.h"
#include "support/suite.h"

#define READERS 8
#define MS      UINT64_C(1000000)

static struct prudence_domain *domain;
static struct held_reader readers[READERS];
static struct reader_slot *slots[READERS];
static unsigned asked, opened;

static void sees_call(long number, long *arguments)
{
    if (number == SYS_tgkill)
        __atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
    if (number == SYS_openat)
        __atomic_fetch_add(&opened, 1, __ATOMIC_RELAXED);
}

static int start(void **state)
{
    struct reader_chunk *chunk;
    struct reader_slot *slot;
    unsigned count = 0;

    domain = prudence_domain_create("in the way", PRUDENCE_DOMAIN_MEMB, NULL);
    if (!domain)
        return -1;
    for (unsigned i = 0; i < READERS; i++) {
        readers[i].domain = domain;
        held_reader_start(&readers[i]);
    }
    for_each_slot(chunk, slot, domain) slots[count++] = slot;
    asked = opened = 0;
    return count == READERS ? 0 : -1;
}

static int end(void **state)
{
    for (unsigned i = 0; i < READERS; i++)
        held_reader_end(&readers[i]);
    return prudence_domain_destroy(domain);
}

/* A driver reads all of them, each 100 us for `milliseconds`. Returns how many turned out to
 * be gone. */
static unsigned drive_for(unsigned milliseconds, uint64_t stayed)
{
    uint64_t began = os_clock_ns();
    unsigned gone = 0;

    for (uint64_t age = 0; age < milliseconds * MS; age += MS / 10)
        for (unsigned i = 0; i < READERS; i++)
            gone += slots_reap_one(domain, slots[i], began + age, stayed);
    return gone;
}

TEST(one_of_all_is_asked_for, start, end)
{
    assert_int_equal(drive_for(300, 50 * MS), 0);
    assert_int_equal(asked, 300);
    assert_int_equal(opened, 0); /* none has stayed long enough */
}

TEST(a_file_is_opened_for_one_of_all, start, end)
{
    assert_int_equal(drive_for(1000, 100 * MS), 0);
    assert_int_equal(opened, 10);
    assert_int_equal(asked, 1000);
}

/* It has stayed longest, so drivers note no other. */
TEST(one_that_left_its_id_to_another_is_found, start, end)
{
    uint64_t claimed_at = slots[3]->claimed_at, now = os_clock_ns(), word = slots[3]->reader.word;

    slots[3]->claimed_at = 1; /* the boot time of the machine */
    assert_false(slots_reap_one(domain, slots[3], now, 99 * MS));
    assert_false(slots_reap_one(domain, slots[3], now, 100 * MS)); /* already asked */
    assert_true(slots_reap_one(domain, slots[3], now + MS, 100 * MS));
    assert_int_equal(opened, 1);
    assert_int_equal(load_relaxed(&slots[3]->thread), 0);
    slots[3]->claimed_at = claimed_at; /* the thread does exist, and ends its section */
    slots[3]->reader.word = word;
    slots[3]->reader.domain = domain;
    slots[3]->thread = readers[3].tid;
}

/* A driver that read the clock before another driver did has nothing to do. */
TEST(a_driver_that_comes_late_does_nothing, start, end)
{
    uint64_t now = os_clock_ns();

    slots_reap_one(domain, slots[0], now, 200 * MS);
    slots_reap_one(domain, slots[1], now - MS / 2, 200 * MS);
    assert_int_equal(asked, 1);
    assert_int_equal(opened, 1);
}

/* The whole path, by a driver that notes a reader which has been blocking for 50 ms. */
TEST(a_driver_that_is_held_up_opens_no_file, start, end)
{
    uint64_t now = os_clock_ns();

    for (unsigned i = 0; i < READERS; i++) {
        uint64_t word = load_relaxed(&slots[i]->reader.word);

        stall_note(domain, slots[i], word);
        slots[i]->stall_since = now - 50 * MS;
        stall_note(domain, slots[i], word);
    }
    assert_in_range(asked, 1, READERS); /* one, if that took less than a millisecond */
    if (os_clock_ns() - now < 50 * MS)  /* this thread kept its CPU */
        assert_int_equal(opened, 0);
}

SUITE()
