/* SPDX-License-Identifier: MIT */
/*
 * The lock of a bucket. It is held for some tens of nanoseconds, unless its holder loses its CPU: so a thread that wants
 * it spins a little, and then sleeps, for the holder may need this CPU.
 */
#include "os/os.h"
#include "structures/hash.h"
#include "structures/writers.h"

#define SPINS    100
#define SLEEP_NS 50000

static void pause_before(unsigned *tries)
{
    if (++*tries % SPINS)
        os_relax();
    else
        os_sleep_ns(SLEEP_NS);
}

uintptr_t hash_lock(uintptr_t *bucket)
{
    uintptr_t link = load_acquire(bucket);
    unsigned tries = 0;

    for (;;) {
        if (unlikely(!link || link & HASH_MOVED))
            return link;
        if (likely(!(link & HASH_LOCKED)) &&
            likely(compare_exchange(bucket, &link, link | HASH_LOCKED)))
            return link;
        if (link & HASH_LOCKED) {
            pause_before(&tries);
            link = load_acquire(bucket);
        }
    }
}

uintptr_t hash_lock_first(uintptr_t *bucket)
{
    for (;;) {
        uintptr_t link = hash_lock(bucket);

        if (unlikely(!link || link & HASH_MOVED) || likely(!writers_must_wait()))
            return link;
        hash_unlock(bucket, link);
        writers_wait();
    }
}
