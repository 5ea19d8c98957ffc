/* SPDX-License-Identifier: MIT */
/*
 * One number under a semaphore made of a spin lock (P. McKenney, "Exploiting Deferred Destruction",
 * 2004, section 2.2.2): each way in or out takes the lock once, so it costs two spin locks where
 * no thread waits, and waiters sleep.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "spin_lock.h"

/* On the stack of the waiting thread, which stays until `awake` is set. */
struct waiter {
    struct waiter *next;
    uint32_t awake; /* atomic; the thread sleeps on it */
};

static struct {
    struct spin_lock lock; /* protects the three below */
    bool held;
    struct waiter *first, **last;
} __attribute__((aligned(128))) semaphore;

static int64_t counter __attribute__((aligned(128))); /* under the semaphore */

static void sleep_on(uint32_t *awake)
{
    while (!__atomic_load_n(awake, __ATOMIC_ACQUIRE))
        syscall(SYS_futex, awake, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

/* Takes the semaphore's lock again, because another thread may have come first. */
static void wait_in_queue(void)
{
    struct waiter waiter = {.awake = 0};

    *semaphore.last = &waiter;
    semaphore.last = &waiter.next;
    spin_unlock(&semaphore.lock);
    sleep_on(&waiter.awake);
    spin_lock(&semaphore.lock);
}

static void down(void)
{
    spin_lock(&semaphore.lock);
    while (semaphore.held)
        wait_in_queue();
    semaphore.held = true;
    spin_unlock(&semaphore.lock);
}

static void up(void)
{
    struct waiter *waiter;

    spin_lock(&semaphore.lock);
    semaphore.held = false;
    waiter = semaphore.first;
    if (waiter) {
        uint32_t *awake = &waiter->awake;

        semaphore.first = waiter->next;
        if (!semaphore.first)
            semaphore.last = &semaphore.first;
        /* From here on the waiter may be gone. Waking an address that is gone wakes no thread. */
        __atomic_store_n(awake, 1, __ATOMIC_RELEASE);
        syscall(SYS_futex, awake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
    spin_unlock(&semaphore.lock);
}

static void start(void)
{
    semaphore.last = &semaphore.first;
}

static inline void add(int64_t number)
{
    down();
    counter += number;
    up();
}

static inline int64_t sum(void)
{
    int64_t seen;

    down();
    seen = counter;
    up();
    return seen;
}

#include "counters_family.h"

const struct subject subject_counter_semaphore = {
    "counter-semaphore", "one number under a semaphore made of a spin lock", .start = start,
    .fill = fill, .run = run};
