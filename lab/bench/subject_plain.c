/* SPDX-License-Identifier: MIT */
/* Allocates and frees at once, with no reader to wait for: by the process's malloc, which is the
 * floor, and by Prudence's. */
#include <stdlib.h>

#include <prudence/prudence.h>

#include "prudence_counters.h"
#include "sized_pool.h"

static void pool_destroy(union pool pool)
{
    (void)pool;
}

static inline void read_nothing(void)
{
}

#define PLAIN_OPERATIONS(name, malloc_function, free_function)                                     \
    static inline void *name##_allocate(union pool pool)                                           \
    {                                                                                              \
        return malloc_function(pool.size);                                                         \
    }                                                                                              \
    static inline void name##_retire(union pool pool, void *object)                                \
    {                                                                                              \
        (void)pool;                                                                                \
        free_function(object);                                                                     \
    }                                                                                              \
    static const struct operations name##_operations = {                                           \
        .pool_create = pool_create,                                                                \
        .pool_destroy = pool_destroy,                                                              \
        .allocate = name##_allocate,                                                               \
        .retire = name##_retire,                                                                   \
        .discard = name##_retire,                                                                  \
        .retire_timed = name##_retire,                                                             \
        .read_lock = read_nothing,                                                                 \
        .read_unlock = read_nothing,                                                               \
    };                                                                                             \
    FAMILY_LOOPS(name)

PLAIN_OPERATIONS(plain, malloc, free)
PLAIN_OPERATIONS(plain_prudence, prudence_malloc, prudence_free)

const struct family plain_family = {.library = "malloc", .version = "", FAMILY_MEMBERS(plain)};
const struct family plain_prudence_family = {
    .library = "prudence",
    .library_version = prudence_version,
    .report = prudence_report_totals,
    FAMILY_MEMBERS(plain_prudence),
};
