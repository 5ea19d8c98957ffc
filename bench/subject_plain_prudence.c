/* SPDX-License-Identifier: MIT */
/* Prudence used as a plain allocator: prudence_malloc and prudence_free. */
#include <prudence/prudence.h>

#include "loops.h"
#include "prudence_counters.h"

static union pool pool_create(size_t object_size)
{
    return (union pool){.size = object_size};
}

static void pool_destroy(union pool pool)
{
    (void)pool;
}

static inline void *allocate(union pool pool)
{
    return prudence_malloc(pool.size);
}

static inline void retire(union pool pool, void *object)
{
    (void)pool;
    prudence_free(object);
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

const struct family plain_prudence_family = {
    .library = "prudence",
    .library_version = prudence_version,
    .report = prudence_report_totals,
    .operations = &operations,
    .loops = SUBJECT_LOOP_TABLE,
};
