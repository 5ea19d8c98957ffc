/* SPDX-License-Identifier: MIT */
/* The lock of a bucket. */
#include "structures/contention.h"
#include "structures/hash.h"

uintptr_t hash_lock(uintptr_t *bucket)
{
    uintptr_t link = load_acquire(bucket);
    unsigned tries = 0;

    for (;;) {
        if (unlikely(!link || link & HASH_MOVED))
            return link;
        if (likely(!(link & HASH_LOCKED)) &&
            likely(__atomic_compare_exchange_n(bucket, &link, link | HASH_LOCKED, false,
                                               __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)))
            return link;
        if (link & HASH_LOCKED) {
            contention_pause(&tries);
            link = load_acquire(bucket);
        }
    }
}
