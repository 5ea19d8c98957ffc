/* SPDX-License-Identifier: MIT */
/*
 * Cases of the library's lock (os/posix/lock.c): a thread lends its priority to a holder that
 * releases the lock at any moment. The waiter must get the lock, and each waiter for the lent word
 * must be let go.
 */
#include "explorer.h"
#include "os/os.h"
#include "posix.h"

static struct os_lock lock;
static unsigned entries; /* under the lock */

static void enter(void)
{
    os_lock_take(&lock);
    entries++;
    os_lock_release(&lock);
}

/* Has the lock from the start until the first wait of another thread has ended. */
static void holds(void *unused)
{
    (void)unused;
    os_busy_enter();
    explore_assert(load_relaxed(&lock.word) == os_lock_id_find());
    explore_block(&explore_waited, 4, 0, false);
    os_lock_release(&lock);
    enter();
}

static void waits(void *unused)
{
    (void)unused;
    enter();
    explore_note();
}

static void all_entered(void)
{
    explore_assert(!lock.word && entries >= 2);
}

CASE_THEN("a-waiter-lends", a_waiter, all_entered, 4, 6)
{
    entries = 0;
    os_lock_init(&lock, OS_RANK_SCM);
    lock.word = 101; /* the id of the first thread */
    explore_thread(holds, NULL);
    explore_thread(waits, NULL);
}

CASE_THEN("two-waiters-lend", two_waiters, all_entered, 1, 2)
{
    a_waiter();
    explore_thread(waits, NULL);
}
