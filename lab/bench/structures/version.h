/* SPDX-License-Identifier: MIT */
/* An object that shows whether it is whole: two numbers that match until it is freed. */
#ifndef BENCH_STRUCTURES_VERSION_H
#define BENCH_STRUCTURES_VERSION_H

#include <stdbool.h>
#include <stdint.h>

struct version {
    /* the complement of `number`; atomic, because the test checks for faults */
    uint64_t number, twin;
};

static inline void version_set(struct version *version, uint64_t number)
{
    __atomic_store_n(&version->number, number, __ATOMIC_RELAXED);
    __atomic_store_n(&version->twin, ~number, __ATOMIC_RELAXED);
}

static inline void version_spoil(struct version *version)
{
    __atomic_store_n(&version->twin, __atomic_load_n(&version->number, __ATOMIC_RELAXED),
                     __ATOMIC_RELAXED);
}

static inline bool version_get(const struct version *version, uint64_t *number)
{
    *number = __atomic_load_n(&version->number, __ATOMIC_RELAXED);
    return __atomic_load_n(&version->twin, __ATOMIC_RELAXED) == ~*number;
}

#endif /* BENCH_STRUCTURES_VERSION_H */
