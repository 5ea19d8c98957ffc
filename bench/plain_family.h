/* SPDX-License-Identifier: MIT */
/*
 * Allocate and free at once, with no reader to wait for, as a template: a file that includes this
 * has defined PLAIN_MALLOC(size) and PLAIN_FREE(object).
 */
#ifndef BENCH_PLAIN_FAMILY_H
#define BENCH_PLAIN_FAMILY_H

#include "sized_pool.h"

static void pool_destroy(union pool pool)
{
    (void)pool;
}

static inline void *allocate(union pool pool)
{
    return PLAIN_MALLOC(pool.size);
}

static inline void retire(union pool pool, void *object)
{
    (void)pool;
    PLAIN_FREE(object);
}

static inline void read_nothing(void)
{
}

static const struct operations operations = {
    .pool_create = pool_create,
    .pool_destroy = pool_destroy,
    .allocate = allocate,
    .retire = retire,
    .discard = retire,
    .retire_timed = retire,
    .read_lock = read_nothing,
    .read_unlock = read_nothing,
};

SUBJECT_LOOPS

#endif /* BENCH_PLAIN_FAMILY_H */
