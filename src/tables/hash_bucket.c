/* SPDX-License-Identifier: MIT */
/* The lock of a bucket. */
#include "tables/contention.h"
#include "tables/hash.h"
#include "tables/hash_bucket.h"
#include "tables/writers.h"

uintptr_t hash_bucket_lock(uintptr_t *bucket)
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
            if (writers_are_gone())
                return link & ~HASH_LOCKED; /* from here on the lock is this thread's */
            contention_pause(&tries);
            link = load_acquire(bucket);
        }
    }
}

uintptr_t hash_bucket_lock_first(uintptr_t *bucket)
{
    for (;;) {
        uintptr_t link = hash_bucket_lock(bucket);

        if (unlikely(!link || link & HASH_MOVED) || likely(!writers_must_wait()))
            return link;
        hash_bucket_unlock(bucket, link);
        writers_wait();
    }
}
