/* SPDX-License-Identifier: MIT */
/* malloc and free at once, with no reader to wait for: the floor. */
#include <stdlib.h>

#include "loops.h"

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
    return malloc(pool.size);
}

static inline void retire(union pool pool, void *object)
{
    (void)pool;
    free(object);
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

const struct family plain_family = {
    .library = "malloc",
    .version = "",
    .operations = &operations,
    .loops = SUBJECT_LOOP_TABLE,
};
