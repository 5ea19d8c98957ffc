/* SPDX-License-Identifier: MIT */
/* The lock of a bucket (see hash_bucket.c). */
#ifndef TABLES_HASH_BUCKET_H
#define TABLES_HASH_BUCKET_H

#include "tables/hash.h"

/*
 * Lock a bucket, unless it is moved or not set yet (0). Return its content without HASH_LOCKED.
 * hash_bucket_lock_first, for a thread that holds neither another bucket nor `stepping`, waits
 * while a fork is under way (writers.h).
 */
uintptr_t hash_bucket_lock(uintptr_t *bucket);
uintptr_t hash_bucket_lock_first(uintptr_t *bucket);

static inline void hash_bucket_unlock(uintptr_t *bucket, uintptr_t link)
{
    store_release(bucket, link);
}

#endif /* TABLES_HASH_BUCKET_H */
