/* SPDX-License-Identifier: MIT */
/*
 * A signal whose handler reads, at the worst moment of a thread's first entry: a slot is chosen but
 * not yet claimed. Registration blocks signals; otherwise the handler would register the thread a
 * second time, and one of the two slots would be lost until the thread ends.
 *
 * ctest: not-with thread (ThreadSanitizer forgets a thread before its last destructors, handlers)
 */
#define _GNU_SOURCE

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "gp/user/slots.h"
#include "support/suite.h"
#include "support/threads.h"

static struct prudence_domain *domain;
static __thread bool armed;
static unsigned handled;

pid_t gettid(void);

/* Replaces libc's: registration asks for the thread's id when it claims a slot. */
pid_t gettid(void)
{
    if (armed) {
        armed = false;
        raise(SIGUSR1);
    }
    return (pid_t)syscall(SYS_gettid);
}

static void handler(int number)
{
    prudence_read_lock();
    prudence_domain_read_lock(domain);
    handled++;
    prudence_domain_read_unlock(domain);
    prudence_read_unlock();
}

static unsigned slots_of(struct prudence_domain *of, pid_t thread)
{
    struct reader_chunk *chunk;
    struct reader_slot *slot;
    unsigned count = 0;

    for_each_slot(chunk, slot, of)
    {
        count += slot->thread == thread;
    }
    return count;
}

static unsigned slots, slots_elsewhere;

/* Enters its domain (NULL: the default one) before anything else. */
static void *enter_first(void *which)
{
    pid_t me = (pid_t)syscall(SYS_gettid);

    armed = true;
    if (which)
        prudence_domain_read_lock(which);
    else
        prudence_read_lock();
    slots = slots_of(&prudence_default, me);
    slots_elsewhere = slots_of(domain, me);
    if (which)
        prudence_domain_read_unlock(which);
    else
        prudence_read_unlock();
    return NULL;
}

static void expect_one_slot_each(struct prudence_domain *which)
{
    handled = 0;
    in_thread(enter_first, which);
    assert_int_equal(handled, 1);
    assert_int_equal(slots, 1);
    assert_int_equal(slots_elsewhere, 1);
}

TEST(signals_wait_until_the_slot_is_entered)
{
    expect_one_slot_each(NULL);
    expect_one_slot_each(domain);
}

SUITE(signal(SIGUSR1, handler), domain = prudence_domain_create("mine", PRUDENCE_DOMAIN_MEMB, NULL))
